"""The wrong locks: what they promise in calm weather they keep, and where each one breaks."""

import uuid
from collections.abc import Callable

import pytest
from django.db import connection, connections
from pytest_django import Settings

from exercises.lab.servers import VirtualRedis
from exercises.scenarios.ports import RedisPort
from exercises.wrong_locks import APART, WRONG_LOCKS, AdvisoryApart, ClientCompare
from marlow.clock import StandingClock
from sweeper.checks import sweeper_settings
from sweeper.locks import LOCKS
from sweeper.locks.base import Lease, Lock, Refusal, Release, Released
from sweeper.locks.ports import Ports
from sweeper.models import SweepRun
from tests.fakes import WEDNESDAY, Boxes, numbered


def ports(box: str, **servers: object) -> Ports:
    return Ports(
        clock=StandingClock(WEDNESDAY),
        box=box,
        run=str(uuid.uuid4()),
        every=120.0,
        new_value=numbered(f"value-of-{box}"),
        **servers,
    )


def granted(answer: Lease | Refusal) -> Lease:
    assert isinstance(answer, Lease)
    return answer


# --- advisory-apart -----------------------------------------------------------------------------------------------

on_postgres = pytest.mark.django_db(transaction=True, databases=["default", "journal"])


def take() -> Lease | Refusal:
    return AdvisoryApart(ports("box-b")).acquire("sweeper", 120)


def process_of(alias: str) -> int:
    with connections[alias].cursor() as cursor:
        cursor.execute("select pg_backend_pid()")
        return int(cursor.fetchone()[0])


def end_session_of(alias: str) -> None:
    """By the other connection, as an administrator would; over when this returns."""
    doomed, other = process_of(alias), APART if alias == "default" else "default"
    with connections[other].cursor() as cursor:
        cursor.execute("select pg_terminate_backend(%s, 5000)", [doomed])


@on_postgres
def test_apart_one_holds_and_the_other_is_refused() -> None:
    """Until the first lets go."""
    lease = granted(AdvisoryApart(ports("box-a")).acquire("sweeper", 120))
    with Boxes(1) as other:
        [refused] = other.run(take)
        assert isinstance(refused, Refusal)
        assert lease.still_held()
        assert lease.release() == Release(Released.OURS, deleted=True)
        [taken] = other.run(take)
        assert isinstance(taken, Lease)


@on_postgres
def test_apart_the_lock_dies_and_the_work_goes_on() -> None:
    """Another is told yes, while the session that works has noticed nothing and no write of it demands anything."""
    work = process_of("default")
    lease = granted(AdvisoryApart(ports("box-a")).acquire("sweeper", 120))
    end_session_of(APART)
    with Boxes(1) as other:
        [taken] = other.run(take)
        assert isinstance(taken, Lease)
    assert lease.session is None
    assert process_of("default") == work
    assert not lease.still_held()
    assert lease.release().released is not Released.OURS


@on_postgres
def test_apart_the_work_s_session_may_die_under_a_lock_that_is_held() -> None:
    """The other way round the lock is kept for a run that may be no more."""
    lease = granted(AdvisoryApart(ports("box-a")).acquire("sweeper", 120))
    end_session_of("default")
    connection.close()
    with Boxes(1) as other:
        [refused] = other.run(take)
        assert isinstance(refused, Refusal)
    assert lease.release().released is Released.OURS


# --- client-compare -----------------------------------------------------------------------------------------------


class Asked:
    """One Redis, the questions to it, and what happens just before one of them."""

    def __init__(self) -> None:
        self.server = VirtualRedis(lambda: WEDNESDAY)
        self.questions: list[str] = []
        self.before: dict[str, Callable[[], object]] = {}

    def step(self, label: str, names: tuple[str, ...], writes: bool) -> None:
        question = label.split()[1]
        self.questions.append(question)
        self.before.pop(question, lambda: None)()

    def take(self, box: str) -> Lease | Refusal:
        lock = ClientCompare(ports(box, redis=RedisPort(self.server, self.step)))
        return lock.acquire("sweeper", 120)

    def expire(self) -> None:
        self.server.delete("lock:sweeper")


def test_client_compare_lets_go_of_its_own_and_leaves_another_s() -> None:
    """Where the key was lost before the question: what the token is for."""
    redis = Asked()
    lease = granted(redis.take("box-a"))
    assert redis.take("box-b") == Refusal("box-a")
    assert lease.release().deleted
    overtaken = granted(redis.take("box-a"))
    redis.expire()
    granted(redis.take("box-b"))
    assert overtaken.release() == Release(Released.NOT_OURS)
    assert redis.take("box-a") == Refusal("box-b")


def test_client_compare_deletes_another_s_key_between_its_two_questions() -> None:
    """The answer was ours, and no longer is."""
    redis = Asked()
    lease = granted(redis.take("box-b"))

    def meanwhile() -> None:
        redis.expire()
        granted(redis.take("box-a"))

    redis.before["DEL"] = meanwhile
    assert lease.release() == Release(Released.UNKNOWN, deleted=True)
    assert isinstance(redis.take("box-c"), Lease), "box-a's key is gone"
    assert redis.questions.count("GET") == 1


def test_client_compare_that_gets_no_answer_knows_nothing() -> None:
    redis = Asked()
    lease = granted(redis.take("box-a"))
    redis.server.up = False
    assert lease.release() == Release(Released.UNKNOWN)


# --- Their names --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("lock", WRONG_LOCKS.values(), ids=lambda lock: lock.name)
def test_no_setting_reaches_a_wrong_lock(settings: Settings, lock: type[Lock]) -> None:
    """Not in the registry, the system check refuses its name, and a run's column could hold it."""
    assert lock.name.startswith("wrong:")
    assert lock.name not in LOCKS
    assert len(lock.name) <= (SweepRun._meta.get_field("lock").max_length or 0)
    settings.SWEEPER_LOCK = lock.name
    assert "sweeper.E001" in [message.id for message in sweeper_settings()]
