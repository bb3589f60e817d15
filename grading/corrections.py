"""Points that a person wrote into the gradebook's file. Nothing else of a file is taken, and nothing unseen.

A row is compared with what stood there when it was exported (its stamp) and with what stands there now:

    file as exported                     -> nothing, whatever became of it meanwhile
    edited, and here as exported         -> a correction
    edited, and here as in the file      -> nothing: it was imported already
    edited, and here something third     -> a conflict, which a person settles

Arbiter: the attempt's row lock, under which the stamp is compared once more before anything is written.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction

from grading import review, sight
from grading.cells import Line, even, lines_of, stamp
from grading.grade import WORK, items_of
from grading.models import Attempt
from grading.review import LONGEST, NotAReview

TAKEN_BACK = "Taken back in the gradebook’s file."
FIXED = ("class", "student", "exercise", "attempt", "outcome", "machine", "of")


@dataclass(frozen=True)
class Correction:
    """One cell to be changed. `points` None: the machine's again; `was`: the stamp of what it replaces."""

    attempt: int
    check: str
    points: int | None
    reason: str
    was: str


@dataclass(frozen=True)
class Difference:
    """A row of the file beside what stands here, for the eye. `row`: its number in the file, the heading being 1."""

    row: int
    line: Line
    correction: Correction


@dataclass(frozen=True)
class Problem:
    """A row of which nothing is taken. Says why."""

    row: int
    sentence: str


@dataclass
class Reading:
    """What importing a file would do."""

    corrections: list[Difference] = field(default_factory=list)
    conflicts: list[Difference] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    same: int = 0


class _Wrong(ValueError):
    """This row."""


def read(rows: Sequence[dict[str, str]], *, by: Any) -> Reading:
    """Of the classes that this person teaches; a row of another class is a problem, as one of none is."""
    here, reading, seen = _here(rows, by), Reading(), set()
    for number, row in enumerate(rows, 2):
        key = (row["receipt"].lower(), row["check"])
        try:
            if key in seen:
                raise _Wrong("This check stood in an earlier row already: leave one of them.")
            seen.add(key)
            if key not in here:
                raise _Wrong("No check of an attempt in a class of yours has this receipt and this name.")
            _sort(reading, number, row, here[key])
        except _Wrong as wrong:
            reading.problems.append(Problem(number, str(wrong)))
    return reading


def _here(rows: Iterable[dict[str, str]], by: Any) -> dict[tuple[str, str], Line]:
    receipts = {receipt for row in rows if (receipt := _uuid(row["receipt"]))}
    found = sight.attempts(by).filter(receipt__in=receipts, submission__assignment__of__in=sight.taught(by))
    found = found.defer("answers").prefetch_related(*WORK)
    return {(str(one.receipt), line.check): line for one in found for line in lines_of(one)}


def _uuid(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None


def _sort(reading: Reading, number: int, row: dict[str, str], line: Line) -> None:
    """Into the reading. Raises _Wrong."""
    _demand_untouched(row, line)
    points, reason = _points(row["person"], line), row["reason"]
    if points == line.person and (points is None or reason == even(line.reason)):
        if points is None and reason and row["stamp"] == line.stamp:
            raise _Wrong("There is a reason and no points: write them into the column person.")
        reading.same += 1
    elif stamp(points, reason) == row["stamp"]:
        reading.same += 1
    else:
        correction = _correction(line, points, reason)
        into = reading.corrections if row["stamp"] == line.stamp else reading.conflicts
        into.append(Difference(number, line, correction))


def _demand_untouched(row: dict[str, str], line: Line) -> None:
    submission = line.attempt.submission
    stands = (
        submission.assignment.of.name,
        submission.student.get_username(),
        submission.assignment.exercise,
        line.attempt.number,
        line.outcome,
        line.machine,
        line.of,
    )
    for name, value in zip(FIXED, stands, strict=True):
        if not _alike(row[name], even(str(value))):
            raise _Wrong(
                f"The column {name} says “{row[name]}”, and here it is “{value}”: nothing but person and reason can "
                "be changed by a file. Where it was judged over again meanwhile, export it anew."
            )


def _alike(one: str, other: str) -> bool:
    """A spreadsheet makes 7 of a student who is called 007."""
    return one == other or (one.isdecimal() and other.isdecimal() and int(one[:18]) == int(other[:18]))


def _points(text: str, line: Line) -> int | None:
    if not text:
        return None
    if not (text.isascii() and text.isdecimal() and len(text) < 6 and int(text) <= line.of):
        raise _Wrong(f"“{text}” is no number of points from 0 to {line.of}: write one, or nothing for the machine’s.")
    return int(text)


def _correction(line: Line, points: int | None, reason: str) -> Correction:
    if points is None and reason in ("", even(line.reason)):
        reason = TAKEN_BACK
    if not reason:
        raise _Wrong("Say why in the column reason: a student may ask.")
    if len(reason) > LONGEST["reason"]:
        raise _Wrong(f"The reason is longer than {LONGEST['reason']} characters: shorten it.")
    return Correction(line.attempt.pk, line.check, points, reason, line.stamp)


@dataclass
class Done:
    """How many were written, and why the others were not."""

    written: int = 0
    refused: list[str] = field(default_factory=list)


def apply(corrections: Iterable[Correction], *, by: Any, now: datetime) -> Done:
    """Those whose cell is still as it was seen; somebody else's word is never written over. Raises NotYours."""
    done = Done()
    with transaction.atomic():
        for one in sorted(corrections, key=lambda one: (one.attempt, one.check)):  # locks in one order everywhere
            try:
                _write(one, by, now)
                done.written += 1
            except NotAReview as refused:
                done.refused.append(str(refused))
    return done


def _write(one: Correction, by: Any, now: datetime) -> None:
    rows = Attempt.objects.select_for_update(of=("self",), no_key=True)
    attempt = rows.select_related("submission__assignment__of", "submission__student").get(pk=one.attempt)
    sight.demand_teaches(by, attempt.submission.assignment.of)
    item = items_of(attempt).get(one.check)
    if (stamp(item.points, item.reason) if item else stamp(None, "")) != one.was:
        raise NotAReview(f"{attempt}, {one.check}: somebody gave other points meanwhile. Export it anew and look.")
    if one.points is None:
        review.withdraw(attempt, one.check, one.reason, by=by, now=now)
    else:
        review.override(attempt, one.check, one.points, one.reason, by=by, now=now)
