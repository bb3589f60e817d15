"""An answer as a file: TOML (or JSON) that names its exercise, with the answers beside it."""

import json
import tomllib
from pathlib import Path
from typing import Any

from exercises.handed.answers import MOST, Answers, read
from exercises.handed.exercise import Exercise, exercise

EXAMPLE = 'exercise = "advisory" at its top, and below it a table [answers]'
LONGEST = 4 * MOST  # bytes of a file: a character of an answer may take four


class NotAPaper(ValueError):
    """The file can't be read as an answer. Says what it should look like."""


def on_paper(file: Path) -> tuple[Exercise, dict[str, Any]]:
    """Whose answer it is, and what it says, not yet read by the exercise. Raises NotAPaper, NoExercise."""
    try:
        with file.open("rb") as opened:
            raw = opened.read(LONGEST + 1)
    except OSError as away:
        raise NotAPaper(f"{file} can't be read: {away.strerror}.") from away
    if len(raw) > LONGEST:
        raise NotAPaper(f"{file} is longer than any answer: {LONGEST // 1024} KiB are read at the most.")
    kind, loads = ("JSON", json.loads) if file.suffix == ".json" else ("TOML", tomllib.loads)
    try:
        told = loads(raw.decode())
    except (ValueError, RecursionError) as garbled:
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
