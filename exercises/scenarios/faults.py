"""The menu of what can go wrong: each fault strikes one box, or one server, after so many steps of a box.

A fault is a choice like any other: it is a step of its own, which may come before or after any step of the other
boxes that could tell the difference. What each one does is in `strikes`, where each can matter in `menu`.
"""

from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    """`which` counts from 1. A deadline is one that is outstanding when the fault strikes: of a lease or a session on
    the lock's server, of a slot, or the moment of a message; `which` of them, by time. Just past it is a millisecond
    later, just short of it a millisecond earlier.
    """

    PAUSE = "pause"  # the box stands still until just past a deadline, and goes on
    PAUSE_SHORT = "pause-short"  # until just short of it
    CRASH = "crash"  # kill -9: the box does nothing more, its sessions end at once
    POWER = "power"  # the box does nothing more, its sessions linger until Postgres's keepalives notice
    LOST = "lost"  # the session that works ends; the box lives
    LOCK_LOST = "lock-lost"  # a session beside the one that works ends, where a lock keeps one of its own
    UNKNOWN_DONE = "unknown-done"  # a COMMIT is carried out, and its answer is lost with the session
    UNKNOWN_UNDONE = "unknown-undone"  # the session ends just before a COMMIT
    LOCK_DONE = "lock-done"  # the lock's server does what it is asked, and its answer is lost
    LOCK_UNDONE = "lock-undone"  # a question to the lock's server is lost
    CLOCK = "clock"  # of the lock's Redis, or of three of Redlock's five: steps just past a deadline
    CLOCK_SHORT = "clock-short"  # just short of it
    BOX_CLOCK = "box-clock"  # the box's clock steps just past a deadline
    BOX_CLOCK_SHORT = "box-clock-short"  # just short of it
    BOX_CLOCK_BACK = "box-clock-back"  # back by a lease and a millisecond
    FAILOVER = "failover"  # the lock's Redis is lost, and the replica that takes over has none of its keys
    PROVIDER_DONE = "provider-done"  # the provider does what it is asked, and answers too late
    PROVIDER_DARK = "provider-dark"  # the provider does nothing more, and answers nobody
    LANDS = "lands"  # the money of row `which` moves after all


@dataclass(frozen=True)
class Fault:
    """`after`: steps of that box, all its runs together."""

    kind: Kind
    box: str
    after: int
    which: int = 1

    def __str__(self) -> str:
        which = f".{self.which}" if self.which > 1 else ""
        return f"{self.kind}{which}@{self.box}:{self.after}"

    @classmethod
    def read(cls, text: str) -> "Fault":
        """Raises ValueError."""
        kind, at, rest = text.partition("@")
        box, colon, after = rest.partition(":")
        name, dot, which = kind.partition(".")
        if not (at and colon):
            raise ValueError(f"{text!r} is no fault: it looks like crash@box-a:7, or pause.2@box-a:7.")
        return cls(Kind(name), box, int(after), int(which) if dot else 1)
