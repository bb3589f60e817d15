"""Where a cell is played: the servers its lock stands on, and what can be done to them."""

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
from django.conf import settings
from django.db import connections
from redis import Redis

from exercises.proof.cells import Cell
from marlow.clock import real_sleep, wait_until
from marlow.servers.etcd import EmbeddedEtcd, EtcdCluster
from marlow.servers.hosts import Host
from marlow.servers.launcher import Embedded, ServerError
from marlow.servers.pgbouncer import EmbeddedPgbouncer
from marlow.servers.postgres import EmbeddedPostgres
from marlow.servers.redis import EmbeddedRedis
from marlow.servers.redis_nodes import RedisNodes
from marlow.servers.redis_pair import RedisPair
from marlow.servers.zookeeper import EmbeddedZooKeeper
from sweeper.locks import LOCKS

# Ends whoever holds a session lock with one key (a gate's has two), or waits for the provider in a transaction.
END_SESSIONS = """
    select pg_terminate_backend(pid, 2000) from (
        select pid from pg_locks where locktype = 'advisory' and objsubid = 1
        union select pid from pg_stat_activity where state = 'idle in transaction'
    ) holders
"""
STEP = 61.0  # seconds: past any lease of a cell
CLOCKS = {"three-clocks-step", "one-clock-steps", "one-clock-steps-bare-majority"}


@dataclass
class Places:
    """The servers of one cell. `addresses` are the settings by which the boxes find them.

    `postgres` is the lane's, which outlives the cell; `host` is where the first box runs, if it runs on one.
    """

    cell: Cell
    folder: Path
    postgres: EmbeddedPostgres
    host: Host | None = None
    let_go_within: float = 0.0  # real seconds until the lock of a box that lost its power is free, at most
    addresses: dict[str, Any] = field(default_factory=dict)
    closing: ExitStack = field(default_factory=ExitStack)

    def open(self) -> "Places":
        """Start what this cell's lock needs. Raises ServerError saying what to install."""
        start: Callable[[], None] | None = {
            "redis": self._redis,
            "redlock": self._redlock,
            "etcd": self._etcd,
            "zookeeper": self._zookeeper,
        }.get(LOCKS[self.cell.lock].server)
        if start:
            start()
        if self.cell.fault == "pooler":
            self.pgbouncer = self._run(EmbeddedPgbouncer(self.folder / "pgbouncer", self.postgres))
        return self

    def close(self) -> None:
        self.closing.close()

    def _redis(self) -> None:
        if self.cell.fault == "failover":
            self.pair = RedisPair(self.folder / "pair").start()
            self.closing.callback(self.pair.stop)
            self.addresses["LOCK_REDIS_URL"] = self.pair.master.url
            return
        self.redis = self._run(EmbeddedRedis(self.folder / "redis", address=self.postgres.address))
        self.addresses["LOCK_REDIS_URL"] = self.redis.url

    def _redlock(self) -> None:
        stepping = range(5) if self.cell.fault in CLOCKS else ()
        self.nodes = RedisNodes(self.folder / "nodes", stepping=stepping, address=self.postgres.address).start()
        self.closing.callback(self.nodes.stop)
        self.addresses["LOCK_REDLOCK_URLS"] = ",".join(self.nodes.urls)

    def _etcd(self) -> None:
        if self.cell.fault == "leader-loss":
            self.cluster = EtcdCluster(self.folder / "cluster").start()
            self.closing.callback(self.cluster.stop)
            self.addresses["LOCK_ETCD_URLS"] = ",".join(self.cluster.urls)
            return
        self.etcd = self._run(EmbeddedEtcd(self.folder / "etcd", address=self.postgres.address))
        self.addresses["LOCK_ETCD_URLS"] = self.etcd.url

    def _zookeeper(self) -> None:
        self.zookeeper = self._run(EmbeddedZooKeeper(self.folder / "zookeeper", address=self.postgres.address))
        self.addresses["LOCK_ZOOKEEPER_HOSTS"] = self.zookeeper.hosts

    def _run(self, server: Any) -> Any:
        server.start()
        self.closing.callback(server.stop)
        return server

    # --- Faults ---------------------------------------------------------------------------------------------------

    def cut(self) -> None:
        """The first box's host is gone, without a FIN."""
        if self.host is None:
            raise ServerError("The first box runs on no host of its own.")
        self.host.cut()

    def step_clocks(self, *nodes: int) -> None:
        for node in nodes:
            self.nodes.clocks[node].step(STEP)

    def stop_nodes(self, *nodes: int) -> None:
        for node in nodes:
            self.nodes.servers[node].stop()

    def start_nodes(self, *nodes: int) -> None:
        """On their old ports, and empty: they keep nothing on disk."""
        for node in nodes:
            self.nodes.servers[node].start()

    def kill_leader(self) -> None:
        wait_until(lambda: self.cluster.leader() is not None, 5)
        leader = self.cluster.leader()
        if leader is None or leader.running is None:
            raise ServerError("The etcd cluster has no leader to be killed.")
        leader.running.kill()

    @property
    def postgres_holds_the_lock(self) -> bool:
        return not LOCKS[self.cell.lock].server

    def restart(self) -> None:
        """The lock's own server, killed and started again on its port."""
        server: Embedded = getattr(self, LOCKS[self.cell.lock].server)
        if server.running is not None:
            server.running.kill()
        server.start()

    def restart_postgres(self) -> None:
        """A fast shutdown, which ends every session, and a start on the same port."""
        record = self.postgres.folder / "postgres.group"
        os.killpg(int(record.read_text()), signal.SIGINT)
        wait_until(lambda: not record.exists(), 10)
        self.postgres.start()
        for connection in connections.all():
            connection.close()

    def end_connection(self) -> None:
        """The connection on which the first box holds its lock, ended by the server."""
        if self.postgres_holds_the_lock:
            with connections["default"].cursor() as cursor:
                cursor.execute(END_SESSIONS)
            return
        with Redis.from_url(self.redis.url) as client:
            client.client_kill_filter(_type="normal", skipme=True)

    # --- A pooler between the boxes and Postgres ------------------------------------------------------------------

    @contextmanager
    def next_in_line(self, strike: Callable[[], None]) -> Iterator[None]:
        """Somebody else gets the session on which the box took its lock, and the box another one:

        session 1    the box: lock … at the gate     strike: free     the one who waited in line
        session 2                       a stranger's transaction      the box
        """
        with psycopg.connect(self.pooled_url, prepare_threshold=None) as waiting:
            with psycopg.connect(self.pooled_url, prepare_threshold=None) as stranger:
                stranger.execute("select 1")
                line = threading.Thread(target=waiting.execute, args=("select 1",))
                line.start()
                real_sleep(0.3)  # the pool is full: nobody but the pooler can tell that it stands in line
                strike()
                line.join()
            yield

    @property
    def pooled_url(self) -> str:
        url: str = self.pgbouncer.url(urlsplit(settings.DATABASE_URL).path.lstrip("/"))
        return url
