"""Lock servers that tests share: started when the first test asks for one, stopped after the last."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from marlow.servers import etcd, zookeeper
from marlow.servers.launcher import ServerError
from marlow.servers.redis_nodes import RedisNodes


@pytest.fixture(scope="session")
def five_redises(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisNodes]:
    servers = RedisNodes(tmp_path_factory.mktemp("redlock")).start()
    yield servers
    servers.stop()


@pytest.fixture
def redlock_urls(five_redises: RedisNodes) -> tuple[str, ...]:
    """Five Redises, all empty."""
    for server in five_redises.servers:
        server.ask("FLUSHALL")
    return tuple(five_redises.urls)


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
