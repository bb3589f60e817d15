"""What single locks over Redis and Postgres do that no other does; `conformance` holds all of them to the rest."""

import uuid
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.db import connection, connections
from redis import Redis

from marlow.clock import RealClock, StandingClock, real_sleep, wait_until
from marlow.servers.redis import EmbeddedRedis
from sweeper.locks import build
from sweeper.locks.base import Lease, Refusal, Released
from sweeper.locks.live import LivePostgres, LiveRedis
from sweeper.locks.ports import LockUnavailable, Ports
from sweeper.locks.postgres_advisory import AdvisoryLease, key_of
from tests.fakes import WEDNESDAY, Boxes

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "journal"])

Make = Callable[..., Ports]


@pytest.fixture
def ports() -> Iterator[Make]:
    """Ports of a box over the tests' Postgres and one Redis; every call is a run of its own."""
    redis = LiveRedis(settings.LOCK_REDIS_URL, RealClock())
    ask("FLUSHDB")

    def make(box: str = "box-a", alias: str = "default", **changes: object) -> Ports:
        plain = Ports(
            clock=RealClock(),
            box=box,
            run=str(uuid.uuid4()),
            every=120.0,
            redis=redis,
            postgres=LivePostgres(alias),
            new_value=lambda: uuid.uuid4().hex,
        )
        return replace(plain, **changes)

    yield make
    redis.close()
    connections["journal"].close()
    connection.close()


def ask(*words: str) -> Any:
    """The tests' Redis, behind the lock's back."""
    with Redis.from_url(settings.LOCK_REDIS_URL, decode_responses=True) as client:
        return client.execute_command(*words)


def leased(answer: Lease | Refusal) -> Lease:
    assert isinstance(answer, Lease)
    return answer


def test_without_a_lock_everybody_is_told_yes(ports: Make) -> None:
    """The floor: nothing excludes anybody."""
    leased(build("none", ports("box-b")).acquire("sweeper", 5))
    leased(build("none", ports("box-a")).acquire("sweeper", 5))


def test_the_naive_release_deletes_the_other_run_s_key(ports: Make) -> None:
    """The bug that shipped, seen on a real Redis: a third box gets in while the second still holds it."""
    overrun = leased(build("redis-naive", ports("box-b")).acquire("sweeper", 0.05))
    real_sleep(0.08)
    leased(build("redis-naive", ports("box-a")).acquire("sweeper", 5))
    assert overrun.release().deleted
    leased(build("redis-naive", ports("box-c")).acquire("sweeper", 5))


def test_the_compared_release_leaves_the_other_run_s_key(ports: Make) -> None:
    """Not ours, nothing deleted, and the third box stays out."""
    overrun = leased(build("redis-token", ports("box-b")).acquire("sweeper", 0.05))
    real_sleep(0.08)
    leased(build("redis-token", ports("box-a")).acquire("sweeper", 5))
    release = overrun.release()
    assert (release.released, release.deleted) == (Released.NOT_OURS, False)
    assert isinstance(build("redis-token", ports("box-c")).acquire("sweeper", 5), Refusal)


def test_a_compared_release_survives_a_flushed_script_cache(ports: Make) -> None:
    """The server forgot the script between acquire and release."""
    mine = ports("box-b")
    lease = leased(build("redis-token", mine).acquire("sweeper", 5))
    ask("SCRIPT", "FLUSH")
    assert lease.release().released is Released.OURS


def test_a_duration_in_virtual_seconds_becomes_real_milliseconds(ports: Make) -> None:
    """At twenty times the speed a lease of 120 lives for six real seconds."""

    class Fast(RealClock):
        def real(self, seconds: float) -> float:
            return seconds / 20

    redis = LiveRedis(settings.LOCK_REDIS_URL, Fast())
    build("redis-naive", ports("box-b", redis=redis)).acquire("sweeper", 120)
    assert 5000 < ask("PTTL", "lock:sweeper") <= 6000
    redis.close()


