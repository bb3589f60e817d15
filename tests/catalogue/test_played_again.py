"""The command beside a verdict decides the same answers again, and prints the run that decided them."""

import json
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import override_settings

from exercises.handed.answers import read
from exercises.handed.checks import ANSWERS, Outcome, Result, Shown
from exercises.handed.exercise import Exercise, exercise
from exercises.handed.paper import LONGEST, on_paper
from exercises.lab.database import Database
from grading.judge import judge
from grading.room import JudgesRoom
from marlow.clock import real_now
from marlow.management.commands import judge as command
from tests.grading.caller import Caller, school
from tests.grading.school import RIGHT, WELL
from tests.lab.conftest import database

__all__ = ["database"]


@pytest.fixture
def room(database: Database, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> JudgesRoom:
    """The tests' laboratory, which the command takes for its own; whoever writes a file writes it where it looks."""
    monkeypatch.setattr(command, "laboratory", lambda: nullcontext(database))
    monkeypatch.chdir(tmp_path)
    return JudgesRoom(lambda: nullcontext(database))


def results(slug: str, known: str, room: JudgesRoom) -> tuple[Exercise, dict[str, Any], dict[str, Result]]:
    found = exercise(slug)
    answers = next(one.answers for one in found.known() if one.name == known)
    return found, answers, {check.name: said for check, said in judge(found, read(found.answers, answers), room)}


def told(found: Exercise, answers: dict[str, Any], said: dict[str, Result]) -> str:
    """As the interface tells an attempt, evidence and all."""
    checks = [{"name": name, "evidence": result.evidence.as_json()} for name, result in said.items()]
    return json.dumps({"receipt": "…", "exercise": found.slug, "answers": answers, "checks": checks})


def played(words: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    capsys.readouterr()
    with pytest.raises(SystemExit) as ended:
        call_command(*words)
    return int(str(ended.value.code)), capsys.readouterr().out


@pytest.mark.parametrize(
    ("slug", "known", "by_an_order"),
    [
        ("slot", "wrong_two_transactions", {"bears"}),
        ("slot", "wrong_looked_before", {"bears"}),
        ("own-lock", "wrong_compared_here", {"own"}),
        ("own-lock", "wrong_expiry_later", {"dead", "honest"}),
        ("own-lock", "wrong_never_released", {"excludes", "own", "dead", "honest", "elsewhere"}),
        ("own-lock", "cheat_knows_the_figures", {"honest", "elsewhere"}),
    ],
)
def test_what_is_printed_is_the_very_run_that_decided(
    slug: str, known: str, by_an_order: set[str], room: JudgesRoom, capsys: pytest.CaptureFixture[str]
) -> None:
    found, answers, said = results(slug, known, room)
    assert {name for name, result in said.items() if result.evidence.schedule} == by_an_order
    Path(ANSWERS).write_text(told(found, answers, said))
    for name, result in said.items():
        words = result.evidence.again.split()
        if words[0] != "judge":
            continue  # the Wednesday under `lab`, which says so itself
        ended, printed = played(words, capsys)
        assert ended == int(result.outcome is not Outcome.PASSED)
        title, _, rest = printed.partition("\n")
        assert title.startswith(result.outcome.value), name
        assert rest == f"{result.evidence.text}\n"
        assert result.evidence.schedule in rest
        _, printed = played([*words, "--json"], capsys)
        (again,) = json.loads(printed.splitlines()[-1])
        assert again["evidence"]["schedule"] == result.evidence.schedule


def test_every_verdict_of_a_known_answer_has_its_command_and_fits_in_a_file(room: JudgesRoom) -> None:
    for slug in ("advisory", "slot", "own-lock"):
        found, answers, said = results(slug, "right", room)
        assert all(result.evidence.again for result in said.values()), slug
        assert len(told(found, answers, said).encode()) < LONGEST, slug


def test_the_command_that_is_printed_names_the_file_that_was_judged(
    room: JudgesRoom, capsys: pytest.CaptureFixture[str]
) -> None:
    file = Path("my answer.toml")
    file.write_bytes((exercise("own-lock").folder / "known" / "right.toml").read_bytes())
    _, printed = played(["judge", str(file)], capsys)
    assert "  again: manage.py judge 'my answer.toml' --check dead\n" in printed


def test_a_hidden_check_is_tried_by_its_name_alone_and_nobody_is_told_the_name(
    room: JudgesRoom, capsys: pytest.CaptureFixture[str]
) -> None:
    file = str(exercise("own-lock").folder / "known" / "cheat_knows_the_figures.toml")
    (hidden,) = [check for check in exercise("own-lock").checks if check.shown is Shown.HIDDEN]
    ended, printed = played(["judge", file], capsys)
    assert ended == 0
    assert hidden.title not in printed
    assert f"--check {hidden.name}" not in printed
    assert "Checks that are hidden until the release, and are not tried here: 1." in printed
    with pytest.raises(CommandError) as wrong:
        call_command("judge", file, "--check", "hidden-4")
    assert str(wrong.value) == "own-lock has no check 'hidden-4': take one of excludes, own, dead, honest."
    assert wrong.value.returncode == 2
    ended, printed = played(["judge", file, "--check", hidden.name], capsys)
    assert ended == 1
    assert hidden.title in printed


def test_a_check_is_of_a_file() -> None:
    with pytest.raises(CommandError, match="--check is of a file"):
        call_command("judge", "--known", "slot", "--check", "bears")


@pytest.mark.django_db
@override_settings(SECURE_SSL_REDIRECT=False)
def test_an_attempt_as_the_interface_tells_it_is_a_file_to_judge(tmp_path: Path) -> None:
    here = school()
    attempt = here.judged(WELL, real_now())
    file = tmp_path / ANSWERS
    file.write_text(json.dumps(Caller(here.teacher).get(f"attempts/{attempt.receipt}")))
    assert on_paper(file) == (exercise("advisory"), RIGHT)
