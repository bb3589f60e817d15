"""The queue of judgings: two at once never get the same one, and nothing is stuck or lost."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import transaction

from grading import queue, regrade
from grading.models import CheckResult, GradeChange, Judging, State
from tests.fakes import Boxes, outcomes, wait_for_waiters
from tests.grading.school import NOON, VERSIONS, School, claimed, crowd, real_commits, state, told

pytestmark = pytest.mark.django_db
SECOND = timedelta(seconds=1)
HOUR = timedelta(hours=1)


# --- Claims ---------------------------------------------------------------------------------------------------------


def test_a_claim_gives_a_token_a_lease_and_one_more_try(settings: Any) -> None:
    attempt = School().hand_in()
    taken = claimed()
    assert taken.attempt == attempt
    assert (taken.state, taken.tries, taken.box, taken.began_at) == (State.RUNNING, 1, "box-a", NOON)
    assert taken.token is not None
    assert taken.lease_until == NOON + timedelta(seconds=settings.GRADING_LEASE)
    assert queue.claim("box-b", NOON) is None


@real_commits
def test_two_that_claim_at_once_never_get_the_same() -> None:
    """Four boxes, twenty judgings, no pause: each is claimed once."""
    crowd(School(), 20)

    def until_nothing_is_left() -> list[int]:
        found = []
        while (taken := queue.claim("box", NOON + HOUR)) is not None:
            found.append(taken.pk)
        return found

    with Boxes(4) as boxes:
        taken = [pk for found in boxes.run(*[until_nothing_is_left] * 4) for pk in found]
    assert len(taken) == len(set(taken)) == 20
    assert set(Judging.objects.values_list("tries", flat=True)) == {1}


@real_commits
def test_a_judging_whose_row_somebody_holds_is_passed_over() -> None:
    """A review or a regrade that has it locked makes no worker wait."""
    first, second = crowd(School(), 2)
    with transaction.atomic(), Boxes(1) as boxes:
        Judging.objects.select_for_update().get(attempt=first)
        (taken,) = boxes.run(lambda: queue.claim("box-a", NOON + HOUR))
    assert taken.attempt_id == second.pk


def test_the_oldest_is_first_between_students_with_as_many_running() -> None:
    made = crowd(School(), 3)
    assert [claimed(NOON + HOUR).attempt for _ in made] == made


def test_a_student_with_many_attempts_does_not_starve_the_class() -> None:
    """Whoever has the fewest running comes first, however long the other's attempts have waited."""
    school = School()
    mine = [school.hand_in(NOON + n * SECOND) for n in range(5)]
    theirs = school.hand_in(NOON + HOUR, school.enrolled("late"))
    assert [claimed(NOON + 2 * HOUR).attempt for _ in range(3)] == [mine[0], theirs, mine[1]]


def test_a_student_has_no_more_than_the_cap_at_a_time(settings: Any) -> None:
    """And the next one when one of them has ended."""
    settings.GRADING_CAP = 2
    school = School()
    for n in range(5):
        school.hand_in(NOON + n * SECOND)
    first, _ = claimed(NOON + HOUR), claimed(NOON + HOUR)
    assert queue.claim("box-b", NOON + HOUR) is None
    queue.finish(first, told(), VERSIONS, NOON + HOUR)
    assert queue.claim("box-b", NOON + HOUR) is not None


@real_commits
def test_two_that_claim_at_once_do_not_pass_the_cap_together(settings: Any) -> None:
    """The second is seen to wait for the first, and counts what that one has taken."""
    settings.GRADING_CAP = 1
    school = School()
    for n in range(6):
        school.hand_in(NOON + n * SECOND)
    with Boxes(1) as boxes:
        with transaction.atomic():
            claimed(NOON + HOUR)
            other = boxes.start(lambda: queue.claim("box-b", NOON + HOUR))
            wait_for_waiters(1)
        assert outcomes(other) == [None]


def test_what_an_abandoned_worker_holds_does_not_count_for_the_cap(settings: Any) -> None:
    """Its lease is over: a student does not pay for a worker that died."""
    settings.GRADING_CAP = 1
    school = School()
    school.hand_in(NOON)
    second = school.hand_in(NOON + SECOND)
    claimed(NOON + SECOND)
    assert claimed(NOON + HOUR).attempt == second


def test_a_hand_in_comes_before_a_regrade() -> None:
    """A class that is judged over does not keep a student waiting."""
    school = School()
    old = school.judged()
    regrade.begin([old], "all", "Why not.", by=school.teacher, now=NOON + HOUR)
    new = school.hand_in(NOON + 2 * HOUR, school.enrolled("other"))
    assert claimed(NOON + 3 * HOUR).attempt == new


def test_the_place_in_the_queue_is_told_while_it_waits() -> None:
    first, second, third = (attempt.judgings.get() for attempt in crowd(School(), 3))
    assert [queue.position(one) for one in (first, second, third)] == [1, 2, 3]
    claimed(NOON + HOUR)
    for one in (first, second, third):
        one.refresh_from_db()
    assert [queue.position(one) for one in (first, second, third)] == [None, 1, 2]


