"""The two sides of an agreement: a script of questions, asked of the ports over a real server or a virtual one.

What the two can't have in common is told by another name: ids by the order in which they turned up, transaction ids
by rank, revisions by how far they are from the first.
"""

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from exercises.scenarios.ports import ZooKeeperPort
from sweeper.locks.ports import Etcd, LockUnavailable, Redis, RedisNodes, ZooKeeper
from tests.lab.tempo import LONG, Passing, Standing, Tempo

Time = Passing | Standing
Script = Sequence[tuple[Any, ...]]  # each the name of a method of the side, and what it is called with
UNAVAILABLE = "unavailable"
DOUBLINGS = 7


class Side:
    """Plays a script; `boxes` are one port each."""

    def __init__(self, boxes: Sequence[Any], time: Time, prefix: str) -> None:
        self.boxes, self.time, self.prefix = boxes, time, prefix

    def play(self, script: Script) -> list[Any]:
        answers = []
        for what, *how in script:
            answers.append(self.answer(what, *how))
            self.time.look()
        return answers

    def answer(self, what: str, *how: Any) -> Any:
        try:
            return getattr(self, what)(*how)
        except LockUnavailable:
            return UNAVAILABLE

    def clean(self) -> None:
        """Leave nothing on a real server that is in another script's way."""

    def wait(self) -> None:
        self.time.wait()

    def ttl(self, name: str) -> float:
        return LONG if name == "long" else self.time.tempo.short


class RedisSide(Side):
    """`strike` are what can be done to the server itself, by name; `remaining` tells a key's milliseconds."""

    boxes: Sequence[Redis]

    def __init__(
        self,
        boxes: Sequence[Redis],
        time: Time,
        prefix: str,
        remaining: Callable[[str], int | None],
        **strike: Callable[..., object],
    ) -> None:
        super().__init__(boxes, time, prefix)
        self._remaining, self._strike = remaining, strike

    def set_if_absent(self, box: int, key: str, value: str, ttl: str) -> bool:
        return self.boxes[box].set_if_absent(self.prefix + key, value, self.ttl(ttl))

    def set_or_get(self, box: int, key: str, value: str, ttl: str) -> str | None:
        return self.boxes[box].set_or_get(self.prefix + key, value, self.ttl(ttl))

    def get(self, box: int, key: str) -> str | None:
        return self.boxes[box].get(self.prefix + key)

    def delete(self, box: int, key: str) -> bool:
        return self.boxes[box].delete(self.prefix + key)

    def delete_if_equal(self, box: int, key: str, value: str) -> bool:
        return self.boxes[box].delete_if_equal(self.prefix + key, value)

    def expire_if_equal(self, box: int, key: str, value: str, ttl: str) -> bool:
        return self.boxes[box].expire_if_equal(self.prefix + key, value, self.ttl(ttl))

    def remaining(self, key: str) -> str | None:
        left = self._remaining(self.prefix + key)
        return None if left is None else ("short" if left <= 1000 * self.time.tempo.short else "long")

    def strike(self, what: str, *how: Any) -> None:
        self._strike[what](*how)


class NodesSide(Side):
    """`stop` and `start` end and begin one node, by number."""

    boxes: Sequence[RedisNodes]

    def __init__(
        self,
        boxes: Sequence[RedisNodes],
        time: Time,
        prefix: str,
        stop: Callable[[int], object],
        start: Callable[[int], object],
    ) -> None:
        super().__init__(boxes, time, prefix)
        self._stop, self._start, self._down = stop, start, set[int]()

    def set_or_get(self, box: int, key: str, value: str, ttl: str) -> list[str | None]:
        return list(self.boxes[box].set_or_get(self.prefix + key, value, self.ttl(ttl)))

    def delete_if_equal(self, box: int, key: str, value: str) -> list[bool | None]:
        return list(self.boxes[box].delete_if_equal(self.prefix + key, value))

    def expire_if_equal(self, box: int, key: str, value: str, ttl: str) -> list[bool | None]:
        return list(self.boxes[box].expire_if_equal(self.prefix + key, value, self.ttl(ttl)))

    def turn(self, node: int) -> None:
        """Off if it is on; on again, without its data, if it is off."""
        if node in self._down:
            self._down.remove(node)
            self._start(node)
        else:
            self._down.add(node)
            self._stop(node)


