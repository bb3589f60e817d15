"""The gradebook's file, out and in again: what is taken of it, what is not, and that nothing is written over."""

import csv
import io

import openpyxl
import pytest
from django.core.exceptions import PermissionDenied

from grading import corrections, review
from grading.corrections import TAKEN_BACK
from grading.gradebook import gradebook
from grading.models import GradeChange, ReviewItem
from tests.fakes import Boxes
from tests.grading.book import counts, edited, exported, read
from tests.grading.school import INSTRUCTOR, NOON, Said, School, person, real_commits

pytestmark = pytest.mark.django_db


def imported(school: School, file: bytes, by=None) -> corrections.Done:
    seen = [one.correction for one in read(school, file, by).corrections]
    return corrections.apply(seen, by=by or school.teacher, now=NOON)


# --- In again ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["csv", "xlsx"])
def test_a_file_as_it_was_exported_changes_nothing(kind):
    school = School()
    attempt = school.judged()
    review.override(attempt, "refused", 1, "First line.\r\nSecond, with a bell \x07.", by=school.teacher, now=NOON)
    assert counts(read(school, exported(school, kind))) == (0, 0, 0, 3)


def test_edited_points_are_a_person_s_with_their_reason_and_in_the_history():
    school = School()
    attempt = school.judged()
    file = edited(exported(school), person="1", reason="Half right.")
    assert counts(read(school, file)) == (1, 0, 0, 2)
    assert not ReviewItem.objects.exists()  # reading writes nothing
    assert imported(school, file).written == 1
    item = ReviewItem.objects.get()
    assert (item.check_name, item.points, item.reason, item.machine) == ("refused", 1, "Half right.", 0)
    change = attempt.changes.exclude(by=None).get()
    assert (change.before, change.after, change.why, change.by) == (
        *("0 of 2, failed", "1 of 2", "Half right."),
        school.teacher,
    )


def test_importing_twice_changes_nothing():
    school = School()
    school.judged()
    file = edited(exported(school), person="1", reason="Half right.")
    imported(school, file)
    assert counts(read(school, file)) == (0, 0, 0, 3)
    assert imported(school, file).written == 0
    assert GradeChange.objects.exclude(by=None).count() == 1


@pytest.mark.parametrize(
    ("reason", "why"), [("", TAKEN_BACK), ("So.", TAKEN_BACK), ("It was right.", "It was right.")]
)
def test_emptied_points_are_the_machine_s_again(reason, why):
    school = School()
    attempt = school.judged()
    review.override(attempt, "refused", 1, "So.", by=school.teacher, now=NOON)
    file = edited(exported(school), person="", reason=reason)
    assert imported(school, file).written == 1
    assert not ReviewItem.objects.exists()
    assert attempt.changes.exclude(by=None).first().why == why
    assert imported(school, file).written == 0


def test_a_workbook_that_was_edited_in_a_spreadsheet_is_read_with_its_numbers():
    school = School()
    school.judged()
    book = openpyxl.load_workbook(io.BytesIO(exported(school, "xlsx")))
    heads = [cell.value for cell in book.active[1]]
    book.active.cell(3, heads.index("person") + 1).value = 2.0
    book.active.cell(3, heads.index("reason") + 1).value = "Right after all."
    book.active.cell(9, 1).value = None  # an empty row that was touched
    saved = io.BytesIO()
    book.save(saved)
    assert imported(school, saved.getvalue()).written == 1
    assert ReviewItem.objects.get().points == 2


def test_semicolons_are_read_as_well():
    school = School()
    school.judged()
    rows = list(csv.reader(io.StringIO(edited(exported(school), person="1", reason="So.").decode())))
    out = io.StringIO()
    csv.writer(out, delimiter=";").writerows(rows)
    assert imported(school, out.getvalue().encode()).written == 1


def test_what_somebody_gave_meanwhile_is_a_conflict_and_stays():
    school = School()
    attempt = school.judged()
    file = edited(exported(school), person="1", reason="Half right.")
    review.override(attempt, "refused", 2, "All right.", by=school.teacher, now=NOON)
    reading = read(school, file)
    assert counts(reading) == (0, 1, 0, 2)
    assert (reading.conflicts[0].line.person, reading.conflicts[0].correction.points) == (2, 1)
    assert imported(school, file).written == 0
    assert ReviewItem.objects.get().points == 2


def test_a_row_that_nobody_edited_does_not_undo_what_was_given_meanwhile():
    school = School()
    attempt = school.judged()
    file = exported(school)
    review.override(attempt, "refused", 2, "All right.", by=school.teacher, now=NOON)
    assert counts(read(school, file)) == (0, 0, 0, 3)