def test_the_places_are_those_in_which_it_is_claimed() -> None:
    """A student who hands in behind a regrade of the class is the next one, and reads so."""
    school = School()
    attempts = [school.judged(student=school.enrolled(f"earlier {number}")) for number in range(3)]
    asked = regrade.begin(attempts, "the class", "Wrong.", by=school.teacher, now=NOON)
    late = school.hand_in(NOON + HOUR).judgings.get()
    assert queue.position(late) == 1
    assert [queue.position(one) for one in asked.judgings.order_by("pk")] == [2, 3, 4]
    told_so = list(queue.places())
    assert [claimed(NOON + HOUR).pk for _ in told_so] == told_so
    assert queue.places() == {}


# --- The end --------------------------------------------------------------------------------------------------------


def test_results_are_written_once_however_often_they_are_brought() -> None:
    """Judged twice, by whatever was delivered twice: one set of results, one line of history a check."""
    attempt = School().hand_in()
    taken = claimed()
    twin = Judging.objects.get(pk=taken.pk)
    assert queue.finish(taken, told(), VERSIONS, NOON) is True
    assert queue.finish(twin, told(), VERSIONS, NOON) is False
    assert queue.finish(taken, told(), VERSIONS, NOON) is False
    assert CheckResult.objects.count() == 3
    assert GradeChange.objects.filter(attempt=attempt).count() == 3


@real_commits
def test_two_that_bring_results_at_once_write_them_once() -> None:
    School().hand_in()
    taken = claimed()
    twins = [Judging.objects.get(pk=taken.pk) for _ in range(2)]
    with Boxes(2) as boxes:
        said = boxes.run(*[lambda one=one: queue.finish(one, told(), VERSIONS, NOON) for one in twins])
    assert sorted(said) == [False, True]
    assert CheckResult.objects.count() == 3


def test_a_stale_token_writes_nothing() -> None:
    """A worker that slept through its lease: neither its results nor its failure count, and it is told to stop."""
    attempt = School().hand_in()
    stale = claimed()
    assert queue.reclaim(NOON + HOUR) == 1
    theirs = claimed(NOON + 2 * HOUR, "box-b")
    assert queue.renew(stale, NOON + 2 * HOUR, "still at it") is False
    assert queue.finish(stale, told(), VERSIONS, NOON + 2 * HOUR) is False
    assert queue.give_back(stale, "It broke.", NOON + 2 * HOUR) is False
    now = attempt.judgings.get()
    assert (now.state, now.box, now.token, now.doing, now.tries) == (State.RUNNING, "box-b", theirs.token, "", 2)
    assert not CheckResult.objects.exists()


def test_a_lease_is_good_for_its_length_and_as_often_as_it_is_renewed(settings: Any) -> None:
    settings.GRADING_LEASE = 60.0
    School().hand_in()
    taken = claimed()
    assert queue.reclaim(NOON + 59 * SECOND) == 0
    assert queue.renew(taken, NOON + 59 * SECOND, "the second check") is True
    assert queue.reclaim(NOON + 118 * SECOND) == 0
    assert Judging.objects.get().doing == "the second check"
    assert queue.reclaim(NOON + 119 * SECOND) == 1
    assert Judging.objects.get().state == State.WAITING


@real_commits
@pytest.mark.parametrize("moment", ["claimed", "renewed", "before the commit"])
def test_a_worker_that_is_gone_at_any_moment_leaves_nothing_stuck(moment: str) -> None:
    """What it had not committed is not there; what it had is given to the next one when the lease is over."""
    attempt = School().hand_in()
    taken = claimed()
    if moment == "renewed":
        queue.renew(taken, NOON, "the first check")
    if moment == "before the commit":
        with transaction.atomic():
            assert queue.finish(taken, told(), VERSIONS, NOON)
            transaction.set_rollback(True)
    assert queue.claim("box-b", NOON + HOUR) is None
    assert queue.reclaim(NOON + HOUR) == 1
    again = claimed(NOON + 2 * HOUR, "box-b")
    assert again.attempt == attempt
    assert queue.finish(again, told(), VERSIONS, NOON + 2 * HOUR) is True
    assert state(attempt) == State.DONE
    assert CheckResult.objects.count() == 3


@real_commits
def test_two_that_reclaim_at_once_give_back_once() -> None:
    """One more try is not taken off for it."""
    School().hand_in()
    claimed()
    with Boxes(2) as boxes:
        assert sum(boxes.run(*[lambda: queue.reclaim(NOON + HOUR)] * 2)) == 1
    assert Judging.objects.get().tries == 1


@real_commits
def test_a_finish_and_a_reclaim_at_once_have_one_winner() -> None:
    """The lease ends in the very moment in which the results come: done or waiting, never both."""
    attempt = School().hand_in()
    taken = claimed()
    with Boxes(2) as boxes:
        finished, reclaimed = boxes.run(
            lambda: queue.finish(taken, told(), VERSIONS, NOON + HOUR), lambda: queue.reclaim(NOON + HOUR)
        )
    assert (finished, reclaimed) in {(True, 0), (False, 1)}
    assert state(attempt) == (State.DONE if finished else State.WAITING)
    assert CheckResult.objects.count() == (3 if finished else 0)
