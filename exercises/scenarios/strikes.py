"""What each fault does, when it strikes."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial

from exercises.lab.database import Database
from exercises.lab.fibre import Fibre, State, Waiting, current
from exercises.lab.scheduler import Scheduler, at
from exercises.lab.steps import Mode, Step, Touch, touching
from exercises.scenarios.boxes import Box, Servers, Setting
from exercises.scenarios.faults import Fault, Kind
from sweeper.locks import LOCKS

AMOUNT_MINOR = 1299  # of every row of a corner
MAJORITY = 3  # of Redlock's five
MILLISECOND = timedelta(milliseconds=1)
LOCK_SERVERS = ("redis", "redlock", "etcd", "zookeeper")

# What a fault touches beside its own box, which waits for it, and beside what the sessions that end with it have
# locked. Where deadlines matter, they are read.
_NOTICE = "notice of a death"  # when Postgres will miss a box: one more deadline
_DEADLINES = touching((*LOCK_SERVERS, _NOTICE), Mode.READ)
_REDIS = touching(("redis", "redlock"), Mode.WRITE)
TOUCHES: dict[Kind, frozenset[Touch]] = {
    Kind.CLOCK: _REDIS,
    Kind.CLOCK_SHORT: _REDIS,
    Kind.FAILOVER: _REDIS,
    Kind.POWER: touching((_NOTICE,), Mode.WRITE),
    Kind.PROVIDER_DARK: touching(("provider",), Mode.WRITE),
    **dict.fromkeys((Kind.PAUSE, Kind.PAUSE_SHORT, Kind.BOX_CLOCK, Kind.BOX_CLOCK_SHORT), _DEADLINES),
}


# Faults of a server, or of the money's way: no box waits for them. They come at any point from the moment on at which
# their box has done its steps, and before time passes.
FREE = (Kind.CLOCK, Kind.CLOCK_SHORT, Kind.FAILOVER, Kind.PROVIDER_DARK, Kind.LANDS)


@dataclass(frozen=True)
class Death:
    """A box that does nothing more. `noticed`: when Postgres knows, at the latest."""

    box: str
    at: datetime
    noticed: datetime


class Strikes:
    """The faults of one run, and what became of them. `missed`: those that found nothing to strike, as there were not
    so many deadlines.
    """

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
        self.missed: set[Fault] = set()
        self.deaths: list[Death] = []

    def lie_in_wait(self) -> None:
        for number, fault in enumerate(self.faults, start=1):
            self.scheduler.start("faults", f"fault {number}", partial(self._strike, fault))
            if fault.kind not in FREE:
                self.scheduler.holds.append(partial(self._held, fault))

    @property
    def met(self) -> frozenset[Fault]:
        """Those that struck something."""
        return frozenset(self.struck - self.missed)

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
        label = f"{fault.kind} of {fault.box}"

        def arrived() -> bool:
            if self._due(fault):  # from here on the box waits, and what its sessions hold stays as it is
                waiting.next = Step(label, self._touches(fault))
                return True
            return self._over(fault.box)

        waiting.blocked(Waiting(arrived, f"waits for {fault}"), Step(label))
        if fault.kind in FREE or not self._over(fault.box):
            self.struck.add(fault)
            getattr(self, f"_{fault.kind.name.lower()}")(fault)

    def _touches(self, fault: Fault) -> frozenset[Touch]:
        if fault.kind is Kind.LANDS:
            return touching((f"provider:row-{fault.which}",), Mode.WRITE)
        return TOUCHES.get(fault.kind, frozenset()) | self._end_of(self._ending_with(fault))

    def _ending_with(self, fault: Fault) -> list[str]:
        """The sessions that it ends."""
        theirs = self._sessions(fault.box)
        if fault.kind is Kind.LOST:
            alive = [fibre.name for fibre in self._fibres(fault.box) if fibre.state is not State.DONE]
            return [name for name in theirs if name in alive]
        if fault.kind is Kind.LOCK_LOST:
            work = [fibre.name for fibre in self._fibres(fault.box)]
            return [name for name in theirs if name not in work]
        return theirs if fault.kind is Kind.CRASH else []

    def _end_of(self, names: Sequence[str]) -> frozenset[Touch]:
        """What the end of these sessions touches."""
        sessions = [self.database.sessions[name].connection for name in names]
        return frozenset[Touch]().union(*(session.end for session in sessions if session is not None))

    def _over(self, box: str) -> bool:
        return all(fibre.state is State.DONE for fibre in self._fibres(box))

    def _fibres(self, box: str) -> list[Fibre]:
        return [fibre for fibre in self.scheduler.fibres if fibre.box == box]

    # --- The box stands still, or ends ---

    def _pause(self, fault: Fault) -> None:
        if (deadline := self._deadline(fault)) is not None:
            self.scheduler.freeze(fault.box, deadline + MILLISECOND)

    def _pause_short(self, fault: Fault) -> None:
        if (deadline := self._deadline(fault)) is not None:
            self.scheduler.freeze(fault.box, deadline - MILLISECOND)

    def _crash(self, fault: Fault) -> None:
        names = self._ending_with(fault)
        self.scheduler.crash(fault.box)
        self.deaths.append(Death(fault.box, self.scheduler.now, self.scheduler.now))
        self._lose(names)

    def _power(self, fault: Fault) -> None:
        self.scheduler.crash(fault.box)
        now = self.scheduler.now
        noticed = now + timedelta(seconds=self.boxes[fault.box].setting.keepalive)
        self.deaths.append(Death(fault.box, now, noticed))
        self.scheduler.start("faults", f"{fault.box} is missed", partial(self._notice, fault.box), noticed)

    def _notice(self, box: str) -> None:
        names = self._sessions(box)
        at(Step(f"Postgres notices that {box} is gone", self._end_of(names)))
        self._lose(names)

    # --- Postgres ---

    def _lost(self, fault: Fault) -> None:
        self._lose(self._ending_with(fault))

    def _lock_lost(self, fault: Fault) -> None:
        self._lose(self._ending_with(fault))

    def _unknown_done(self, fault: Fault) -> None:
        self._at_the_commit(fault, carried_out=True)

    def _unknown_undone(self, fault: Fault) -> None:
        self._at_the_commit(fault, carried_out=False)

    def _at_the_commit(self, fault: Fault, *, carried_out: bool) -> None:
        """Of the COMMIT that the box waits at, if it does. It ends the session as well, and then touches as much."""
        for fibre in self._fibres(fault.box):
            session = self.database.sessions.get(fibre.name)
            if fibre.state is State.READY and fibre.next and session and session.connection and commits(fibre.next):
                session.connection.unknown = carried_out
                fibre.next = Step(fibre.next.label, fibre.next.touches | session.connection.end)

    def _sessions(self, box: str) -> list[str]:
        """Of every run on this box, and those that a run keeps beside its own: `box-a/1`, `box-a/1 lock`."""
        return [name for name in self.database.sessions if name.partition("/")[0] == box]

    def _lose(self, names: Sequence[str]) -> None:
        for name in names:
            self.database.lose(name)

    # --- The lock's server, and clocks ---

    def _lock_done(self, fault: Fault) -> None:
        self._at_the_question(fault, LOCK_SERVERS, carried_out=True)

    def _lock_undone(self, fault: Fault) -> None:
        self._at_the_question(fault, LOCK_SERVERS, carried_out=False)

    def _clock(self, fault: Fault) -> None:
        self._step_clocks(fault, 1)

    def _clock_short(self, fault: Fault) -> None:
        self._step_clocks(fault, -1)

    def _step_clocks(self, fault: Fault, past: int) -> None:
        """So many milliseconds past the deadline, on each of the servers."""
        found = False
        for server in (self.servers.redis, *self.servers.nodes[:MAJORITY]):
            deadlines = server.deadlines()
            if fault.which <= len(deadlines):
                found = True
                server.step((deadlines[fault.which - 1] - server.time() + past) / 1000)
        if not found:
            self.missed.add(fault)

    def _failover(self, fault: Fault) -> None:
        self.servers.redis.fail_over()
        self.servers.redis.add_replica()

    def _box_clock(self, fault: Fault) -> None:
        if (deadline := self._deadline(fault)) is not None:
            self.boxes[fault.box].clock.offset += deadline + MILLISECOND - self.scheduler.now

    def _box_clock_short(self, fault: Fault) -> None:
        if (deadline := self._deadline(fault)) is not None:
            self.boxes[fault.box].clock.offset += deadline - MILLISECOND - self.scheduler.now

    def _box_clock_back(self, fault: Fault) -> None:
        box = self.boxes[fault.box]
        box.clock.offset -= timedelta(seconds=box.setting.ttl) + MILLISECOND

    # --- The provider ---

    def _provider_done(self, fault: Fault) -> None:
        self._at_the_question(fault, ("provider",), carried_out=True)

    def _provider_dark(self, fault: Fault) -> None:
        self.servers.provider.dark = True

    def _lands(self, fault: Fault) -> None:
        self.servers.provider.land(f"row-{fault.which}", AMOUNT_MINOR, self.scheduler.now)

    # --- What several need ---

    def _at_the_question(self, fault: Fault, servers: Sequence[str], *, carried_out: bool) -> None:
        """Of the question that the box waits to ask one of these, if it does."""
        for fibre in self._fibres(fault.box):
            if fibre.state is State.READY and fibre.next and server_of(fibre.next) in servers:
                self.boxes[fault.box].fates[fibre.name] = carried_out

    def _deadline(self, fault: Fault) -> datetime | None:
        """The one that is meant, of those outstanding now."""
        now = self.scheduler.now
        due = [fibre.wakes for fibre in self.scheduler.fibres if fibre.next is None and fibre.wakes is not None]
        slot = self._end_of_slot(self.boxes[fault.box].setting)
        outstanding = sorted({moment for moment in (*self.servers.deadlines(), *due, *slot) if moment > now})
        if fault.which > len(outstanding):
            self.missed.add(fault)
            return None
        return outstanding[fault.which - 1]

    def _end_of_slot(self, setting: Setting) -> list[datetime]:
        """Where the lock is a slot's row: when the next slot begins, in true time."""
        if setting.strategy is not LOCKS["slot"]:
            return []
        begun = self.scheduler.now.timestamp() // setting.every
        return [datetime.fromtimestamp((begun + 1) * setting.every, UTC)]


def server_of(asked: Step) -> str:
    """Whom this step asks: `redis`, `provider`, …, and `postgres` for a statement."""
    first = asked.label.partition(" ")[0]
    return first if first in (*LOCK_SERVERS, "provider") else "postgres"


def commits(asked: Step) -> bool:
    """Whether this step makes something so at Postgres: a COMMIT, or a statement that is its own transaction."""
    makes_so = any(touch.mode is Mode.COMMIT for touch in asked.touches)
    return makes_so and server_of(asked) == "postgres" and asked.label != "ROLLBACK"
