"""`manage.py judge`: what it prints, and how it ends."""

import json
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from exercises.handed.exercise import Exercise, exercise
from exercises.lab.database import Database
from marlow.management.commands import judge
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
        ([], "one of the two"),
        (["a.toml", "--known"], "one of the two"),
        (["nowhere.toml"], "can't be read"),
        (["--known", "nothing"], "There is no exercise 'nothing'"),
    ],
)
def test_what_makes_no_sense_is_told(words: list[str], says: str, monkeypatch: pytest.MonkeyPatch) -> None:
    @contextmanager
    def unopened() -> Any:
        raise AssertionError("nothing is to be judged")
        yield

    monkeypatch.setattr(judge, "laboratory", unopened)
    with pytest.raises(CommandError, match=says):
        call_command("judge", *words)
