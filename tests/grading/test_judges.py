"""The row of a box's judge: what its desk found last, and when it looked for work."""

import pytest

from grading import judges, queue
from grading.models import Judge
from tests.fakes import Boxes
from tests.grading.school import DAY, MINUTE, NOON, School, claimed, real_commits

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


def test_one_is_seen_while_it_works_and_missed_where_something_waits_and_none_was_seen() -> None:
    """A long check is no silence; neither is an empty queue, nor the first moments of what waits."""
    assert judges.last_word(NOON) == "No judge was seen yet."
    assert not judges.missed(NOON)
    School().hand_in(NOON)
    assert [judges.missed(NOON + after) for after in (MINUTE, 2 * MINUTE)] == [False, True]
    judges.opened("box-a", "", True, NOON + 2 * MINUTE)
    assert [judges.missed(NOON + after * MINUTE) for after in (2, 3, 4)] == [False, False, True]
    taken = claimed(later := NOON + DAY)
    assert judges.last_seen(later + MINUTE / 60) == later + MINUTE / 60
    assert not judges.missed(later)
    queue.give_back(taken, "The desk stopped.", later)
    assert judges.last_word(later, "Europe/London") == (
        "A judge was last seen on Tue 10 Mar 2026, 12:02:00 (Europe/London)."
    )
    assert judges.missed(later)


@real_commits
def test_two_workers_of_a_box_at_once_make_one_row() -> None:
    with Boxes(4) as boxes:
        boxes.run(*[lambda: judges.opened("box-a", "", True, NOON)] * 4)
    assert rows() == [("box-a", NOON, "", True)]