@pytest.mark.parametrize("name", ["redis-naive", "redis-token"])
def test_a_redis_that_is_gone_is_an_error_and_never_a_grant(tmp_path: Path, ports: Make, name: str) -> None:
    """And a release then answers unknown."""
    server = EmbeddedRedis(tmp_path).start()
    redis = LiveRedis(server.url, RealClock(), timeout=0.5)
    lease = leased(build(name, ports(redis=redis)).acquire("sweeper", 5))
    server.stop()
    with pytest.raises(LockUnavailable, match="Redis did not answer"):
        build(name, ports(redis=redis)).acquire("other", 5)
    assert lease.release().released is Released.UNKNOWN
    redis.close()


def test_eight_boxes_elect_one_run_a_slot(ports: Make) -> None:
    """The unique row is the arbiter, whoever comes first."""
    at = StandingClock(WEDNESDAY)
    calls = [
        lambda box=box: build("slot", ports(box, clock=at)).acquire("sweeper", 120)  # type: ignore[misc]
        for box in "abcdefgh"
    ]
    with Boxes(8) as boxes:
        answers = boxes.run(*calls)
    assert sum(isinstance(answer, Lease) for answer in answers) == 1


def test_the_next_slot_is_free_while_the_last_one_s_run_goes_on(ports: Make) -> None:
    """What slot does not promise; its token rises by one a slot."""
    at = StandingClock(WEDNESDAY)
    first = leased(build("slot", ports("box-b", clock=at)).acquire("sweeper", 120))
    at.sleep(120)
    second = leased(build("slot", ports("box-a", clock=at)).acquire("sweeper", 120))
    assert first.token is not None
    assert second.token == first.token + 1


def test_a_slow_clock_asks_for_a_slot_that_is_gone_and_is_refused(ports: Make) -> None:
    """Safe, and of no use to the slow box."""
    at, slow = StandingClock(WEDNESDAY), StandingClock(WEDNESDAY - timedelta(seconds=120))
    for _ in range(3):
        leased(build("slot", ports("box-b", clock=at)).acquire("sweeper", 120))
        at.sleep(120)
        slow.sleep(120)
        assert isinstance(build("slot", ports("box-a", clock=slow)).acquire("sweeper", 120), Refusal)


def test_the_advisory_key_is_pinned() -> None:
    """Boxes that derive different keys from one name do not exclude each other."""
    assert key_of("sweeper") == 3_289_854_251_140_571_968
    assert key_of("plumless") != key_of("buckeroo")


def test_the_advisory_lock_outlives_any_overrun(ports: Make) -> None:
    """No expiry: the next run is refused for as long as this one works."""
    lease = leased(build("postgres-advisory", ports("box-b")).acquire("sweeper", 0.01))
    real_sleep(0.05)
    assert lease.still_held()
    assert isinstance(build("postgres-advisory", ports(alias="journal")).acquire("sweeper", 5), Refusal)
    lease.release()


def test_the_advisory_lock_goes_with_its_session(ports: Make) -> None:
    """The server ended the session: the next box gets the lock, and the first one's lease says that it is lost."""
    lease = leased(build("postgres-advisory", ports("box-b")).acquire("sweeper", 5))
    pid = connection.connection.info.backend_pid
    with connections["journal"].cursor() as other:
        other.execute("select pg_terminate_backend(%s)", (pid,))
    other_box = ports("box-a", alias="journal")
    assert wait_until(lambda: isinstance(build("postgres-advisory", other_box).acquire("sweeper", 5), Lease), 5)
    assert not lease.still_held()
    connection.close()
    assert not lease.still_held(), "a connection opened anew is not the session that took the lock"
    assert lease.release().released is Released.NOT_OURS


def test_a_session_that_holds_it_for_an_earlier_run_is_not_told_yes_again(ports: Make) -> None:
    """The lock is re-entrant, so a pooled session would be granted it a second time."""
    lease = leased(build("postgres-advisory", ports("box-b")).acquire("sweeper", 5))
    assert isinstance(build("postgres-advisory", ports("box-a")).acquire("sweeper", 5), Refusal)
    assert lease.release().released is Released.OURS


def test_an_advisory_release_by_another_run_changes_nothing(ports: Make) -> None:
    """An unlock is for the session that took the lock, and for that run."""
    lease = leased(build("postgres-advisory", ports("box-b")).acquire("sweeper", 5))
    stranger = AdvisoryLease(ports("box-a"), key_of("sweeper"))
    assert stranger.release().released is Released.NOT_OURS
    assert lease.still_held()
    lease.release()
