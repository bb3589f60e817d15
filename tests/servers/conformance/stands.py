"""What the locks stand on, looked at and struck behind their backs. One class a server."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar

import psycopg
from kazoo.client import KazooClient
from redis import Redis

from marlow.clock import RealClock
from sweeper.locks.live import Addresses
from sweeper.locks.live.etcd import LiveEtcd


class Stand(ABC):
    """`at` is where a box finds it; of Postgres, `database` is."""

    at = Addresses()
    database = ""

    @abstractmethod
    def holds(self) -> list[str]:
        """Everything on the server that any lock put there and that is of use to somebody still."""

    @abstractmethod
    def clear(self) -> None:
        """Leave nothing of an earlier test."""

    def take_away(self, lease: Any) -> None:
        """End this lease as the server does when it has lost its holder, and without telling the holder."""
        raise NotImplementedError(f"Say how a {type(lease).__name__} ends behind its holder's back.")


class OnRedis(Stand):
    def __init__(self, *urls: str) -> None:
        self.urls = urls
        self.at = Addresses(redis=urls[0])

    def holds(self) -> list[str]:
        return [f"{url} {key}" for url, keys in self._each("KEYS", "*") for key in sorted(keys)]

    def clear(self) -> None:
        list(self._each("FLUSHDB"))

    def _each(self, *words: str) -> Iterator[tuple[str, Any]]:
        for url in self.urls:
            with Redis.from_url(url, decode_responses=True) as client:
                yield url, client.execute_command(*words)


class OnRedlock(OnRedis):
    def __init__(self, *urls: str) -> None:
        super().__init__(*urls)
        self.at = Addresses(redlock=urls, redlock_timeout=2.0)


class OnEtcd(Stand):
    def __init__(self, urls: Sequence[str]) -> None:
        self.at = Addresses(etcd=tuple(urls))

    def holds(self) -> list[str]:
        """Keys, and leases: one without a key is a leak all the same."""
        etcd = LiveEtcd(self.at.etcd, RealClock())
        keys = [described["key"].decode() for _, described in etcd.members[0].get_all()]
        etcd.close()
        return [*keys, *map(str, self._leases())]

    def clear(self) -> None:
        for lease in self._leases():
            self._revoke(lease)

    def take_away(self, lease: Any) -> None:
        self._revoke(lease.granted)

    def _revoke(self, lease: int) -> None:
        etcd = LiveEtcd(self.at.etcd, RealClock())
        etcd.revoke(lease)
        etcd.close()

    def _leases(self) -> list[int]:
        etcd = LiveEtcd(self.at.etcd, RealClock())
        member = etcd.members[0]
        known = member.post(member.get_url("/lease/leases"), json={}).get("leases", [])
        etcd.close()
        return [int(lease["ID"]) for lease in known]


class OnZooKeeper(Stand):
    def __init__(self, hosts: str) -> None:
        self.at = Addresses(zookeeper=hosts)

    def holds(self) -> list[str]:
        """Ephemeral nodes, wherever they are. The parents of a lock's nodes stay, and hold nothing."""
        with self._client() as client:
            return list(_ephemeral(client, ""))

    def clear(self) -> None:
        """Sessions end with their boxes, and their nodes with them; but not where the server was gone by then."""
        with self._client() as client:
            for path in list(_ephemeral(client, "")):
                client.delete(path)

    def take_away(self, lease: Any) -> None:
        """The session's id and password are enough to end it from elsewhere."""
        with self._client(lease.zookeeper.client.client_id):
            pass

    @contextmanager
    def _client(self, session: Any = None) -> Iterator[KazooClient]:
        """A client in a session of its own, or in this one; that is over afterwards."""
        client = KazooClient(self.at.zookeeper, client_id=session)
        client.start(timeout=10)
        try:
            yield client
        finally:
            client.stop()
            client.close()


class OnPostgres(Stand):
    # The advisory locks of this database, and every slot's row.
    HELD: ClassVar = """
        select 'advisory ' || classid || ' ' || objid from pg_locks
        where locktype = 'advisory' and database = (select oid from pg_database where datname = current_database())
        union all select 'slot ' || job_name || ' ' || run_slot from sweeper_jobrun order by 1
    """

    def __init__(self, database: str) -> None:
        self.database = database

    def holds(self) -> list[str]:
        return [name for (name,) in self._ask(self.HELD)]

    def clear(self) -> None:
        """Sessions end with their boxes; the test's own fixture empties the tables."""

    def take_away(self, lease: Any) -> None:
        (session,) = lease.postgres.row("select pg_backend_pid()")
        assert self._ask("select pg_terminate_backend(%s, 5000)", session) == [(True,)]

    def _ask(self, sql: str, *params: Any) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.database, autocommit=True) as connection:
            return connection.execute(sql, params).fetchall()


def _ephemeral(client: KazooClient, path: str) -> Iterator[str]:
    for name in client.get_children(path or "/"):
        below = f"{path}/{name}"
        if below != "/zookeeper":
            stat = client.exists(below)
            if stat and stat.ephemeralOwner:
                yield below
            yield from _ephemeral(client, below)
