"""The queue of judgings: two at once never get the same one, nothing is stuck or lost, and none is tried for ever."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection, transaction

from exercises.handed.checks import Outcome
from grading import queue, regrade
from grading.models import Attempt, CheckResult, GradeChange, Judging, Regrade, State
from tests.fakes import Boxes, outcomes, wait_for_waiters
from tests.grading.school import AFTER, FAILED, NOON, UNDECIDED, VERSIONS, WELL, Said, School, real_commits

pytestmark = pytest.mark.django_db
SECOND = timedelta(seconds=1)
HOUR = timedelta(hours=1)


def told(says: dict[str, Said] = WELL) -> list[Any]:
    return [said.of_check(name) for name, said in says.items()]


def claimed(now: Any = NOON, box: str = "box-a") -> Judging:
    taken = queue.claim(box, now)
    assert taken is not None
    return taken


def crowd(school: School, number: int, each: int = 1) -> list[Attempt]:
    """Attempts of so many students, one after another, a second apart."""
    students = [school.enrolled(f"student {n}") for n in range(number)]
    moments = (NOON + n * SECOND for n in range(number * each))
    return [school.hand_in(next(moments), student) for student in students for _ in range(each)]


def state(attempt: Attempt) -> str:
    return str(attempt.judgings.get(counts=True).state)


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


def test_a_student_with_many_attempts_does_not_starve_the_class(settings: Any) -> None:
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


def test_a_stale_token_writes_nothing(settings: Any) -> None:
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


# --- Failures of the judge ------------------------------------------------------------------------------------------


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


# --- Nudges ---------------------------------------------------------------------------------------------------------


class Sent(list[tuple[str, str]]):
    def __call__(self, broker: str) -> "Sent":
        return self

    def send_task(self, name: str, queue: str, **_: Any) -> None:
        assert not connection.in_atomic_block, "a worker would not see it yet"
        self.append((name, queue))


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> Sent:
    made = Sent()
    monkeypatch.setattr(queue, "_sender", made)
    return made


@real_commits
def test_a_hand_in_nudges_after_its_commit_and_a_rollback_does_not(sent: Sent) -> None:
    school = School()
    school.hand_in()
    assert sent == [("grading.judge", "grading")]
    attempt = Attempt.objects.get()
    with transaction.atomic():
        queue.ask(attempt, NOON, regrade=Regrade.objects.create(of=school.of, begun_by=school.teacher, begun_at=NOON))
        transaction.set_rollback(True)
    assert len(sent) == 1


@real_commits
def test_a_class_that_is_judged_over_nudges_once(sent: Sent) -> None:
    """Two hundred messages to a broker that is away would take minutes."""
    school = School()
    made = crowd(school, 4)
    sent.clear()
    regrade.begin(made, "all", "A check was wrong.", by=school.teacher, now=NOON + HOUR)
    assert len(sent) == 1


@real_commits
def test_a_broker_that_is_down_costs_a_hand_in_no_time_and_nothing_else(settings: Any, caplog: Any) -> None:
    """The real sender, and nobody at the address."""
    settings.CELERY_BROKER_URL = "redis://127.0.0.1:1/0"
    attempt = School().hand_in()
    assert state(attempt) == State.WAITING
    assert "No worker could be nudged" in caplog.text


def test_the_judges_app_listens_to_what_is_sent() -> None:
    """The queue's names stand in two places, since the web sends and must not be a worker."""
    from marlow import judging

    assert (judging.QUEUE, judging.TASK) == (queue.QUEUE, queue.TASK)
    judging.app.loader.import_default_modules()
    assert queue.TASK in judging.app.tasks
    entry = judging.app.conf.beat_schedule["look"]
    assert (entry["task"], entry["options"]["queue"]) == (queue.TASK, queue.QUEUE)
    assert judging.app.conf.task_acks_late is True
