"""`manage.py attempt`: what the form does, from a file, and how it ends."""

import io
import json
import os
import subprocess
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from exercises.handed.checks import Shown
from grading import queue, review
from grading.models import Attempt, Enrolment
from marlow.clock import real_now
from marlow.management.commands import attempt as command
from marlow.tree import manage
from tests.grading.school import FAILED, OPENS, PASSED, RIGHT, Said, School, break_off, judge

pytestmark = pytest.mark.django_db
WEEK = timedelta(days=7)
ONE_WRONG = {
    "boxes": Said(PASSED, 3, 3),
    "friday": Said(FAILED, 0, 3),
    "later": Said(FAILED, 0, 1, Shown.AFTERWARDS),
    "secret": Said(FAILED, 0, 1, Shown.HIDDEN),
}
ALL_RIGHT = {"boxes": Said(PASSED, 3, 3), "secret": Said(FAILED, 0, 1, Shown.HIDDEN)}


def school(name: str = "Wednesday", **rules: Any) -> School:
    now = real_now()
    return School(name, {"opens_at": now - WEEK, "due_at": now + WEEK, **rules})


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "answer.json"
    path.write_text(json.dumps({"exercise": "advisory", "answers": RIGHT}))
    return path


def ran(file: Path, *options: str) -> tuple[int, dict[str, Any]]:
    """The exit status, and the last line of stdout."""
    out = io.StringIO()
    with pytest.raises(SystemExit) as ended:
        call_command("attempt", "advisory", str(file), *options, "--json", stdout=out)
    return int(ended.value.code or 0), json.loads(out.getvalue().splitlines()[-1])


def refused(file: Path, *options: str, exercise: str = "advisory") -> str:
    """The sentence that it ends with, and the status that says: nothing was handed in."""
    with pytest.raises(CommandError) as error:
        call_command("attempt", exercise, str(file), *options)
    assert error.value.returncode == 2
    return str(error.value)


