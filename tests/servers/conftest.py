"""Lock servers that tests share: started when the first test asks for one, stopped after the last."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest

from marlow.clock import Clock, RealClock
from marlow.servers import etcd, zookeeper
from marlow.servers.launcher import ServerError
from marlow.servers.redis_nodes import RedisNodes
from sweeper.locks.live import LiveRedisNodes
from tests.servers.five import AMPLE, Five


@pytest.fixture(scope="session")
def five_redises(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisNodes]:
    servers = RedisNodes(tmp_path_factory.mktemp("redlock")).start()
    yield servers
    servers.stop()


@pytest.fixture
def five(five_redises: RedisNodes) -> Iterator[Five]:
    """Five Redises, empty, for a test that may freeze and kill them."""
    five = Five(five_redises)
    five.refresh()
    yield five
    five.heal()


@pytest.fixture
def redlock_urls(five: Five) -> tuple[str, ...]:
    return tuple(five.urls)


@pytest.fixture
def nodes(five: Five) -> Iterator[Callable[..., LiveRedisNodes]]:
    """Makes a box's connections to the five, or to other addresses."""
    with ExitStack() as closing:

        def make(
            timeout: float = AMPLE, urls: Sequence[str] = five.urls, clock: Clock | None = None
        ) -> LiveRedisNodes:
            made = LiveRedisNodes(urls, clock or RealClock(), timeout)
            closing.callback(made.close)
            return made

        yield make


@pytest.fixture(scope="session")
def etcd_urls(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, ...]]:
    """The client URL of an etcd of one member; skips where none is installed."""
    try:
        etcd.binary()
    except ServerError as missing:
        pytest.skip(str(missing))
    server = etcd.EmbeddedEtcd(tmp_path_factory.mktemp("etcd")).start()
    yield tuple(server.urls)
    server.stop()


@pytest.fixture(scope="session")
def zookeeper_hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a ZooKeeper; skips where none is installed."""
    try:
        zookeeper.command(Path("zoo.cfg"))
    except ServerError as missing:
        pytest.skip(str(missing))
    server = zookeeper.EmbeddedZooKeeper(tmp_path_factory.mktemp("zookeeper")).start()
    yield server.hosts
    server.stop()
