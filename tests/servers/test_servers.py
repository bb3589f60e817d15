"""Every server of ours: it starts, answers, listens on loopback, and leaves with its parent."""

import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psutil
import psycopg
import pytest
import redis

from marlow.clock import RealClock, wait_until
from marlow.servers import etcd, pgbouncer, zookeeper
from marlow.servers.etcd import EmbeddedEtcd, EtcdCluster
from marlow.servers.pgbouncer import EmbeddedPgbouncer
from marlow.servers.postgres import EmbeddedPostgres
from marlow.servers.redis import EmbeddedRedis
from marlow.servers.redis_nodes import RedisNodes
from marlow.servers.redis_pair import RedisPair
from marlow.servers.zookeeper import EmbeddedZooKeeper
from sweeper.locks.live.etcd import LiveEtcd
from sweeper.locks.live.zookeeper import LiveZooKeeper
from sweeper.locks.ports import LockUnavailable
from tests.servers.groups import demand, gone, groups_in

ROOT = Path(__file__).parents[2]
KINDS: dict[str, Any] = {
    "postgres": EmbeddedPostgres,
    "pgbouncer": EmbeddedPgbouncer,
    "redis": EmbeddedRedis,
    "nodes": RedisNodes,
    "pair": RedisPair,
    "etcd": EmbeddedEtcd,
    "cluster": EtcdCluster,
    "zookeeper": EmbeddedZooKeeper,
}
GROUPS = {**dict.fromkeys(KINDS, 1), "nodes": 5, "pair": 2, "cluster": 3}
# What the system's packages bring, and no wheel of ours.
PACKAGED: dict[str, Callable[[], object]] = {
    "pgbouncer": pgbouncer.binary,
    "etcd": etcd.binary,
    "cluster": etcd.binary,
    "zookeeper": lambda: zookeeper.command(Path("zoo.cfg")),
}


@pytest.fixture(scope="module")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedPostgres]:
    """What stands behind the pooler."""
    server = EmbeddedPostgres(tmp_path_factory.mktemp("postgres")).start()
    yield server
    server.stop()


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    if request.param in PACKAGED:
        demand(PACKAGED[request.param])
    return str(request.param)


def made(kind: str, folder: Path, postgres: EmbeddedPostgres) -> Any:
    return KINDS[kind](folder, postgres) if kind == "pgbouncer" else KINDS[kind](folder)


def parts(server: Any) -> list[Any]:
    match server:
        case RedisNodes():
            return server.servers
        case RedisPair():
            return [server.master, server.replica]
        case EtcdCluster():
            return server.members
    return [server]


def answers(part: Any) -> bool:
    """As those see it who use it."""
    try:
        match part:
            case EmbeddedRedis():
                return bool(part.ask("PING"))
            case EmbeddedEtcd():
                with closing(LiveEtcd(part.urls, RealClock())) as client:
                    return client.get("nothing") is None
            case EmbeddedZooKeeper():
                with closing(LiveZooKeeper(part.hosts, RealClock(), ttl=5)) as session:
                    return bool(session.children("/"))
        with psycopg.connect(part.url(), prepare_threshold=None) as connection:
            return connection.execute("select 1").fetchone() == (1,)
    except (redis.RedisError, LockUnavailable, psycopg.OperationalError):
        return False


class TestEveryServer:
    def test_starts_answers_and_stops(self, kind: str, tmp_path: Path, postgres: EmbeddedPostgres) -> None:
        """Each part of it answers, and after stop neither a process nor a record is left."""
        server = made(kind, tmp_path, postgres).start()
        groups = groups_in(tmp_path)
        assert len(parts(server)) == len(groups) == GROUPS[kind]
        assert all(answers(part) for part in parts(server))
        server.stop()
        assert gone(groups)
        assert not groups_in(tmp_path)
        assert not any(answers(part) for part in parts(server))

    def test_listens_on_loopback_only(self, kind: str, tmp_path: Path, postgres: EmbeddedPostgres) -> None:
        """No other host can reach it."""
        server = made(kind, tmp_path, postgres).start()
        listening = [
            line.laddr.ip
            for group in groups_in(tmp_path)
            for line in psutil.Process(group).net_connections()
            if line.status == psutil.CONN_LISTEN
        ]
        server.stop()
        assert len(listening) >= GROUPS[kind]
        assert {address.removeprefix("::ffff:") for address in listening} == {"127.0.0.1"}

    def test_starts_where_kill_9_of_its_leashes_left_it(
        self, kind: str, tmp_path: Path, postgres: EmbeddedPostgres
    ) -> None:
        """The next start in the same folder ends what was left and takes its place."""
        first = made(kind, tmp_path, postgres).start()
        groups = groups_in(tmp_path)
        for part in parts(first):
            part.running.process.kill()
            part.running.process.wait()
        second = made(kind, tmp_path, postgres).start()
        assert gone(groups)
        assert all(answers(part) for part in parts(second))
        second.stop()

    def test_dies_with_a_parent_that_is_killed(self, kind: str, tmp_path: Path) -> None:
        """kill -9 of the process that started it leaves nothing running."""
        script = f"""
            from pathlib import Path
            from tests.servers.test_servers import EmbeddedPostgres, made
            folder = Path({str(tmp_path)!r})
            postgres = EmbeddedPostgres(folder / "postgres")
            if {kind!r} == "pgbouncer":
                postgres.start()
            made({kind!r}, folder, postgres).start()
            print("up", flush=True)
            input()
        """
        parent = subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(script)],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert parent.stdout.readline() == b"up\n"
        groups = groups_in(tmp_path)
        assert len(groups) == GROUPS[kind] + (kind == "pgbouncer")
        parent.kill()
        parent.communicate()
        assert wait_until(lambda: gone(groups), 8)
        assert wait_until(lambda: not groups_in(tmp_path), 2)
