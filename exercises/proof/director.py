"""Whoever directs a cell: has two boxes sweep, sees in the journal where they are, and says what came of it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from django.db import DatabaseError, InterfaceError, connections

from exercises.proof.cells import LET_IN, REFUSED, Cell
from exercises.proof.crew import BoxProcess
from marlow.clock import monotonic, real_sleep, wait_until
from shop.models import Settlement
from sweeper import verdict
from sweeper.events import Event, Kind
from sweeper.models import Event as Row
from sweeper.models import SweepRun

FIRST, SECOND = "box-b", "box-a"  # as in the lesson: B holds the lock, A comes by
QUESTION = "lookup"
SOON = 0.05  # real seconds between two knocks
OVER = (Kind.RELEASED, Kind.STOPPED, Kind.DIED)


class Lost(Exception):
    """A box did not come where the play needs it; its log says more."""


@dataclass
class Director:
    """`settings` are what both boxes sweep with; those of the second may be changed on the way (a failover)."""

    cell: Cell
    first: BoxProcess
    second: BoxProcess
    settings: dict[str, Any]
    control: Callable[[dict[str, Any]], None]  # how the provider is told to behave
    changed: dict[str, Any] = field(default_factory=dict)
    knocking: bool = False  # the second box is at a sweep whose answer nobody has taken yet
    seen: dict[str, Any] = field(default_factory=dict)  # what a play noticed beside the verdict

    def answers_take(self, seconds: float) -> None:
        """How long the provider takes for each answer from now on (real seconds)."""
        self.control({"default": {"mode": "slow", "latency": seconds} if seconds else {"mode": "fast"}})

    def begin(self) -> None:
        """The first box goes to work."""
        self.first.tell(self.settings)

    def wait_for(self, kind: Kind, box: str = FIRST, seconds: float = 10.0) -> None:
        """Until this box has noted an event of this kind. Raises Lost."""
        if not wait_until(Row.objects.filter(kind=kind, box=box).exists, seconds):
            raise Lost(f"{box} came to no “{kind}” within {seconds:.0f} s; see {box}.log.")

    def knock(self, seconds: float = 0.0) -> bool:
        """Have the second box sweep, again and again until it is told yes or the time is over; at least once."""
        deadline = monotonic() + seconds
        while not self._knock_once():
            if monotonic() >= deadline:
                return False
            real_sleep(SOON)
        return True

    def knock_until_settled(self, seconds: float) -> None:
        """Until the second box has settled what the first left, at most so long; notes how long that took."""
        began = monotonic()
        while not Settlement.objects.exists() and monotonic() < began + seconds:
            self.knock()
            self.finish_second()
            real_sleep(SOON)
        self.seen["waited"] = round(monotonic() - began, 2)

    def _knock_once(self) -> bool:
        """True as soon as the second box holds the lock: it is at work then."""
        message = self.second.tell({**self.settings, **self.changed})
        self.knocking = True
        let_in = SweepRun.objects.filter(message=message, acquired_at__isnull=False)
        wait_until(lambda: _safely(let_in.exists) or self.second.dialogue.spoke(), 20)
        if _safely(let_in.exists):
            return True
        self.finish_second()
        return False

    def finish_first(self) -> None:
        """Wait until the first box has ended its sweep."""
        self.first.answer()

    def finish_second(self) -> None:
        """Wait until the second box has ended the sweep it is at, if it is at one."""
        if self.knocking:
            self.second.answer()
            self.knocking = False

    def finish(self) -> None:
        self.finish_first()
        self.finish_second()

    def verdict(self) -> dict[str, Any]:
        """What was seen, in the words of the table."""
        read = verdict.read(lock=self.cell.lock, settle=self.cell.settle, question=QUESTION)
        events = [verdict.as_event(row) for row in Row.objects.order_by("real_at", "id")]
        return {**read, **beside_the_verdict(events), **self.seen}


def beside_the_verdict(events: list[Event]) -> dict[str, Any]:
    """What the table asks of a journal, in the order of real time, and of the database as it stands."""
    return {
        "second": LET_IN if _met(events) else REFUSED,
        "settled": Settlement.objects.count(),
        "stale": sum(event.kind is Kind.STALE for event in events),
    }


def _met(events: list[Event]) -> bool:
    """Whether the second box was told yes before the first one's run had let go, in the order of real time."""
    first: UUID | None = None
    for event in events:
        if event.kind is Kind.ACQUIRED and event.box == FIRST:
            first = event.run
        elif event.kind is Kind.ACQUIRED and first is not None:
            return True
        elif event.kind in OVER and event.run == first:
            first = None
    return False


def _safely(look: Callable[[], bool]) -> bool:
    """A look at a database that may just be restarting; False then."""
    try:
        return look()
    except (DatabaseError, InterfaceError):
        connections["default"].close()
        return False
