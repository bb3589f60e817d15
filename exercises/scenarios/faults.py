"""What can go wrong on a box, each at one place: after so many of its steps.

A fault is a choice like any other: a crash is a step of its own, and may come before or after any step of the other
boxes that could tell the difference.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from functools import partial

from exercises.lab.database import Database
from exercises.lab.fibre import State, Waiting, current
from exercises.lab.scheduler import Scheduler
from exercises.lab.steps import Mode, Step, Touch, touching
from exercises.scenarios.boxes import Box, Servers


class Kind(StrEnum):
    """The menu. Durations are fixed: a pause is longer than every lease by a millisecond."""

    PAUSE = "pause"  # the box stands still past its lease, and goes on
    CRASH = "crash"  # kill -9: its sessions end at once
    LOST = "lost"  # the session that works ends; the box lives
    UNKNOWN_DONE = "unknown-done"  # a COMMIT is carried out, and its answer is lost with the session
    UNKNOWN_UNDONE = "unknown-undone"  # the session ends just before the COMMIT
    CLOCK = "clock"  # the clock of the lock's Redis, or of three of Redlock's five, steps past every lease
    FAILOVER = "failover"  # the lock's Redis is lost, and the replica that takes over has none of its keys


@dataclass(frozen=True)
class Fault:
    """`after`: steps of that box, all its runs together."""

    kind: Kind
    box: str
    after: int

    def __str__(self) -> str:
        return f"{self.kind}@{self.box}:{self.after}"

    @classmethod
    def read(cls, text: str) -> "Fault":
        """Raises ValueError."""
        kind, at, rest = text.partition("@")
        box, colon, after = rest.partition(":")
        if not (at and colon):
            raise ValueError(f"{text!r} is no fault: it looks like crash@box-a:7.")
        return cls(Kind(kind), box, int(after))


# Those that strike a server, and the locks that stand on it. They come after a step of a box like the others.
STRIKES = {Kind.CLOCK: ("redis-naive", "redis-token", "redlock"), Kind.FAILOVER: ("redis-naive", "redis-token")}
MAJORITY = 3


class Faults:
    """The faults of one run."""

    def __init__(
        self,
        scheduler: Scheduler,
        database: Database,
        boxes: dict[str, Box],
        servers: Servers,
        faults: Sequence[Fault],
    ) -> None:
        self.scheduler, self.database, self.boxes, self.servers = scheduler, database, boxes, servers
        self.faults = faults
        self.struck: set[Fault] = set()

    def lie_in_wait(self) -> None:
        for number, fault in enumerate(self.faults, start=1):
            self.scheduler.start("faults", f"fault {number}", partial(self._strike, fault))
            self.scheduler.holds.append(partial(self._held, fault))

    def _held(self, fault: Fault, box: str) -> bool:
        return box == fault.box and self._due(fault)

    def _due(self, fault: Fault) -> bool:
        """It is to strike, and has not: the box waits for it."""
        return fault not in self.struck and self._steps(fault.box) >= fault.after

    def _steps(self, box: str) -> int:
        return sum(fibre.steps for fibre in self.scheduler.fibres if fibre.box == box)

    def _strike(self, fault: Fault) -> None:
        waiting = current()
        if waiting is None:
            return
        waiting.blocked(
            Waiting(lambda: self._due(fault) or self._over(fault.box), f"waits for {fault}"),
            Step(f"{fault.kind} of {fault.box}", self._touches(fault)),
        )
        self.struck.add(fault)
        if not self._over(fault.box):
            getattr(self, f"_{fault.kind.name.lower()}")(fault)

    def _over(self, box: str) -> bool:
        return all(fibre.state is State.DONE for fibre in self.scheduler.fibres if fibre.box == box)

    def _touches(self, fault: Fault) -> frozenset[Touch]:
        """An end of a session touches all it locked: everything, as far as anybody knows beforehand."""
        if fault.kind is Kind.PAUSE:
            return frozenset()
        if fault.kind in STRIKES:
            return touching(("redis", "redlock"), Mode.WRITE)
        return frozenset({Touch("*", Mode.COMMIT)})

    def _pause(self, fault: Fault) -> None:
        lasts = timedelta(seconds=self.boxes[fault.box].setting.ttl, milliseconds=1)
        self.scheduler.freeze(fault.box, self.scheduler.now + lasts)

    def _crash(self, fault: Fault) -> None:
        names = [fibre.name for fibre in self.scheduler.fibres if fibre.box == fault.box]
        self.scheduler.crash(fault.box)
        for name in names:
            self.database.lose(name)

    def _clock(self, fault: Fault) -> None:
        for server in (self.servers.redis, *self.servers.nodes[:MAJORITY]):
            server.step(self.boxes[fault.box].setting.ttl + 0.001)

    def _failover(self, fault: Fault) -> None:
        self.servers.redis.fail_over()
        self.servers.redis.add_replica()

    def _lost(self, fault: Fault) -> None:
        for fibre in self.scheduler.fibres:
            if fibre.box == fault.box and fibre.state is not State.DONE:
                self.database.lose(fibre.name)

    def _unknown_done(self, fault: Fault) -> None:
        self._at_next_commit(fault, carried_out=True)

    def _unknown_undone(self, fault: Fault) -> None:
        self._at_next_commit(fault, carried_out=False)

    def _at_next_commit(self, fault: Fault, *, carried_out: bool) -> None:
        for fibre in self.scheduler.fibres:
            if fibre.box == fault.box and fibre.state is not State.DONE:
                session = self.database.sessions.get(fibre.name)
                if session is not None and session.connection is not None:
                    session.connection.unknown = carried_out
