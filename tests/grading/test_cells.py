"""The cells of the gradebook's file: none of them is a formula, and what is no gradebook is not taken for one."""

import csv
import io
import zipfile

import openpyxl
import pytest

from grading import review
from grading.cells import LARGEST, NotAGradebook, even, lines_as, plain, rows_of, safe, totals_as
from grading.gradebook import gradebook
from tests.grading.book import counts, exported, read
from tests.grading.school import FAILED, NOON, PASSED, Said, School

pytestmark = pytest.mark.django_db
DANGEROUS = ["=1+1", "==1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "'=1", "''=1", "=cmd|' /C calc'!A0"]


@pytest.mark.parametrize("text", DANGEROUS)
def test_what_a_spreadsheet_would_reckon_with_begins_with_an_apostrophe_and_comes_back_as_it_was(text):
    assert safe(text).startswith("'")
    assert plain(safe(text)) == text


@pytest.mark.parametrize("text", ["", "Half right.", "3", "'tis", "a=b", "O'Brien"])
def test_other_text_is_left_alone(text):
    assert safe(text) == plain(text) == text


@pytest.mark.parametrize("kind", ["csv", "xlsx"])
def test_no_cell_of_a_file_is_a_formula_whatever_people_are_called(kind):
    school = School("=HYPERLINK(1)")
    student = school.enrolled("+cmd")
    review.override(school.judged(student=student), "refused", 1, "@SUM(A1)", by=school.teacher, now=NOON)
    book = gradebook(school.of, by=school.teacher)
    for file in (lines_as(kind, book), totals_as(kind, book)):
        if kind == "csv":
            cells = [cell for row in csv.reader(io.StringIO(file.decode("utf-8-sig"))) for cell in row]
        else:
            sheet = openpyxl.load_workbook(io.BytesIO(file)).active
            assert "f" not in {cell.data_type for row in sheet for cell in row}
            cells = [str(cell.value or "") for row in sheet for cell in row]
        assert "'=HYPERLINK(1)" in cells
        assert "'+cmd" in cells
        assert not [cell for cell in cells if cell[:1] in ("=", "+", "-", "@", "\t", "\r")]
    assert counts(read(school, exported(school, kind))) == (0, 0, 0, 3)


def test_a_file_has_a_row_for_each_check_of_the_attempts_that_count():
    school = School()
    school.judged({"boxes": Said(FAILED, 0, 3), "refused": Said(FAILED, 0, 2), "friday": Said(PASSED, 3, 3)})
    best = school.judged()
    review.override(best, "refused", 1, "Half right.", by=school.teacher, now=NOON)
    school.hand_in(student=school.enrolled("waits"))
    rows = rows_of(exported(school))
    assert {row["receipt"] for row in rows} == {str(best.receipt)}
    assert [(row["check"], row["outcome"], row["machine"], row["person"], row["of"]) for row in rows] == [
        ("boxes", "passed", "3", "", "3"),
        ("refused", "failed", "0", "1", "2"),
        ("friday", "passed", "3", "", "3"),
    ]
    assert {(row["class"], row["student"], row["exercise"], row["attempt"]) for row in rows} == {
        ("Wednesday", "student-Wednesday", "advisory", "2")
    }
    assert rows[1]["reason"] == "Half right."


def test_points_are_numbers_in_a_workbook():
    school = School()
    school.judged()
    sheet = openpyxl.load_workbook(io.BytesIO(exported(school, "xlsx"))).active
    heads = [cell.value for cell in sheet[1]]
    assert sheet.cell(2, heads.index("machine") + 1).value == 3


def test_totals_leave_a_cell_empty_that_has_no_points_yet():
    school = School()
    school.judged()
    school.enrolled("idle")
    rows = list(
        csv.DictReader(io.StringIO(totals_as("csv", gradebook(school.of, by=school.teacher)).decode("utf-8-sig")))
    )
    assert [(row["student"], row["advisory"], row["advisory: state"], row["points"]) for row in rows] == [
        ("idle", "", "nothing handed in", "0"),
        ("student-Wednesday", "6", "complete", "6"),
    ]


@pytest.mark.parametrize(
    "file", [b"", b"a,b\n1,2\n", b"PK\x03\x04 no workbook", b"\xff\xfe\x00", b"x" * (LARGEST + 1)]
)
def test_what_is_no_gradebook_is_refused_with_a_sentence(file):
    with pytest.raises(NotAGradebook):
        rows_of(file)


def test_a_workbook_that_would_fill_the_memory_is_not_unpacked():
    bomb = io.BytesIO()
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("xl/worksheets/sheet1.xml", b" " * 41_000_000)
    with pytest.raises(NotAGradebook, match="too large"):
        rows_of(bomb.getvalue())


def test_even_text_is_the_same_whoever_ends_its_lines():
    assert even(" a\r\nb\rc\x07 ") == "a\nb\nc"
