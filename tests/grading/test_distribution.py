"""How grades are spread: figures that agree with a spreadsheet, and the same picture for the same grades."""

from xml.etree import ElementTree

import pytest

from grading.distribution import picture, spreads
from grading.grade import NOTHING, Points
from grading.gradebook import Book, Cell, Row, Stage
from grading.models import Assignment, Class


def book(*totals: int | None, of: int = 10) -> Book:
    """A student for each; None: still incomplete. Of a class without a database."""
    school = Class(name="Wednesday")
    given = Assignment(pk=1, of=school, exercise="advisory")
    return Book(school, [given], [Row(f"student-{at}", [_cell(given, one, of)]) for at, one in enumerate(totals)])


def _cell(given: Assignment, total: int | None, of: int) -> Cell:
    if total is None:
        return Cell(given, Stage.OPEN, NOTHING, None, 1, False)
    return Cell(given, Stage.COMPLETE, Points(total, None, 0, total, of, True), None, 1, False)


@pytest.mark.parametrize(
    ("totals", "figures"),
    [
        ((), (0, None, None, None, None)),
        ((4,), (1, 4, 4, 4, 4)),
        ((2, 4), (2, 3, 2.5, 3, 3.5)),
        ((1, 2, 4, 7, 8, 9, 10), (7, 41 / 7, 3, 7, 8.5)),
    ],
)
def test_the_figures_are_a_spreadsheet_s(totals, figures):
    (spread,) = spreads(book(*totals))
    assert (spread.n, spread.mean, spread.lower, spread.median, spread.upper) == pytest.approx(figures)


def test_incomplete_grades_are_counted_and_kept_out_of_the_figures():
    (spread,) = spreads(book(10, None, None))
    assert (spread.n, spread.incomplete, spread.mean) == (1, 2, 10)
    assert sum(spread.bins) == 1


def test_full_points_are_in_the_last_tenth_and_none_in_the_first():
    (spread,) = spreads(book(0, 9, 10, 99, 100, 100, of=100))
    assert spread.bins == [2, 1, 0, 0, 0, 0, 0, 0, 0, 3]
    assert "the most, 3, are at 90–100 %" in spread.told
    assert spreads(book(0, of=0))[0].bins[0] == 1  # an exercise that is worth nothing


@pytest.mark.parametrize("totals", [(), (3,), (1, 5, 5, 10, None)])
def test_the_picture_is_the_same_for_the_same_grades_and_tells_no_date(totals):
    (spread,) = spreads(book(*totals))
    drawn = picture(spread)
    assert drawn == picture(spread)
    assert ElementTree.fromstring(drawn).tag.endswith("svg")
    assert "<dc:date>" not in drawn
    assert "prefers-color-scheme: dark" in drawn


def test_another_spread_is_another_picture():
    assert picture(spreads(book(1, 5))[0]) != picture(spreads(book(1, 6))[0])
