"""Five real Redises as the tests of Redlock handle them: what they hold and ran, and how they fail."""

import signal
from itertools import count
from typing import Any

from marlow.clock import Clock, RealClock, wait_until
from marlow.servers.launcher import Running
from marlow.servers.redis_nodes import RedisNodes
from sweeper.locks.base import Lease, Refusal
from sweeper.locks.ports import Ports
from sweeper.locks.ports import RedisNodes as Nodes

KEY = "lock:sweeper"
AMPLE = 3.0  # real seconds a node has to answer, where every node is meant to


class Five:
    """Numbers are from 0. `servers` are asked one by one, behind the back of whatever is tested."""

    def __init__(self, nodes: RedisNodes) -> None:
        self.servers, self.urls = nodes.servers, nodes.urls

    def refresh(self) -> None:
        """All up and running, nothing in them, counts at zero."""
        self.heal()
        for words in (("FLUSHALL",), ("SCRIPT", "FLUSH"), ("CONFIG", "RESETSTAT")):
            self.ask(*words)

    def heal(self) -> None:
        for number, server in enumerate(self.servers):
            if not self._running(number).signal(signal.SIGCONT):
                server.start()

    def ask(self, *words: str, of: slice = slice(None)) -> list[Any]:
        """What each of them answers."""
        return [server.ask(*words) for server in self.servers[of]]

    def values(self, of: slice = slice(None)) -> list[str | None]:
        """What each of them holds under the sweeper's key."""
        return self.ask("GET", KEY, of=of)

    def lives(self) -> list[int]:
        """How long each of them lets the key live, in real milliseconds."""
        return self.ask("PTTL", KEY)

    def ran(self, command: str, of: slice = slice(None)) -> list[int]:
        """How often each of them ran this command."""
        told = self.ask("INFO", "commandstats", of=of)
        return [int(each.get(f"cmdstat_{command}", {}).get("calls", 0)) for each in told]

    def come_to_run(self, command: str, times: int) -> bool:
        """Whether each of them has run this command so many times, within five seconds."""
        return wait_until(lambda: self.ran(command) == [times] * len(self.servers), 5)

    def freeze(self, *numbers: int) -> None:
        for number in numbers:
            assert self._running(number).signal(signal.SIGSTOP)

    def thaw(self) -> None:
        for number in range(len(self.servers)):
            self._running(number).signal(signal.SIGCONT)

    def kill(self, *numbers: int) -> None:
        for number in numbers:
            self._running(number).kill()

    def _running(self, number: int) -> Running:
        running = self.servers[number].running
        assert running is not None
        return running


def over(nodes: Nodes, box: str = "box-b", clock: Clock | None = None) -> Ports:
    """Ports of a box whose values are box-b:1, box-b:2, …"""
    numbers = count(1)
    return Ports(
        clock=clock or RealClock(), box=box, run="run", every=120, new_value=lambda: f"{next(numbers)}", nodes=nodes
    )


def leased(answer: Lease | Refusal) -> Lease:
    assert isinstance(answer, Lease)
    return answer


class Fast(RealClock):
    """Twenty virtual seconds in a real one."""

    def real(self, seconds: float) -> float:
        return seconds / 20
