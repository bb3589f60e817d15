"""A fibre: one function that runs until its next step, and then waits to be told to go on."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import TYPE_CHECKING, Any

from greenlet import getcurrent, greenlet

from exercises.lab.steps import Step

if TYPE_CHECKING:
    from exercises.lab.scheduler import Scheduler


class Abandoned(BaseException):
    """Raised in a fibre that will not go on: its box crashed, or the run is over. Not to be caught."""


class State(Enum):
    READY = "ready"  # waits at a step, to be chosen
    ASLEEP = "asleep"  # until `wakes`
    BLOCKED = "blocked"  # its statement waits for another session
    DONE = "done"


@dataclass
class Waiting:
    """What a fibre waits for: `arrived` says whether it is there by now. A statement that waits in the database also
    has its session's number, can say whose sessions it waits for, and can be told to give up.
    """

    arrived: Callable[[], bool]
    label: str
    session: int = 0
    blockers: Callable[[], set[int]] = set
    give_up: Callable[[], None] | None = None


class Fibre:
    """One function on one box. `error` is what it ended with, if it ended with an error."""

    def __init__(self, scheduler: "Scheduler", box: str, name: str, work: Callable[[], Any]) -> None:
        self.scheduler, self.box, self.name = scheduler, box, name
        self.state = State.READY
        self.next: Step | None = None  # the step it waits at; None: it has not begun
        self.wakes: datetime | None = None
        self.waiting: Waiting | None = None
        self.error: BaseException | None = None
        self.abandoned = False
        self.steps = 0
        self.freed_by: int | None = None  # the place of the step that ended its waiting
        self._work = work
        self._greenlet = greenlet(self._body)
        self._greenlet.fibre = self  # type: ignore[attr-defined]  # greenlets take attributes, their types do not

    def _body(self) -> None:
        try:
            if not self.abandoned:
                self._work()
        except Abandoned:
            pass
        except Exception as error:
            self.error = error
        finally:
            self.state = State.DONE

    # --- Called by the scheduler ---

    def go_on(self) -> None:
        """Run it until it waits again, or is done."""
        self._greenlet.parent = getcurrent()
        self._greenlet.switch()

    def abandon(self) -> None:
        """Unwind it: whatever it still tries to do is refused, and no step of it is recorded."""
        self.abandoned = True
        while self.state is not State.DONE:
            self.go_on()

    # --- Called by the fibre itself ---

    def at(self, step: Step) -> None:
        """Wait here until chosen."""
        self.next, self.state = step, State.READY
        self._pause()
        self.steps += 1
        self.freed_by = None

    def sleep_until(self, moment: datetime) -> None:
        self.wakes, self.state = moment, State.ASLEEP
        self._pause()
        self.wakes = None

    def blocked(self, waiting: Waiting, resume: Step) -> None:
        """Wait until what this statement waits for is free, and then until chosen to go on."""
        self.waiting, self.next, self.state = waiting, resume, State.BLOCKED
        self._pause()
        self.waiting = self.freed_by = None

    def _pause(self) -> None:
        if not self.abandoned:
            parent = self._greenlet.parent
            assert parent is not None  # noqa: S101  a greenlet that runs has one
            parent.switch()
        if self.abandoned:
            raise Abandoned


def current() -> Fibre | None:
    """The fibre that is running; None outside the laboratory."""
    return getattr(getcurrent(), "fibre", None)
