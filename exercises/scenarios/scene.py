"""A cell of the lock table in virtual time: the shop of a cell, two boxes, and whoever directs them.

The laboratory's counterpart of `exercises.proof.director` and `exercises.proof.gate`. Whoever directs is a fibre
beside the boxes': it sees in the journal where they are, never in the number of steps they took.
"""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from exercises.lab.database import Database
from exercises.lab.fibre import Fibre, State, Waiting, current
from exercises.lab.policies import FirstCome
from exercises.lab.scheduler import LabError, Scheduler
from exercises.lab.servers import VirtualRedis
from exercises.lab.servers.machine import Machine
from exercises.lab.steps import step
from exercises.proof.cells import Cell
from exercises.proof.director import FIRST, QUESTION, SECOND, beside_the_verdict
from exercises.proof.lane import LET_GO_WITHIN
from exercises.proof.plays import settings_for
from exercises.proof.shopfloor import put_up
from exercises.scenarios import faults
from exercises.scenarios.boxes import Box, Servers, Setting, as_told
from exercises.scenarios.replay import clear
from exercises.scenarios.strikes import Strikes
from exercises.scenarios.wednesday import START
from sweeper import verdict
from sweeper.events import Event, Kind
from sweeper.journal import Memory

SOON = 0.5  # virtual seconds between two knocks
DIRECTOR = "director"
STOPPED_FOR = timedelta(hours=1)  # a box that is told to stand still, unless it is told to go on
Play = Callable[["Scene"], None]


class Gate:
    """Closed until it is opened. Whoever is about to note an event of this kind stands there until then."""

    def __init__(self, box: str, kind: Kind) -> None:
        self.box, self.kind = box, kind
        self.closed, self.reached = True, False

    def stops(self, event: Event) -> bool:
        return self.closed and (event.box, event.kind) == (self.box, self.kind)

    def stand(self) -> None:
        fibre = current()
        if fibre is not None:
            self.reached = True
            fibre.blocked(
                Waiting(lambda: not self.closed, f"stands before {self.kind}"), step(f"goes on to {self.kind}")
            )

    def open(self) -> None:
        self.closed = False


class Gated(Memory):
    """A journal with gates before some of its events, where the live one has a trigger."""

    def __init__(self) -> None:
        super().__init__()
        self.gates: list[Gate] = []

    def write(self, event: Event) -> None:
        for gate in self.gates:
            if gate.stops(event):
                gate.stand()
        super().write(event)


