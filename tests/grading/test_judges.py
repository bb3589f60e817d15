"""The row of a box's judge: what its desk found last, and when it looked for work."""

import pytest

from grading import judges
from grading.models import Judge
from tests.fakes import Boxes
from tests.grading.school import DAY, NOON, real_commits

pytestmark = pytest.mark.django_db


def rows() -> list[tuple[object, ...]]:
    return list(Judge.objects.values_list("box", "seen_at", "lacking", "together"))


def test_a_box_has_one_row_and_its_last_word_stands() -> None:
    judges.opened("box-a", "No namespaces.", False, NOON)
    judges.opened("box-b", "", False, NOON)
    judges.opened("box-a", "", True, NOON + DAY)
    assert rows() == [("box-a", NOON + DAY, "", True), ("box-b", NOON, "", False)]


def test_a_look_moves_the_moment_forward_and_says_nothing_of_a_box_that_never_opened() -> None:
    judges.looked("box-a", NOON)
    assert rows() == []
    judges.opened("box-a", "No namespaces.", False, NOON)
    for moment in (NOON + DAY, NOON):
        judges.looked("box-a", moment)
    assert rows() == [("box-a", NOON + DAY, "No namespaces.", False)]


@real_commits
def test_two_workers_of_a_box_at_once_make_one_row() -> None:
    with Boxes(4) as boxes:
        boxes.run(*[lambda: judges.opened("box-a", "", True, NOON)] * 4)
    assert rows() == [("box-a", NOON, "", True)]
