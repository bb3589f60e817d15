"""Judging by real Celery workers over a real broker: nudged, killed, and with nobody to nudge them."""

import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from exercises.handed.checks import Outcome
from exercises.handed.exercise import exercise
from grading import queue
from grading.models import Attempt, Judging, State
from marlow.clock import real_sleep, wait_until
from tests.grading.school import School
from tests.servers.judges import Judge, judges

pytestmark = [pytest.mark.live, pytest.mark.django_db(transaction=True)]
PATIENCE = 90.0  # real seconds
CHECKS = len(exercise("advisory").checks)


@pytest.fixture
def start(tmp_path: Path, transactional_db: None) -> Iterator[Callable[[str], Judge]]:
    with judges(tmp_path) as start:
        yield start


def ended() -> bool:
    return not Judging.objects.filter(state__in=[State.WAITING, State.RUNNING]).exists()


def outcomes(attempt: Attempt) -> set[str]:
    return set(attempt.judgings.get().results.values_list("outcome", flat=True))


def test_an_attempt_is_judged_on_real_workers_and_each_by_one(start: Callable[[str], Judge]) -> None:
    """Two workers on one queue: each attempt has one judging, one try and one set of results."""
    workers = start("box-a"), start("box-b")
    school = School()
    made = [school.hand_in(student=school.enrolled(f"student {n}")) for n in range(6)]
    assert wait_until(ended, PATIENCE, every=0.2), [worker.said() for worker in workers]
    assert all(outcomes(attempt) == {Outcome.PASSED} for attempt in made)
    assert {one.tries for one in Judging.objects.all()} == {1}
    assert {one.results.count() for one in Judging.objects.all()} == {CHECKS}


def test_what_was_handed_in_while_the_broker_was_down_is_judged_by_the_next_look(
    start: Callable[[str], Judge], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The nudge fails, the row is there, and the beat of a worker finds it."""
    with monkeypatch.context() as broken:
        broken.setattr(queue.settings, "CELERY_BROKER_URL", "redis://127.0.0.1:1/0")
        attempt = School().hand_in()
    judge = start("box-a")
    assert wait_until(ended, PATIENCE, every=0.2), judge.said()
    assert outcomes(attempt) == {Outcome.PASSED}


@pytest.mark.parametrize("moment", ["claimed", "at the second check"])
def test_a_worker_that_is_killed_leaves_nothing_stuck_and_loses_nothing(
    start: Callable[[str], Judge], moment: str
) -> None:
    """kill -9 of the whole group in the middle of a judging: its lease ends, and the other worker does it over."""
    first = start("box-a")
    attempt = School().hand_in()
    doing = {"claimed": "", "at the second check": "Who is refused"}[moment]
    assert wait_until(lambda: attempt.judgings.get().doing.startswith(doing) and running(attempt), PATIENCE, 0.005)
    first.kill()
    assert attempt.judgings.get().state == State.RUNNING, "it was killed in the middle"
    second = start("box-b")
    assert wait_until(ended, PATIENCE, every=0.2), second.said()
    judging = attempt.judgings.get()
    assert (judging.state, judging.box) == (State.DONE, "box-b")
    assert outcomes(attempt) == {Outcome.PASSED}
    assert attempt.changes.count() == CHECKS, "the history says it once"


def running(attempt: Attempt) -> bool:
    return attempt.judgings.get().state == State.RUNNING


def test_a_worker_process_that_is_killed_alone_is_replaced_and_its_desk_goes_with_it(
    start: Callable[[str], Judge],
) -> None:
    """kill -9 of the pool's process: the worker starts another, which judges what the first one left."""
    judge = start("box-a")
    attempt = School().hand_in()
    assert wait_until(lambda: running(attempt), PATIENCE, 0.005)
    process = judge.worker()
    desks = process.children(recursive=True)
    process.send_signal(signal.SIGKILL)
    assert wait_until(lambda: not any(desk.is_running() for desk in desks), 10)
    assert wait_until(ended, PATIENCE, every=0.2), judge.said()
    assert outcomes(attempt) == {Outcome.PASSED}


def test_a_worker_that_is_stopped_and_comes_back_writes_nothing_over(start: Callable[[str], Judge]) -> None:
    """SIGSTOP for longer than its lease: another one has judged by the time it wakes, and it finds its token gone."""
    first = start("box-a")
    attempt = School().hand_in()
    assert wait_until(lambda: running(attempt), PATIENCE, 0.005)
    process = first.worker()
    process.suspend()
    second = start("box-b")
    assert wait_until(ended, PATIENCE, every=0.2), second.said()
    process.resume()
    real_sleep(2.0)
    judging = attempt.judgings.get()
    assert (judging.state, judging.box) == (State.DONE, "box-b")
    assert (judging.results.count(), attempt.changes.count()) == (CHECKS, CHECKS)