def test_points_given_between_the_look_and_the_writing_are_not_written_over():
    school = School()
    attempt = school.judged()
    seen = [one.correction for one in read(school, edited(exported(school), person="1", reason="So.")).corrections]
    review.override(attempt, "refused", 2, "All right.", by=school.teacher, now=NOON)
    done = corrections.apply(seen, by=school.teacher, now=NOON)
    assert done.written == 0
    assert "somebody gave other points meanwhile" in done.refused[0]
    assert ReviewItem.objects.get().points == 2


@real_commits
def test_two_imports_at_once_write_one_and_refuse_the_other():
    school = School()
    attempt = school.judged()
    files = [edited(exported(school), person=points, reason=f"{points}.") for points in ("1", "2")]
    seen = [[one.correction for one in read(school, file).corrections] for file in files]
    one, two = (lambda s=s: corrections.apply(s, by=school.teacher, now=NOON) for s in seen)
    with Boxes(2) as boxes:
        done = boxes.run_behind(attempt, one, two)
    assert sorted(each.written for each in done) == [0, 1]
    assert attempt.changes.exclude(by=None).count() == 1


# --- What is not taken ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cells", "sentence"),
    [
        ({"person": "3", "reason": "So."}, "from 0 to 2"),
        ({"person": "-1", "reason": "So."}, "from 0 to 2"),
        ({"person": "1.5", "reason": "So."}, "from 0 to 2"),
        ({"person": "two", "reason": "So."}, "from 0 to 2"),
        ({"person": "1" * 500, "reason": "So."}, "from 0 to 2"),
        ({"person": "1"}, "Say why"),
        ({"person": "1", "reason": "x" * 401}, "longer than 400"),
        ({"reason": "So."}, "a reason and no points"),
        ({"machine": "2"}, "The column machine says “2”"),
        ({"outcome": "passed"}, "The column outcome says “passed”"),
        ({"of": "20"}, "The column of says “20”"),
        ({"student": "somebody"}, "The column student says “somebody”"),
        ({"attempt": "7"}, "The column attempt says “7”"),
        ({"receipt": "no number"}, "No check of an attempt in a class of yours"),
        ({"receipt": "00000000-0000-4000-8000-000000000000"}, "No check of an attempt in a class of yours"),
    ],
)
def test_a_bad_row_gets_a_sentence_and_nothing_of_it_is_taken(cells, sentence):
    school = School()
    school.judged()
    file = edited(exported(school), **cells)
    reading = read(school, file)
    assert counts(reading) == (0, 0, 1, 2)
    assert reading.problems[0].row == 3
    assert sentence in reading.problems[0].sentence


def test_the_other_rows_are_taken_all_the_same():
    school = School()
    school.judged()
    file = edited(edited(exported(school), person="9", reason="So."), check="boxes", person="2", reason="So.")
    assert counts(read(school, file)) == (1, 0, 1, 1)
    assert imported(school, file).written == 1


def test_the_same_check_twice_in_a_file_is_told():
    school = School()
    school.judged()
    file = exported(school)
    assert counts(read(school, file + file.split(b"\n", 1)[1])) == (0, 0, 3, 3)


def test_rows_of_a_class_that_somebody_else_teaches_are_as_if_they_were_not_there():
    school, other = School(), School("Thursday")
    school.judged()
    file = edited(exported(school), person="1", reason="So.")
    assert counts(read(school, file, by=other.teacher)) == (0, 0, 3, 0)
    assert counts(read(school, file, by=school.student)) == (0, 0, 3, 0)


@pytest.mark.parametrize("role", ["student", "another teacher", "operator"])
def test_corrections_made_by_hand_are_written_by_nobody_but_an_instructor_of_the_class(role):
    school = School()
    school.judged()
    seen = [one.correction for one in read(school, edited(exported(school), person="1", reason="So.")).corrections]
    people = {
        "student": lambda: school.student,
        "another teacher": lambda: School("Thursday").teacher,
        "operator": lambda: person("operator", "Operator"),
    }
    with pytest.raises(PermissionDenied):
        corrections.apply(seen, by=people[role](), now=NOON)
    assert not ReviewItem.objects.exists()


def test_a_check_that_waits_for_a_person_can_be_given_its_points_by_file():
    school = School()
    school.judged({"essay": Said(INSTRUCTOR, 0, 4)})
    assert imported(school, edited(exported(school), check="essay", person="3", reason="Well said.")).written == 1
    cell = gradebook(school.of, by=school.teacher).rows[0].cells[0]
    assert (cell.stage.value, cell.points.total) == ("complete", 3)


def test_a_student_whose_name_is_a_number_survives_a_spreadsheet():
    school = School()
    school.judged(student=school.enrolled("007"))
    assert counts(read(school, edited(exported(school), student="7", person="1", reason="So."))) == (1, 0, 0, 2)
