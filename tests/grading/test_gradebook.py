"""The gradebook: every student's grade in its place, however many there are, and only for who teaches them."""

import pytest
from django.core.exceptions import PermissionDenied
from django.db import connection
from django.test.utils import CaptureQueriesContext

from grading import review
from grading.cells import lines_as, rows_of, totals_as
from grading.corrections import read
from grading.gradebook import Book, Cell, Stage, gradebook
from grading.models import Assignment, Enrolment
from tests.grading.school import DAY, DUE, FAILED, INSTRUCTOR, NOON, OPENS, PASSED, Said, School, break_off, person

pytestmark = pytest.mark.django_db


def book_of(school: School) -> Book:
    return gradebook(school.of, by=school.teacher)


def cell_of(school: School, student=None) -> Cell:
    (row,) = [row for row in book_of(school).rows if row.student == (student or school.student)]
    return row.cells[0]


def test_a_cell_has_the_grade_of_the_attempt_that_counts():
    school = School()
    best = school.judged()
    school.judged({"boxes": Said(FAILED, 0, 3), "refused": Said(FAILED, 0, 2), "friday": Said(PASSED, 3, 3)})
    cell = cell_of(school)
    assert (cell.stage, cell.points.total, cell.points.of, cell.made) == (Stage.COMPLETE, 6, 8, 2)
    assert cell.attempt == best


def test_what_waits_is_no_nought_and_what_is_open_is_incomplete():
    school = School()
    assert (cell_of(school).stage, cell_of(school).attempt) == (Stage.NOTHING, None)
    attempt = school.hand_in()
    assert (cell_of(school).stage, cell_of(school).attempt) == (Stage.WAITS, attempt)
    assert not cell_of(school).graded
    break_off(attempt)
    assert cell_of(school).stage == Stage.OPEN
    other = school.enrolled("other")
    school.judged({"essay": Said(INSTRUCTOR, 0, 4), "boxes": Said(PASSED, 3, 3)}, student=other)
    cell = cell_of(school, other)
    assert (cell.stage, cell.points.total, cell.points.of) == (Stage.OPEN, 3, 7)


def test_lateness_and_a_persons_points_and_the_release_are_in_the_cell():
    school = School(rules={"late_days": 3, "late_percent": 25})
    attempt = school.judged(now=DUE + DAY / 2)
    review.override(attempt, "refused", 2, "It is right.", by=school.teacher, now=NOON)
    cell = cell_of(school)
    assert (cell.points.machine, cell.points.person, cell.points.late, cell.points.total) == (6, 2, 2, 6)
    assert not cell.released
    review.release(school.assignment, by=school.teacher, now=NOON)
    assert cell_of(school).released


def test_everybody_of_the_class_has_a_row_and_who_left_keeps_theirs():
    school, other = School(), School("Thursday")
    other.judged()
    idle = school.enrolled("idle")
    school.judged()
    Enrolment.objects.get(of=school.of, student=school.student).delete()
    Assignment.objects.create(of=school.of, exercise="slot", opens_at=OPENS, due_at=DUE + DAY)
    book = book_of(school)
    assert [(row.student, row.left) for row in book.rows] == [(idle, False), (school.student, True)]
    assert [one.exercise for one in book.assignments] == ["advisory", "slot"]
    assert [cell.stage for cell in book.rows[1].cells] == [Stage.COMPLETE, Stage.NOTHING]
    assert book.rows[1].total == 6


def test_the_number_of_queries_does_not_grow_with_the_class():
    school = School()

    def queries() -> int:
        with CaptureQueriesContext(connection) as seen:
            book = book_of(school)
            totals_as("csv", book)
            read(rows_of(lines_as("csv", book)), by=school.teacher)
        return len(seen)

    review.override(school.judged(), "refused", 1, "So.", by=school.teacher, now=NOON)
    few = queries()
    for number in range(4):
        student = school.enrolled(f"more-{number}")
        for _ in range(2):
            attempt = school.judged(student=student)
            review.override(attempt, "refused", 1, "So.", by=school.teacher, now=NOON)
        break_off(school.hand_in(student=student))
    assert queries() == few


@pytest.mark.parametrize("stranger", ["student", "operator", "another teacher"])
def test_only_who_teaches_the_class_opens_its_book(stranger):
    school = School()
    school.judged()
    people = {
        "student": lambda: school.student,
        "operator": lambda: person("operator", "Operator"),
        "another teacher": lambda: School("Thursday").teacher,
    }
    with pytest.raises(PermissionDenied, match="Only an instructor of Wednesday"):
        gradebook(school.of, by=people[stranger]())
