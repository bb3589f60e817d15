"""A Redis with an asynchronous replica, and the failover that loses what the replica had not yet."""

import signal
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from marlow.clock import wait_until
from marlow.servers.launcher import Running, ServerError, free_ports
from marlow.servers.redis import EmbeddedRedis

Answer = TypeVar("Answer")
LINKED = 15  # real seconds a replica has to get its first copy


@dataclass
class RedisPair:
    """`master` acknowledges a write before `replica` has it, as Redis does. `url` is that of whoever takes writes."""

    folder: Path
    master: EmbeddedRedis = field(init=False)
    replica: EmbeddedRedis = field(init=False)
    promoted: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        ports = free_ports(2)
        # A master waits five seconds for more replicas before it sends the first copy; there will be no more.
        at_once = ("--repl-diskless-sync-delay", "0")
        self.master = EmbeddedRedis(self.folder / "master", name="master", port=ports[0], arguments=at_once)
        follows = ("--replicaof", "127.0.0.1", str(ports[0]))
        self.replica = EmbeddedRedis(self.folder / "replica", name="replica", port=ports[1], arguments=follows)

    @property
    def url(self) -> str:
        return self.replica.url if self.promoted else self.master.url

    def start(self) -> "RedisPair":
        """Both, ready once the replica's link is up; what runs of an earlier pair is stopped. Raises ServerError."""
        self.stop()
        self.promoted = False
        try:
            self.master.start()
            self.replica.start()
            if not wait_until(self._linked, LINKED):
                raise ServerError(f"The replica got no link to its master in {LINKED} s.")
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self) -> None:
        self.replica.stop()
        self.master.stop()

    def fail_over(self, meanwhile: Callable[[], Answer]) -> Answer:
        """Lose the master. What `meanwhile` writes there is acknowledged, and the replica that takes over has it not:

            master    replica
              |       stopped          hold_back: it receives nothing any more ...
              |  cut  stopped          ... and what was under way to it is thrown away
             SET      stopped          meanwhile: acknowledged by the master alone
            killed    stopped          promote
                      master           the other box's SET succeeds

        Without holding back first a replica on the same machine is never late enough. Returns what `meanwhile` did.
        """
        self.hold_back()
        answer = meanwhile()
        self.promote()
        return answer

    def hold_back(self) -> None:
        """From here on the replica learns nothing: it is stopped (SIGSTOP), and the master drops its link."""
        _running(self.replica).signal(signal.SIGSTOP)
        self.master.ask("CLIENT", "KILL", "TYPE", "replica")

    def promote(self) -> None:
        """The master is lost (SIGKILL); the replica wakes up (SIGCONT) and is told that it is master now."""
        _running(self.master).kill()
        _running(self.replica).signal(signal.SIGCONT)
        self.replica.ask("REPLICAOF", "NO", "ONE")
        self.promoted = True

    def _linked(self) -> bool:
        return bool(self.replica.ask("INFO", "replication")["master_link_status"] == "up")


def _running(server: EmbeddedRedis) -> Running:
    if server.running is None:
        raise ServerError(f"{server.name} was never started.")
    return server.running
