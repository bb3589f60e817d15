"""Schedules that failed once, and must be found to fail again: `tests/schedules`, a file each."""

import json
from pathlib import Path

import pytest

from exercises.lab.database import Database
from exercises.scenarios.exploration import read, replay, written

SAVED = sorted((Path(__file__).parent.parent / "schedules").glob("*.json"))


def test_there_are_some() -> None:
    assert len(SAVED) >= 9


@pytest.mark.parametrize("path", SAVED, ids=lambda path: path.stem)
def test_it_fails_as_it_did(database: Database, path: Path) -> None:
    """To the letter. Where it says that it diverged, the code does something else now: look, then record it anew."""
    saved = json.loads(path.read_text())
    played = replay(database, saved["schedule"])
    assert list(played.wrong) == saved["wrong"] != []
    assert written(*read(saved["schedule"])[:2], played.taken) == saved["schedule"]
