"""The journal as a port: live it writes its rows at once, in the laboratory it is memory."""

import uuid
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from sweeper.events import Event


@dataclass(frozen=True)
class Run:
    """Who sweeps: one run on one box, with what it was told to use."""

    run: uuid.UUID
    box: str
    message: str
    lock: str
    settle: str
    question: str


class AlreadyRun(Exception):
    """This message has had its run; the journal says so on that run."""


class Journal(Protocol):
    """Append only. A journal that can't reach its store keeps the event elsewhere and lets the run go on."""

    def begin(self, run: Run, at: datetime) -> None:
        """Open the run. Raises AlreadyRun when its message was swept before."""
        ...

    def write(self, event: Event) -> None: ...


class Memory:
    """A journal in memory: no round trip, no extra step to explore."""

    def __init__(self) -> None:
        self.runs: dict[uuid.UUID, Run] = {}
        self.events: list[Event] = []

    def begin(self, run: Run, at: datetime) -> None:
        if any(run.message == earlier.message for earlier in self.runs.values()):
            raise AlreadyRun(f"Message {run.message} was swept before.")
        self.runs[run.run] = run

    def write(self, event: Event) -> None:
        self.events.append(event)
