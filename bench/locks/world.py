"""The servers the locks are measured on, embedded and empty, and Django set up over its Postgres."""

import os
import socket
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import httpx

from marlow.clock import RealClock
from marlow.servers.etcd import EmbeddedEtcd
from marlow.servers.postgres import EmbeddedPostgres
from marlow.servers.redis import EmbeddedRedis
from marlow.servers.redis_nodes import RedisNodes
from marlow.servers.zookeeper import EmbeddedZooKeeper
from sweeper.locks.live import Addresses, fresh_value, open_ports
from sweeper.locks.ports import Ports

TTL = 60.0  # seconds: of every lease, ours and theirs
HELD = 3600.0  # of those that others hold while we are refused
JOB = "bench"


@dataclass
class World:
    """Servers start when they are first asked for and end with `closing`. Raises ServerError where one is missing."""

    folder: Path
    closing: ExitStack
    versions: dict[str, str] = field(default_factory=dict)

    @cached_property
    def redis(self) -> str:
        server = self._started(EmbeddedRedis(self.folder / "redis"))
        told = server.ask("INFO", "server")
        name = "Valkey" if "valkey_version" in told else "Redis"
        self.versions[name] = told.get("valkey_version", told["redis_version"])
        return server.url

    @cached_property
    def five(self) -> list[str]:
        return list(self._started(RedisNodes(self.folder / "five")).urls)

    @cached_property
    def etcd(self) -> str:
        url = self._started(EmbeddedEtcd(self.folder / "etcd")).url
        self.versions["etcd"] = httpx.get(f"{url}/version", trust_env=False).json()["etcdserver"]
        return url

    @cached_property
    def zookeeper(self) -> str:
        server = self._started(EmbeddedZooKeeper(self.folder / "zookeeper"))
        with socket.create_connection((server.address, server.port), timeout=5) as asking:
            asking.sendall(b"srvr")
            told = asking.makefile("rb").readline().decode()
        self.versions["ZooKeeper"] = told.partition(":")[2].partition("-")[0].strip()
        return server.hosts

    def ports(self, server: str = "", box: str = "box-a") -> Ports:
        """Ports of a box over what a lock standing on `server` needs, opened as production does, and to the end."""
        at = {
            "redis": lambda: Addresses(redis=self.redis),
            "redlock": lambda: Addresses(redlock=tuple(self.five), redlock_timeout=2.0),
            "etcd": lambda: Addresses(etcd=(self.etcd,)),
            "zookeeper": lambda: Addresses(zookeeper=self.zookeeper),
        }.get(server, Addresses)()
        plain = Ports(clock=RealClock(), box=box, run=str(uuid.uuid4()), every=120.0, new_value=fresh_value)
        return self.closing.enter_context(open_ports(server, plain, at, TTL))

    def _started(self, server: Any) -> Any:
        server.start()
        self.closing.callback(server.stop)
        return server


@contextmanager
def opened() -> Iterator[World]:
    """A world in a folder of its own. Django's settings are read here: what needs them is imported afterwards."""
    with ExitStack() as closing:
        folder = Path(closing.enter_context(tempfile.TemporaryDirectory(prefix="marlow-bench-")))
        postgres = EmbeddedPostgres(folder / "postgres").start()
        closing.callback(postgres.stop)
        os.environ.pop("MARLOW_CLOCK_FILE", None)
        os.environ |= {
            "DJANGO_SETTINGS_MODULE": "marlow.settings",
            "MARLOW_DEMO": "1",
            "MARLOW_TIME_SCALE": "1",
            "MARLOW_STATE_DIR": str(folder),
            "DATABASE_URL": postgres.url(),
        }
        world = World(folder, closing)
        world.versions["Postgres"] = set_up(closing)
        yield world


def set_up(closing: ExitStack) -> str:
    """Django over a migrated database; returns the server's version."""
    import django
    from django.core.management import call_command
    from django.db import connection, connections

    django.setup()
    call_command("migrate", verbosity=0)
    closing.callback(connections.close_all)
    return ".".join(str(part) for part in divmod(connection.pg_version, 10_000))
