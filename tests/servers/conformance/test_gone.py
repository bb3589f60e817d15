"""A server that is gone, and comes back: one of a kind, of these tests' own, on which they take turns."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
from django.db import connections

from marlow.clock import RealClock, StandingClock, wait_until
from marlow.servers.etcd import EmbeddedEtcd
from marlow.servers.launcher import Embedded
from marlow.servers.postgres import EmbeddedPostgres
from marlow.servers.redis import EmbeddedRedis
from marlow.servers.redis_nodes import RedisNodes
from marlow.servers.zookeeper import EmbeddedZooKeeper
from sweeper.locks import build
from sweeper.locks.base import Lock, Refusal, Released
from sweeper.locks.live import Addresses, open_ports
from sweeper.locks.ports import LockUnavailable, Ports
from sweeper.models import JobRun
from tests.fakes import WEDNESDAY
from tests.servers.conformance.boxes import TTL, Boxes
from tests.servers.conformance.processes import EVERY
from tests.servers.conformance.stands import OnEtcd, OnPostgres, OnRedis, OnRedlock, OnZooKeeper, Stand
from tests.servers.conformance.strategies import Strategy, leased, minting, refusing, strategies

MARGIN = 30.0  # real seconds for a client to find its server again


@dataclass
class Own:
    """A server to be killed, and what the locks see of it."""

    server: Embedded | RedisNodes
    stand: Stand
    down: bool = False

    def kill(self) -> None:
        """By SIGKILL. Postgres is told to stop at once instead: its sessions outlive a killed postmaster a little."""
        self.down = True
        servers = self.server.servers if isinstance(self.server, RedisNodes) else [self.server]
        for each in servers:
            assert each.running
            if isinstance(each, EmbeddedPostgres):
                each.stop()
            else:
                each.running.kill()

    def start(self) -> None:
        """Where it was, with what it kept; left alone where it is up."""
        if self.down:
            self.server.start()
            self.down = False


def redis(folder: Path) -> Own:
    server = EmbeddedRedis(folder).start()
    return Own(server, OnRedis(server.url))


def redlock(folder: Path) -> Own:
    servers = RedisNodes(folder).start()
    return Own(servers, OnRedlock(*servers.urls))


def etcd(folder: Path) -> Own:
    server = EmbeddedEtcd(folder).start()
    return Own(server, OnEtcd(server.urls))


def zookeeper(folder: Path) -> Own:
    server = EmbeddedZooKeeper(folder).start()
    return Own(server, OnZooKeeper(server.hosts))


def postgres(folder: Path) -> Own:
    server = EmbeddedPostgres(folder).start()
    return Own(server, OnPostgres(server.url()))


OWN: dict[str, Callable[[Path], Own]] = {
    "": postgres,
    "redis": redis,
    "redlock": redlock,
    "etcd": etcd,
    "zookeeper": zookeeper,
}
SETTINGS = {
    "redis": "LOCK_REDIS_URL",
    "redlock": "LOCK_REDLOCK_URLS",
    "etcd": "LOCK_ETCD_URLS",
    "zookeeper": "LOCK_ZOOKEEPER_HOSTS",
}
INSTALLED = {"etcd": "etcd_urls", "zookeeper": "zookeeper_hosts"}  # what skips where it is not


@pytest.fixture(scope="module")
def running() -> Iterator[dict[str, Own]]:
    running: dict[str, Own] = {}
    yield running
    for own in running.values():
        own.server.stop()


@pytest.fixture
def own(
    request: pytest.FixtureRequest,
    strategy: Strategy,
    running: dict[str, Own],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Own]:
    """Up when the test begins, and when it is over."""
    server = strategy.server
    if server in INSTALLED:
        request.getfixturevalue(INSTALLED[server])
    if server not in running:
        running[server] = OWN[server](tmp_path_factory.mktemp(server or "postgres"))
    running[server].stand.clear()
    yield running[server]
    running[server].start()


@pytest.fixture
def boxes(
    request: pytest.FixtureRequest, strategy: Strategy, own: Own, ask_for_database: Callable[[], str]
) -> Iterator[Boxes]:
    """Over a server that may be killed."""
    with ExitStack() as closing:
        boxes = Boxes(strategy, own.stand, ask_for_database, closing)
        if own.stand.database:
            request.getfixturevalue("sessions")
            make_table(boxes.session())
        yield boxes


def make_table(alias: str) -> None:
    """The one table that a lock needs."""
    if JobRun._meta.db_table not in connections[alias].introspection.table_names():
        with connections[alias].schema_editor() as schema:
            schema.create_model(JobRun)


@refusing
def test_a_server_that_is_gone_is_an_error_and_never_a_grant(strategy: Strategy, own: Own, boxes: Boxes) -> None:
    """Neither to a box that was connected nor to one that was not; a release does not know what became of it."""
    connected, fresh = boxes("box-a"), boxes("box-c")
    leased(connected.acquire("another", TTL)).release()
    lease = leased(boxes().acquire("sweeper", TTL))
    own.kill()
    for box in (connected, fresh):
        with pytest.raises(LockUnavailable, match=r"Redis|etcd|ZooKeeper|Postgres"):
            box.acquire("other", TTL)
    if strategy.demand_server is not Lock.demand_server:
        with pytest.raises(LockUnavailable, match=r"Redis|etcd|ZooKeeper|Postgres"):
            fresh.demand_server("other")
    if strategy.excludes:  # else there is nothing to let go
        assert lease.release().released is Released.UNKNOWN


@minting
def test_a_server_that_was_restarted_remembers_who_holds_and_counts_on(
    strategy: Strategy, own: Own, boxes: Boxes
) -> None:
    """No token is handed out twice, nor a smaller one."""
    clock = StandingClock(WEDNESDAY)
    first = leased(boxes(clock=clock).acquire("sweeper", TTL))
    own.kill()
    own.start()
    assert isinstance(boxes("box-a", clock).acquire("sweeper", TTL), Refusal)
    if strategy.excludes:
        assert wait_until(lambda: first.release().released is Released.OURS, MARGIN)
    clock.sleep(EVERY)
    second = leased(boxes("box-a", clock).acquire("sweeper", TTL))
    assert first.token is not None
    assert second.token is not None
    assert second.token > first.token
    second.release()


@strategies(lambda strategy: strategy.server in SETTINGS)
def test_a_box_without_an_address_is_told_which_setting_names_one(strategy: Strategy) -> None:
    """Instead of what a client library makes of an empty one."""
    plain = Ports(clock=RealClock(), box="box-b", run="run", every=EVERY, new_value=str)
    with open_ports(strategy.server, plain, Addresses(), TTL) as ports:
        lock = build(strategy.name, ports)
        with pytest.raises(LockUnavailable, match=f"set {SETTINGS[strategy.server]}"):
            lock.acquire("sweeper", TTL)
