"""What one lock alone has, on its real server. What every lock is held to stands in `conformance`."""

import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.conf import settings
from django.db import connection, connections
from redis import Redis

from marlow import doctor
from marlow.clock import RealClock, wait_until
from sweeper.locks import build
from sweeper.locks.base import Lease, Refusal, Released
from sweeper.locks.live import LivePostgres, LiveRedis
from sweeper.locks.ports import Ports
from sweeper.locks.postgres_advisory import AdvisoryLease, key_of
from tests.servers.five import Fast

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "journal"])

Make = Callable[..., Ports]


@pytest.fixture
def redis() -> Iterator[Callable[..., LiveRedis]]:
    """Makes connections to the tests' Redis, which is empty."""
    ask("FLUSHDB")
    made: list[LiveRedis] = []

    def make(clock: RealClock) -> LiveRedis:
        made.append(LiveRedis(settings.LOCK_REDIS_URL, clock))
        return made[-1]

    yield make
    for each in made:
        each.close()


@pytest.fixture
def session() -> Iterator[Make]:
    """Ports over this test's session, or with "journal" over another one; every call is a run of its own."""
    yield lambda alias="default": ports(postgres=LivePostgres(alias))
    connections["journal"].close()
    connection.close()


def ports(**server: Any) -> Ports:
    plain = {"clock": RealClock(), "box": "box-b", "every": 120.0, "new_value": lambda: uuid.uuid4().hex}
    return Ports(run=str(uuid.uuid4()), **{**plain, **server})


def ask(*words: str) -> Any:
    """The tests' Redis, behind the lock's back."""
    with Redis.from_url(settings.LOCK_REDIS_URL, decode_responses=True) as client:
        return client.execute_command(*words)


def leased(answer: Lease | Refusal) -> Lease:
    assert isinstance(answer, Lease)
    return answer


def test_a_compared_release_survives_a_flushed_script_cache(redis: Callable[..., LiveRedis]) -> None:
    """The server forgot a script that it was seen to know, between acquire and release."""
    lock = build("redis-token", ports(redis=redis(RealClock())))
    leased(lock.acquire("sweeper", 5)).release()
    lease = leased(lock.acquire("sweeper", 5))
    ask("SCRIPT", "FLUSH")
    assert lease.release().released is Released.OURS


def test_a_duration_in_virtual_seconds_becomes_real_milliseconds(redis: Callable[..., LiveRedis]) -> None:
    """At twenty times the speed a lease of 120 lives for six real seconds."""
    leased(build("redis-naive", ports(redis=redis(Fast()))).acquire("sweeper", 120))
    assert 3000 < ask("PTTL", "lock:sweeper") <= 6000


def test_the_advisory_key_is_pinned() -> None:
    """Boxes that derive different keys from one name do not exclude each other."""
    assert key_of("sweeper") == 3_289_854_251_140_571_968


def test_the_doctor_tells_the_advisory_key() -> None:
    """Where the derivation changes, an old box and a new one print different numbers, and may run side by side."""
    told = next(found for found in doctor.examine() if found.what == "advisory key")
    assert str(key_of("sweeper")) in told.found
    assert "another is not locked out" in told.found


def test_the_advisory_lock_is_not_the_next_session_s(session: Make) -> None:
    """The server ended the session and Django opened another: the lease is lost, and there is nothing to let go."""
    lease = leased(build("postgres-advisory", session()).acquire("sweeper", 5))
    pid = connection.connection.info.backend_pid
    with connections["journal"].cursor() as other:
        other.execute("select pg_terminate_backend(%s)", (pid,))
    other_box = build("postgres-advisory", session("journal"))
    assert wait_until(lambda: isinstance(other_box.acquire("sweeper", 5), Lease), 5)
    assert not lease.still_held()
    assert lease.release().released is Released.UNKNOWN, "the client object says that it is open"
    connection.close()
    assert not lease.still_held(), "a connection opened anew is not the session that took the lock"
    assert lease.release().released is Released.NOT_OURS


def test_a_session_that_holds_it_for_an_earlier_run_is_not_told_yes_again(session: Make) -> None:
    """The lock is re-entrant, so a pooled session would be granted it a second time."""
    lease = leased(build("postgres-advisory", session()).acquire("sweeper", 5))
    assert isinstance(build("postgres-advisory", session()).acquire("sweeper", 5), Refusal)
    assert lease.release().released is Released.OURS


def test_an_advisory_release_by_another_run_changes_nothing(session: Make) -> None:
    """An unlock is for the session that took the lock, and for that run."""
    lease = leased(build("postgres-advisory", session()).acquire("sweeper", 5))
    stranger = AdvisoryLease(session(), key_of("sweeper"))
    assert stranger.release().released is Released.NOT_OURS
    assert lease.still_held()
    lease.release()
