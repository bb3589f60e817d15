"""An answer as a file: TOML (or JSON) that names its exercise, with the answers beside it."""

import json
import tomllib
from pathlib import Path
from typing import Any

from exercises.handed.answers import MOST, Answers, read
from exercises.handed.exercise import Exercise, exercise

EXAMPLE = 'exercise = "advisory" at its top, and below it a table [answers]'


class NotAPaper(ValueError):
    """The file can't be read as an answer. Says what it should look like."""


def on_paper(file: Path) -> tuple[Exercise, dict[str, Any]]:
    """Whose answer it is, and what it says, not yet read by the exercise. Raises NotAPaper, NoExercise."""
    try:
        with file.open("rb") as opened:
            raw = opened.read(4 * MOST + 1)
        if len(raw) > 4 * MOST:
            raise NotAPaper(f"{file} is longer than any answer: {4 * MOST // 1024} KiB are read at the most.")
        text = raw.decode()
        told = json.loads(text) if file.suffix == ".json" else tomllib.loads(text)
    except OSError as away:
        raise NotAPaper(f"{file} can't be read: {away.strerror}.") from away
    except (ValueError, RecursionError) as garbled:
        if isinstance(garbled, NotAPaper):
            raise
        kind = "JSON" if file.suffix == ".json" else "TOML"
        raise NotAPaper(f"{file} is no {kind} ({garbled}): write {EXAMPLE}.") from garbled
    if not isinstance(told, dict) or not isinstance(told.get("exercise"), str):
        raise NotAPaper(f"{file} names no exercise: write {EXAMPLE}.")
    if not isinstance(told.get("answers"), dict):
        raise NotAPaper(f"{file} has no answers: write {EXAMPLE}.")
    return exercise(told["exercise"]), told["answers"]


def answers_in(file: Path) -> tuple[Exercise, Answers]:
    """Raises NotAPaper, NoExercise, NotAnswers."""
    found, given = on_paper(file)
    return found, read(found.answers, given)
