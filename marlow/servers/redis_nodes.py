"""Independent Redis servers, as a lock by majority stands on."""

from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path

from marlow.servers.faketime import SteppedClock
from marlow.servers.launcher import free_ports, start_together, stop_together
from marlow.servers.redis import EmbeddedRedis


@dataclass
class RedisNodes:
    """`count` Redises that know nothing of each other. Those whose numbers stand in `stepping` (from 0) live on a
    clock of their own that can be stepped, in `clocks`.
    """

    folder: Path
    count: int = 5
    stepping: Collection[int] = ()
    urgent: bool = field(default=False, kw_only=True)
    address: str = field(default="127.0.0.1", kw_only=True)
    servers: list[EmbeddedRedis] = field(default_factory=list, init=False)
    clocks: dict[int, SteppedClock] = field(default_factory=dict, init=False)

    @property
    def urls(self) -> list[str]:
        return [server.url for server in self.servers]

    def start(self) -> "RedisNodes":
        """All at once. Where one can't be started none is left, and ServerError says why."""
        if not self.servers:
            self.clocks = {number: SteppedClock(self._folder(number)) for number in self.stepping}
            self.servers = [self._node(number, port) for number, port in enumerate(free_ports(self.count))]
        start_together(self.servers, EmbeddedRedis.start)
        return self

    def stop(self) -> None:
        stop_together(self.servers)

    def _node(self, number: int, port: int) -> EmbeddedRedis:
        clock = self.clocks.get(number)
        return EmbeddedRedis(
            self._folder(number),
            name=f"redis-{number + 1}",
            port=port,
            address=self.address,
            urgent=self.urgent,
            environment=clock.environment() if clock else {},
        )

    def _folder(self, number: int) -> Path:
        return self.folder / f"redis-{number + 1}"
