"""`manage.py judge`: what it prints, and how it ends."""

import json
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from exercises.handed.exercise import Exercise, catalogue, exercise
from exercises.lab.database import Database
from marlow.management.commands import judge
from marlow.servers.launcher import ServerError
from tests.grading.planted import forget, planted
from tests.lab.conftest import database

__all__ = ["database"]
KNOWN = exercise("advisory").folder / "known"


@pytest.fixture
def opened(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """The tests' laboratory in the place of one that the command would start."""
    monkeypatch.setattr(judge, "laboratory", lambda: nullcontext(database))


def judged(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, Any]:
    with pytest.raises(SystemExit) as ended:
        call_command("judge", *words, "--json")
    return int(str(ended.value.code)), json.loads(capsys.readouterr().out.splitlines()[-1])


@pytest.mark.usefixtures("opened")
@pytest.mark.parametrize(("name", "status"), [("right", 0), ("wrong_only_a_refused", 1)])
def test_an_answer_from_a_file_passes_or_not(name: str, status: int, capsys: pytest.CaptureFixture[str]) -> None:
    ended, results = judged(capsys, str(KNOWN / f"{name}.toml"))
    assert ended == status
    assert [result["outcome"] == "passed" for result in results] == [True, not status, True, not status]
    assert (
        results[1]["evidence"]["again"]
        == "lab wednesday --lock postgres-advisory --settle unguarded --question lookup"
    )


@pytest.mark.usefixtures("opened")
def test_a_verdict_that_is_not_the_expected_one_ends_with_status_1(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    ended, rows = judged(capsys, "--known", "advisory")
    assert ended == 0
    assert all(row["agrees"] for row in rows)
    right = next(known for known in exercise("advisory").known() if known.name == "right")
    other = replace(right, expected={**right.expected, "refused": ("passed", 1)})
    monkeypatch.setattr(Exercise, "known", lambda self: iter([other]))
    ended, rows = judged(capsys, "--known", "advisory")
    assert ended == 1
    assert [row["check"] for row in rows if not row["agrees"]] == ["refused"]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ([], "one of the four"),
        (["a.toml", "--known"], "one of the four"),
        (["--known", "--list"], "one of the four"),
        (["--blank", "nothing"], "There is no exercise 'nothing'"),
        (["--blank", "slot", "--list"], "one of the four"),
        (["nowhere.toml"], "can't be read"),
        (["--known", "nothing"], "There is no exercise 'nothing'"),
        ([__file__], "is no TOML"),
    ],
)
def test_what_can_not_be_judged_is_told_and_ends_with_status_2(words: list[str], says: str, unopened: None) -> None:
    assert says in refused(*words)


def refused(*words: str) -> str:
    with pytest.raises(CommandError) as ended:
        call_command("judge", *words)
    assert ended.value.returncode == 2
    return str(ended.value)


@pytest.fixture
def unopened(monkeypatch: pytest.MonkeyPatch) -> None:
    @contextmanager
    def laboratory() -> Any:
        raise AssertionError("nothing is to be judged")
        yield

    monkeypatch.setattr(judge, "laboratory", laboratory)


def test_what_is_no_answer_is_told_field_by_field_and_ends_with_status_2(tmp_path: Path, unopened: None) -> None:
    (tmp_path / "a.toml").write_text('exercise = "advisory"\n[answers]\nshelf = "full"\n')
    said = refused(str(tmp_path / "a.toml"))
    assert "This is no answer to that exercise.\n" in said
    assert "\n  shelf: " in said


def test_a_laboratory_that_does_not_start_ends_with_status_2(monkeypatch: pytest.MonkeyPatch) -> None:
    @contextmanager
    def away() -> Any:
        raise ServerError("It does not start.")
        yield

    monkeypatch.setattr(judge, "laboratory", away)
    assert refused(str(KNOWN / "right.toml")) == "It does not start."


def test_the_exercises_are_listed_in_the_order_of_the_course(tmp_path: Path, capsys: Any, unopened: None) -> None:
    """A folder that is added is in the list."""
    with planted(tmp_path):
        ended, rows = judged(capsys, "--list")
        assert [row["exercise"] for row in rows] == list(catalogue())
    assert ended == 0
    assert rows[-1] == {"exercise": "acting", "title": "Acting", "points": 5}


def test_one_that_can_not_be_read_is_told_with_its_cause(
    tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beside the others, which are listed and judged all the same; and the status is not that of a wrong answer."""
    monkeypatch.setattr(Exercise, "known", lambda self: iter(["right"]))
    monkeypatch.setattr(judge, "laboratory", lambda: nullcontext(None))
    monkeypatch.setattr(judge, "compare", lambda found, *_: [judge.Compared(found.slug, "right", "", "", "")])
    others = list(catalogue())
    cause = "The exercise 'acting' can't be read: SyntaxError: '(' was never closed"
    with planted(tmp_path):
        (tmp_path / "acting" / "checks.py").write_text("VERSION = (")
        forget()
        for word in ("--list", "--known"):
            with pytest.raises(SystemExit) as ended:
                call_command("judge", word, "--json")
            assert ended.value.code == 2
            said = capsys.readouterr()
            assert [row["exercise"] for row in json.loads(said.out.splitlines()[-1])] == others
            assert cause in said.err
        assert cause in refused("--known", "acting")


def test_a_blank_is_printed_to_be_filled_in_and_judged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], unopened: None
) -> None:
    """Nothing else is on standard output, and what is not filled in is told by its field."""
    with pytest.raises(SystemExit) as ended:
        call_command("judge", "--blank", "slot")
    (file := tmp_path / "answer.toml").write_text(capsys.readouterr().out)
    assert ended.value.code == 0
    assert "elected_once: " in refused(str(file))