class Scene:
    """One cell, played once. Durations are virtual seconds; whoever comes first goes first."""

    def __init__(self, database: Database, cell: Cell) -> None:
        self.database, self.cell = database, cell
        self.scheduler, self.journal = Scheduler(FirstCome(), START), Gated()
        self.servers = Servers(self.scheduler)
        self.setting = setting_for(cell)
        self.boxes = {name: Box(name, 0.0, self.servers, self.setting, self.journal) for name in (FIRST, SECOND)}
        self.runs: dict[str, Fibre] = {}  # by box: the last one
        self.noticed: dict[str, Any] = {}

    def play(self, play: Play) -> dict[str, Any]:
        """What was seen, in the words of the table. Raises LabError where the play can't be played to its end."""
        clear()
        try:
            put_up(START, "proof")
            directing = self.scheduler.start(DIRECTOR, DIRECTOR, lambda: self._direct(play))
            try:
                self.scheduler.run()
            finally:
                self.database.tidy()
            if directing.error is not None:
                raise directing.error
            return self._seen()
        finally:
            clear()

    def _direct(self, play: Play) -> None:
        try:
            play(self)
        finally:
            for gate in self.journal.gates:  # a play that failed is to say why, and not that nobody can go on
                gate.open()

    def _seen(self) -> dict[str, Any]:
        events = self.journal.events
        read = verdict.on(events, verdict.counted(), **self.setting.named)
        died = {run.name: type(run.error).__name__ for run in self.scheduler.fibres if run.error is not None}
        told = {**read, **beside_the_verdict(events), **self.noticed, "died": died}
        return {**told, "events": as_told(events)}

    # --- Where the boxes are ---

    def answers_take(self, seconds: float) -> None:
        """How long the provider takes for each question that is asked from now on."""
        self.servers.provider.latency = seconds

    def begin(self) -> None:
        """The first box goes to work."""
        self._send(FIRST)

    def wait_until_it_waits(self) -> None:
        """Until the first box has asked, and waits for the answer."""
        self._until(lambda: self._noted(Kind.ASKED, FIRST) and self.runs[FIRST].state is State.ASLEEP)

    def gate(self, box: str, kind: Kind) -> Gate:
        gate = Gate(box, kind)
        self.journal.gates.append(gate)
        return gate

    def come(self, gate: Gate) -> bool:
        """Until a box stands here; False where its run ended first."""
        self._until(lambda: gate.reached or self._over(gate.box))
        return gate.reached

    def demand(self, gate: Gate) -> None:
        if not self.come(gate):
            raise LabError(f"{gate.box} ended its run and came to no “{gate.kind}”.")

    def knock(self, seconds: float = 0.0) -> bool:
        """Have the second box sweep, again and again until it is told yes or the time is over; at least once."""
        deadline = self.scheduler.now + timedelta(seconds=seconds)
        while not self._knock_once():
            if self.scheduler.now >= deadline:
                return False
            self._pass(SOON)
        return True

    def knock_until_settled(self, seconds: float) -> None:
        """Until the second box has settled what the first left, at most so long; notes how long that took."""
        began = self.scheduler.now
        deadline = began + timedelta(seconds=seconds)
        while not self._noted(Kind.SETTLED, SECOND) and self.scheduler.now < deadline:
            if self.knock():
                self.finish(SECOND)
            if not self._noted(Kind.SETTLED, SECOND):
                self._pass(SOON)
        self.noticed["waited"] = (self.scheduler.now - began).total_seconds()

    def finish(self, *boxes: str) -> None:
        """Until these boxes have ended the sweep they are at, if they are at one."""
        self._until(lambda: all(self._over(box) for box in boxes))

    # --- What is done to them ---

    def stop(self) -> None:
        """The first box stands still, and all that runs on it."""
        self.scheduler.freeze(FIRST, self.scheduler.now + STOPPED_FOR)

    def go_on(self) -> None:
        self.scheduler.freeze(FIRST, self.scheduler.now)

    def strike(self, kind: faults.Kind) -> None:
        """A fault out of the laboratory's menu strikes the first box, or its server, now."""
        steps = sum(fibre.steps for fibre in self.scheduler.fibres if fibre.box == FIRST)
        fault = faults.Fault(kind, FIRST, steps)
        strikes = Strikes(self.scheduler, self.database, self.boxes, self.servers, [fault])
        strikes.lie_in_wait()
        self._until(lambda: fault in strikes.struck)
        if fault not in strikes.met:
            raise LabError(f"There was nothing that {fault} could strike.")

    def a_redis_that_is_gone(self) -> VirtualRedis:
        gone = VirtualRedis(lambda: self.scheduler.now)
        gone.stop()
        return gone

    def lock_server(self) -> Machine | None:
        """What the lock stands on beside the shop's own database; None where that is all."""
        found: dict[str, Machine] = {
            "redis": self.servers.redis,
            "etcd": self.servers.etcd,
            "zookeeper": self.servers.zookeeper,
        }
        return found.get(self.setting.strategy.server)

    # --- What several need ---

    def _send(self, box: str) -> Fibre:
        run = self.runs[box] = self.boxes[box].cron(self.scheduler.now)
        self.database.session(run.name)
        return run

    def _knock_once(self) -> bool:
        """True as soon as the second box holds the lock: it is at work then."""
        before = self._count(Kind.ACQUIRED, SECOND)
        self._send(SECOND)
        self._until(lambda: self._count(Kind.ACQUIRED, SECOND) > before or self._over(SECOND))
        return self._count(Kind.ACQUIRED, SECOND) > before

    def _over(self, box: str) -> bool:
        return box not in self.runs or self.runs[box].state is State.DONE

    def _noted(self, kind: Kind, box: str) -> bool:
        return self._count(kind, box) > 0

    def _count(self, kind: Kind, box: str) -> int:
        return sum((event.kind, event.box) == (kind, box) for event in self.journal.events)

    def _until(self, arrived: Callable[[], bool]) -> None:
        if not arrived():
            self._directing().blocked(Waiting(arrived, "looks on"), step("the director goes on"))

    def _pass(self, seconds: float) -> None:
        self._directing().sleep_until(self.scheduler.now + timedelta(seconds=seconds))

    def _directing(self) -> Fibre:
        fibre = current()
        if fibre is None:
            raise LabError("Only a fibre can direct a scene.")
        return fibre


def setting_for(cell: Cell) -> Setting:
    """What the live play of this fault sweeps with. Postgres misses a box that is gone as soon as a lane's does."""
    live = settings_for(cell.fault)
    return Setting(
        lock=cell.lock,
        settle=cell.settle,
        question=QUESTION,
        stop_on_lost_lease=cell.stop,
        renew=live["SWEEPER_RENEW_LEASE"],
        ttl=live["SWEEPER_TTL"],
        every=live["SWEEPER_EVERY"],
        keepalive=LET_GO_WITHIN,
    )