class EtcdSide(Side):
    """Leases by number, round the ones there are."""

    boxes: Sequence[Etcd]

    def __init__(self, boxes: Sequence[Etcd], time: Time, prefix: str) -> None:
        super().__init__(boxes, time, prefix)
        self.leases: list[int] = []
        self.first = 0  # the revision from which others are counted

    def grant(self, box: int, ttl: str) -> int:
        self.leases.append(self.boxes[box].grant(self.ttl(ttl)))
        return len(set(self.leases))

    def create(self, box: int, key: str, value: str, lease: int) -> Any:
        if self.leases:
            made = self.boxes[box].create(self.prefix + key, value, self._lease(lease))
            self.first = self.first or made.revision
            return made.done, made.revision - self.first, made.value
        return None

    def keep_alive(self, box: int, lease: int) -> bool | None:
        return self.boxes[box].keep_alive(self._lease(lease)) if self.leases else None

    def revoke(self, box: int, lease: int) -> bool | None:
        return self.boxes[box].revoke(self._lease(lease)) if self.leases else None

    def get(self, box: int, key: str) -> str | None:
        return self.boxes[box].get(self.prefix + key)

    def clean(self) -> None:
        for lease in self.leases:
            self.boxes[0].revoke(lease)

    def _lease(self, number: int) -> int:
        return self.leases[number % len(self.leases)]


class ZooKeeperSide(Side):
    """Nodes by number, round the ones that were made. `end` ends a box's session as the server does, and returns once
    its client was told.
    """

    boxes: Sequence[ZooKeeper]
    TOP: ClassVar = "/agreement"

    def __init__(self, boxes: Sequence[ZooKeeper], time: Time, prefix: str, end: Callable[[Any], None]) -> None:
        super().__init__(boxes, time, f"{self.TOP}/{prefix}/")
        self._end = end
        self.nodes: list[str] = []
        self.czxids: list[int] = []
        self.sessions: list[str] = []

    def play(self, script: Script) -> list[Any]:
        """And in the end the rank of each node's transaction."""
        answers = super().play(script)
        return [*answers, [sorted(self.czxids).index(each) for each in self.czxids]]

    def create(self, box: int, parent: str, value: str) -> Any:
        return self._make(box, self.prefix + parent, value)

    def create_below(self, box: int, node: int, value: str) -> Any:
        return self._make(box, self._node(node), value) if self.nodes else None

    def children(self, box: int, parent: str) -> list[str]:
        return sorted(self.boxes[box].children(self.prefix + parent))

    def get(self, box: int, node: int) -> str | None:
        return self.boxes[box].get(self._node(node)) if self.nodes else None

    def delete(self, box: int, node: int) -> bool | None:
        return self.boxes[box].delete(self._node(node)) if self.nodes else None

    def delete_parent(self, box: int, parent: str) -> bool:
        return self.boxes[box].delete(self.prefix + parent)

    def get_parent(self, box: int, parent: str) -> str | None:
        return self.boxes[box].get(self.prefix + parent)

    def session(self, box: int) -> str:
        return self._alias(self.boxes[box].session())

    def end(self, box: int) -> None:
        if self.boxes[box].session():
            self._end(self.boxes[box])

    def clean(self) -> None:
        for each in self.boxes:
            each.close()

    def _make(self, box: int, parent: str, value: str) -> Any:
        made = self.boxes[box].create(f"{parent}/{value}-", value)
        self.nodes.append(made.path)
        self.czxids.append(made.czxid)
        return made.path.removeprefix(self.prefix), self._alias(made.session), sorted(made.beside)

    def _node(self, number: int) -> str:
        return self.nodes[number % len(self.nodes)]

    def _alias(self, session: str) -> str:
        if session and session not in self.sessions:
            self.sessions.append(session)
        return f"session {self.sessions.index(session)}" if session else ""


def step(label: str, touches: tuple[str, ...], writes: bool) -> None:
    """Nobody else is let go first."""


def end_session(port: ZooKeeperPort) -> None:
    """As the server does, and the box is told."""
    port.server.close(int(port.session(), 16))
    assert not port.keep_alive()


def demand_agreement(
    script: Script, tempo: Tempo, real: Callable[[Passing], Side], virtual: Callable[[Standing], Side]
) -> None:
    """Ask both. Where the machine was too slow to say what a short ttl came to, ask again at half the speed."""
    for doubling in range(DOUBLINGS):
        slower = tempo.slower(2**doubling)
        time = Passing(slower)
        side = real(time)
        try:
            told = side.play(script)
        finally:
            side.clean()
        if not time.late:
            break
    assert not time.late, f"Nothing was answered within {slower.slack} s."
    answers = virtual(Standing(slower)).play(script)
    asked = zip([*script, *[("in the end",)] * (len(told) - len(script))], told, answers, strict=True)
    differences = [
        f"{question}: really {one!r}, virtually {other!r}" for question, one, other in asked if one != other
    ]
    assert not differences, "\n".join([*differences, "in", *map(str, script)])
