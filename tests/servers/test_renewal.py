"""Renewal beside the run, on real servers: how a lease is lost, how it ends, and what the drift has to do with it."""

import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from datetime import timedelta

import pytest
from django.conf import settings
from redis import Redis

from marlow.clock import RealClock, StandingClock, wait_until
from sweeper.locks import build
from sweeper.locks.base import Lease, Release, Released
from sweeper.locks.live import Addresses, open_ports
from sweeper.locks.ports import Beside, Ports
from sweeper.locks.redlock import Redlock
from tests.fakes import WEDNESDAY
from tests.servers.five import KEY, Five, leased, over

LOCKS = ["redis-token", "redlock"]
Make = Callable[..., Ports]


@pytest.fixture
def servers(five: Five) -> Iterator[list[Redis]]:
    """The one Redis and the five, all empty, to be looked at from behind."""
    with ExitStack() as closing:
        clients = [
            closing.enter_context(Redis.from_url(url, decode_responses=True))
            for url in (settings.LOCK_REDIS_URL, *five.urls)
        ]
        clients[0].flushdb()
        yield clients


@pytest.fixture
def ports(servers: list[Redis], five: Five) -> Iterator[Make]:
    """Ports of a box that renews its leases."""
    at = Addresses(redis=settings.LOCK_REDIS_URL, redlock=tuple(five.urls), redlock_timeout=1.0)
    with ExitStack() as closing:

        def make(name: str, box: str = "box-b") -> Ports:
            plain = Ports(
                clock=RealClock(), box=box, run="run", every=120, new_value=lambda: uuid.uuid4().hex, renew=True
            )
            server = {"redis-token": "redis"}.get(name, name)
            return closing.enter_context(open_ports(server, plain, at, ttl=60))

        yield make


def holding(servers: list[Redis]) -> dict[Redis, str]:
    """Those that hold the sweeper's key, and what they hold."""
    return {server: value for server in servers if (value := server.get(KEY))}


def renewing() -> int:
    """How many threads work beside a run."""
    return sum(thread.name == "beside the run" for thread in threading.enumerate())


@pytest.mark.parametrize("name", LOCKS)
def test_a_renewal_that_finds_another_s_key_marks_the_lease_lost(
    servers: list[Redis], ports: Make, name: str
) -> None:
    """The key was lost and another took it: the run learns of it, and the other's time stays what it was."""
    before = renewing()
    lease = leased(build(name, ports(name)).acquire("sweeper", 3))
    assert lease.still_held()
    for server in holding(servers):
        server.delete(KEY)
        server.set(KEY, "box-a:1", px=60_000)
    assert wait_until(lambda: lease.lost, 5)
    assert not lease.still_held()
    assert wait_until(lambda: renewing() == before, 2), "there is nothing left to renew"
    assert lease.release() == Release(Released.NOT_OURS)
    others = holding(servers)
    assert set(others.values()) == {"box-a:1"}
    assert all(50_000 < server.pttl(KEY) <= 60_000 for server in others)


@pytest.mark.parametrize("name", LOCKS)
def test_a_release_ends_the_renewal(servers: list[Redis], ports: Make, name: str) -> None:
    """Nothing goes on beside a run that is over, and nothing is set or prolonged behind it."""
    before = renewing()
    lease = leased(build(name, ports(name)).acquire("sweeper", 60))
    assert renewing() == before + 1
    assert lease.release().released is Released.OURS
    assert renewing() == before
    assert holding(servers) == {}


def test_a_redlock_whose_servers_are_gone_is_over_at_its_deadline(five: Five, ports: Make) -> None:
    """Nobody told the renewal that it is lost: the deadline stays where it was, and passes."""
    lease = leased(build("redlock", ports("redlock")).acquire("sweeper", 2))
    five.kill(0, 1, 2)
    given = lease.deadline
    assert wait_until(lambda: not lease.still_held(), 10)
    assert not lease.lost
    assert lease.deadline is not None
    assert given is not None
    assert lease.deadline - given < timedelta(seconds=2), "renewed once before they went, or never"
    lease.release()


def test_a_renewed_redlock_keeps_its_drift(ports: Make) -> None:
    """The holder gives up before the servers do, after a renewal as before."""
    clock = StandingClock(WEDNESDAY)
    mine = replace(over(ports("redlock").nodes, clock=clock), spawn=Later(clock, 40).spawn, renew=True)
    lease: Lease = leased(Redlock(mine).acquire("sweeper", 120))
    assert lease.deadline == WEDNESDAY + timedelta(seconds=40 + 120 - 1.2 - 0.002)
    lease.release()


class Later:
    """Work beside the run that waits once, by a clock set by hand, and is over before the run goes on."""

    def __init__(self, clock: StandingClock, seconds: float) -> None:
        self.clock, self.seconds, self.waits = clock, seconds, [True, False]

    def spawn(self, work: Callable[[Beside], None]) -> Callable[[], None]:
        work(self)
        return lambda: None

    def wait(self, seconds: float) -> bool:
        self.clock.sleep(self.seconds)
        return self.waits.pop()
