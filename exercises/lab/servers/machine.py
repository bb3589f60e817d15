"""What every virtual server is: up or down, with a clock in whole milliseconds that somebody else moves."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

Now = Callable[[], datetime]

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MILLISECOND = timedelta(milliseconds=1)


class NotDone(Exception):
    """The server did not do what it was asked."""


class Unreachable(NotDone):
    """It is down: it was not even asked, and nothing was done."""


class NoSuchLease(NotDone):
    """The lease that a key was to go with is over, or never was."""


class SessionOver(NotDone):
    """The session in which something was asked has ended, and what went with it is gone."""


class NotAllowed(NotDone):
    """The server keeps a rule that this would break."""


class Machine(ABC):
    """`up` says whether it can be asked. Set to False and back, it was out of reach for a while and went on by
    itself; `stop` and `start` end the server and begin it anew.
    """

    name = "server"

    def __init__(self, now: Now) -> None:
        self._now = now
        self.up = True

    def stop(self) -> None:
        """From now on nothing runs out here, or goes on in any other way."""
        self._expire()
        self.up = False

    def start(self) -> None:
        self._begin()
        self.up = True

    def time(self) -> int:
        """This server's own time, in milliseconds."""
        return (self._now() - EPOCH) // MILLISECOND

    def _asked(self) -> None:
        """Before every question: raises Unreachable, or brings the server up to its own time."""
        if not self.up:
            raise Unreachable(f"The {self.name} is down.")
        self._expire()

    @abstractmethod
    def deadlines(self) -> list[int]:
        """When what is here will be over, by this server's own time, each once, the next one first."""

    @abstractmethod
    def _expire(self) -> None:
        """Do what the server has done by itself by now."""

    @abstractmethod
    def _begin(self) -> None:
        """Come up, as a server of this kind does after it was stopped."""
