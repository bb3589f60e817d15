"""The gradebook of a class: students by exercise, in each cell the grade as it stands. For its instructors."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from grading.grade import MADE, NOTHING, Points, counting, grade_of
from grading.models import Assignment, Attempt, Class, Release, Submission
from grading.sight import demand_teaches


class Stage(StrEnum):
    """How far one student's work on one exercise is."""

    NOTHING = "nothing handed in"
    WAITS = "waits for the judge"
    OPEN = "incomplete"
    COMPLETE = "complete"


@dataclass(frozen=True)
class Cell:
    """Where a student meets an exercise. `attempt`: the one that counts, else the last one, None where there is none;
    `points` are without meaning before the stage is at least `OPEN`.
    """

    assignment: Assignment
    stage: Stage
    points: Points
    attempt: Attempt | None
    made: int
    released: bool

    @property
    def graded(self) -> bool:
        return self.stage in (Stage.OPEN, Stage.COMPLETE)


@dataclass(frozen=True)
class Row:
    """One student; `left`: no longer enrolled, and their work is still there."""

    student: Any
    cells: Sequence[Cell]
    left: bool = False

    @property
    def total(self) -> int:
        return sum(cell.points.total for cell in self.cells if cell.graded)


@dataclass(frozen=True)
class Book:
    """One class; `assignments` are the columns, in the order of their deadlines."""

    of: Class
    assignments: Sequence[Assignment]
    rows: Sequence[Row]


def gradebook(of: Class, *, by: Any) -> Book:
    """Everybody who is enrolled or has handed something in, in a number of queries that does not grow with the class.
    Raises NotYours.
    """
    demand_teaches(by, of)
    columns = list(of.assignments.select_related("of"))
    shown = set(Release.objects.filter(assignment__of=of, undone_at=None).values_list("assignment", flat=True))
    work = {(one.student_id, one.assignment_id): one for one in _work(of)}
    enrolled = {one.student_id: one.student for one in of.enrolments.select_related("student")}
    people = {**{one.student_id: one.student for one in work.values()}, **enrolled}
    rows = [
        Row(
            student,
            [_cell(column, work.get((pk, column.pk)), column.pk in shown) for column in columns],
            pk not in enrolled,
        )
        for pk, student in people.items()
    ]
    return Book(of, columns, sorted(rows, key=lambda row: row.student.get_username()))


def _work(of: Class) -> list[Submission]:
    rows = Submission.objects.filter(assignment__of=of).select_related("assignment__of", "student")
    return list(rows.prefetch_related(*MADE))


def _cell(assignment: Assignment, submission: Submission | None, released: bool) -> Cell:
    made = list(submission.made.all()) if submission else []
    if submission is None or not made:
        return Cell(assignment, Stage.NOTHING, NOTHING, None, 0, released)
    attempt, points = counting(submission), grade_of(submission)
    if attempt is None:
        last = max(made, key=lambda one: one.number)
        return Cell(assignment, Stage.WAITS, NOTHING, last, len(made), released)
    return Cell(assignment, _stage(points), points, attempt, len(made), released)


def _stage(points: Points) -> Stage:
    return Stage.COMPLETE if points.complete else Stage.OPEN
