"""Failures of the judge: each further try waits longer, the third is the last, and none of them costs an attempt."""

from datetime import timedelta

import pytest

from exercises.handed.checks import Outcome
from grading import queue, regrade
from grading.models import Attempt, CheckResult, Judging, State
from tests.grading.school import AFTER, FAILED, NOON, UNDECIDED, VERSIONS, WELL, Said, School, claimed, state, told

pytestmark = pytest.mark.django_db
SECOND = timedelta(seconds=1)
HOUR = timedelta(hours=1)


def test_each_further_try_waits_twice_as_long() -> None:
    """Not every five seconds for ever."""
    School().hand_in()
    waits, now = [], NOON
    for _ in range(2):
        queue.give_back(claimed(now), "The desk stopped.", now)
        before, now = now, Judging.objects.get().not_before
        waits.append((now - before).total_seconds())
        assert queue.claim("box-a", now - SECOND) is None
    assert waits == [5, 10]


@pytest.mark.parametrize("way", ["given back", "reclaimed", "undecided"])
def test_the_third_failure_parks_it_where_an_instructor_sees_it_and_costs_nothing(way: str) -> None:
    attempt = School().hand_in()
    now = NOON
    for _ in range(3):
        taken = claimed(now)
        if way == "given back":
            queue.give_back(taken, "The desk stopped.", now)
        elif way == "undecided":
            queue.finish(taken, told({**WELL, "refused": Said(UNDECIDED, 0, 2)}), VERSIONS, now)
        else:
            assert queue.reclaim(now + HOUR) == 1
        now += 3 * HOUR
    judging = attempt.judgings.get()
    assert (judging.state, judging.tries) == (State.PARKED, 3)
    assert judging.failed
    assert Attempt.objects.get(pk=attempt.pk).costs is False
    assert queue.claim("box-a", AFTER) is None
    assert queue.reclaim(AFTER) == 0


def test_what_could_not_be_decided_is_tried_again_and_kept_with_the_last_try() -> None:
    """Two tries leave no results; the third leaves them, decided and not, and none of them is a zero."""
    attempt = School().hand_in()
    now = NOON
    for _ in range(3):
        assert CheckResult.objects.count() == 0
        queue.finish(claimed(now), told({**WELL, "refused": Said(UNDECIDED, 0, 2)}), VERSIONS, now)
        now += HOUR
    said = dict(attempt.judgings.get().results.values_list("name", "outcome"))
    assert said == {"boxes": Outcome.PASSED, "refused": Outcome.UNDECIDED, "friday": Outcome.PASSED}
    assert attempt.changes.get(what="refused").after == Outcome.UNDECIDED, "the history says no points"


def test_a_try_that_decides_after_one_that_did_not_counts_as_if_it_were_the_first() -> None:
    attempt = School().hand_in()
    queue.finish(claimed(), told({"boxes": Said(UNDECIDED, 0, 3)}), VERSIONS, NOON)
    assert state(attempt) == State.WAITING
    queue.finish(claimed(NOON + HOUR), told(), VERSIONS, NOON + HOUR)
    assert state(attempt) == State.DONE
    assert Attempt.objects.get(pk=attempt.pk).costs is True
    assert attempt.judgings.get().failed == ""


def test_a_parked_one_that_is_tried_again_starts_from_the_beginning() -> None:
    """Its results are replaced, and it is the student's attempt again."""
    attempt = School().hand_in()
    now = NOON
    for _ in range(3):
        queue.finish(claimed(now), told({"boxes": Said(UNDECIDED, 0, 3)}), VERSIONS, now)
        now += HOUR
    assert queue.unpark(attempt.judgings.get(), now) is True
    assert queue.unpark(attempt.judgings.get(), now) is False
    taken = claimed(now)
    assert taken.tries == 1
    queue.finish(taken, told({"boxes": Said(FAILED, 0, 3)}), VERSIONS, now)
    assert [one.outcome for one in attempt.judgings.get().results.all()] == [Outcome.FAILED]
    assert Attempt.objects.get(pk=attempt.pk).costs is True


def test_a_failed_regrade_costs_no_attempt_and_changes_no_grade() -> None:
    """What counts still counts while the judge fails at judging it over."""
    school = School()
    attempt = school.judged()
    made = regrade.begin([attempt], "one", "A check was wrong.", by=school.teacher, now=NOON + HOUR)
    now = NOON + HOUR
    for _ in range(3):
        queue.give_back(claimed(now), "The desk stopped.", now)
        now += HOUR
    assert made.judgings.get().state == State.PARKED
    assert Attempt.objects.get(pk=attempt.pk).costs is True
    assert state(attempt) == State.DONE


def test_a_dropped_regrade_is_not_judged() -> None:
    school = School()
    attempt = school.judged()
    made = regrade.begin([attempt], "one", "A check was wrong.", by=school.teacher, now=NOON + HOUR)
    assert queue.anything(NOON + HOUR) is True
    regrade.drop(made, by=school.teacher, now=NOON + HOUR)
    assert queue.anything(NOON + HOUR) is False
    assert queue.claim("box-a", NOON + 2 * HOUR) is None