def test_without_a_database_nothing_is_handed_in_and_that_is_said(file):
    """With the status that says so, not that of a check that did not pass."""
    nowhere = {**os.environ, "DATABASE_URL": "postgres://nobody@127.0.0.1:1/nothing"}
    command = manage("attempt", "advisory", str(file), "--as", "student")
    ended = subprocess.run(command, env=nowhere, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 2
    assert "Nothing was handed in: the shop's database can't be reached" in ended.stderr
    assert "Traceback" not in ended.stderr


def judged_meanwhile(monkeypatch: pytest.MonkeyPatch, step: Any) -> list[float]:
    """While the command sleeps, a judge works."""
    slept: list[float] = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        step(Attempt.objects.get())

    monkeypatch.setattr(command, "real_sleep", sleep)
    return slept


def test_what_it_hands_in_is_acknowledged_with_a_receipt(file, capsys):
    here = school()
    status, told = ran(file, "--as", here.student.username)
    made = Attempt.objects.get()
    assert status == 0
    assert (told["receipt"], told["sha256"], told["attempt"]) == (str(made.receipt), made.sha256, 1)
    assert (made.through, made.submission.student) == ("command line", here.student)
    assert made.judgings.get().state == "waiting"
    assert str(made.receipt) in capsys.readouterr().err
    assert "checks" not in told


def test_it_waits_for_the_verdict_and_shows_what_its_student_may_see(file, monkeypatch, capsys):
    here = school()
    slept = judged_meanwhile(monkeypatch, lambda made: judge(made, ONE_WRONG, real_now()))
    status, told = ran(file, "--as", here.student.username, "--wait")
    screen = capsys.readouterr().err
    assert status == 1
    assert slept == [command.LOOK_EVERY]
    assert "waiting, 1 in the queue" in screen
    assert "What friday teaches." in screen
    assert "again: manage.py lab wednesday" in screen
    assert [one["outcome"] for one in told["checks"]] == ["passed", "failed", None, None]
    assert told["points"] is None
    assert "secret" not in screen + json.dumps(told)
    assert "What later teaches." not in screen


def test_a_check_that_is_not_shown_decides_no_exit_status(file, monkeypatch):
    here = school()
    judged_meanwhile(monkeypatch, lambda made: judge(made, ALL_RIGHT, real_now()))
    assert ran(file, "--as", here.student.username, "--wait")[0] == 0


def test_released_points_are_shown(file, monkeypatch, capsys):
    here = school()
    review.release(here.assignment, by=here.teacher, now=real_now())
    judged_meanwhile(monkeypatch, lambda made: judge(made, ALL_RIGHT, real_now()))
    status, told = ran(file, "--as", here.student.username, "--wait")
    assert (status, told["points"], told["of"]) == (1, 3, 4)
    assert "points: 3 of 4" in capsys.readouterr().err


def test_what_was_parked_or_takes_too_long_ends_without_a_verdict(file, monkeypatch, capsys):
    here = school()
    judged_meanwhile(monkeypatch, lambda made: None)
    status, told = ran(file, "--as", here.student.username, "--wait", "--patience", "0.01")
    assert (status, told["state"]) == (3, "waiting")
    said = capsys.readouterr().err
    assert "will be judged" in said
    assert "No judge was seen yet." in said
    break_off(Attempt.objects.get(), real_now())
    there = school("Thursday")
    monkeypatch.setattr(
        command, "real_sleep", lambda _: break_off(Attempt.objects.get(submission__student=there.student), real_now())
    )
    status, told = ran(file, "--as", there.student.username, "--wait")
    assert (status, told["state"]) == (3, "parked")
    assert "an instructor has it. It costs you no attempt." in capsys.readouterr().err


def test_what_is_parked_too_often_is_not_said_to_cost_nothing(file, monkeypatch, capsys):
    here = school()
    for _ in range(queue.GIVEN_BACK):
        break_off(here.hand_in(real_now()), real_now())
    monkeypatch.setattr(command, "real_sleep", lambda _: break_off(Attempt.objects.latest("number"), real_now()))
    assert ran(file, "--as", here.student.username, "--wait")[1]["state"] == "parked"
    told = capsys.readouterr().err
    assert ("an instructor has it." in told, "costs you no attempt" in told) == (True, False)


def test_a_student_of_two_classes_says_which(file):
    here, there = school(), school("Thursday")
    Enrolment.objects.create(of=there.of, student=here.student, since=OPENS)
    name = here.student.username
    assert refused(file, "--as", name).endswith("in 2: say --class with one of Thursday, Wednesday.")
    assert "'Friday'" in refused(file, "--as", name, "--class", "Friday")
    assert ran(file, "--as", name, "--class", "Thursday")[1]["class"] == "Thursday"
    assert Attempt.objects.get().submission.assignment == there.assignment


def test_what_is_refused_is_refused_with_its_sentence_and_nothing_is_handed_in(file, tmp_path):
    here = school()
    closed = school("Thursday", due_at=real_now() - WEEK / 2)
    wrong = tmp_path / "wrong.json"
    wrong.write_text(json.dumps({"exercise": "advisory", "answers": {**RIGHT, "shelf": "two"}}))
    name = here.student.username
    assert "nobody with the username 'ghost'" in refused(file, "--as", "ghost")
    assert "ask an instructor to enrol them" in refused(file, "--as", here.teacher.username)
    assert "deadline is over" in refused(file, "--as", closed.student.username)
    assert "\n  shelf: " in refused(wrong, "--as", name)
    assert "can't be read" in refused(tmp_path / "away.toml", "--as", name)
    assert "There is no exercise 'slots'" in refused(file, "--as", name, exercise="slots")
    assert not Attempt.objects.exists()


def test_a_file_that_answers_another_exercise_is_not_handed_in(file, monkeypatch):
    here = school()
    other = type("Other", (), {"slug": "slot"})
    monkeypatch.setattr(command, "exercise", lambda slug: other)
    assert "answers advisory, not slot" in refused(file, "--as", here.student.username, exercise="slot")
