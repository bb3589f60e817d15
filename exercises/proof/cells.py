"""The table to be proved: what each lock does under each fault, and what it then costs in each form of settling.

Written down by hand from the lesson's table, not worked out by code that sweeps. The shop of a cell has one book with
one copy, held by one pending order, and two boxes; what is expected is in the verdict's own words, and

    second     whether the second box was told yes while the first one's run had not ended: "let in" or "refused"
    stale      how often the fence refused a write
    settled    how many settlements were written

and, where it says so, `starts` (whether a box agrees to start at all) and `left_behind` (session locks still held on
the server after everybody is done).
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from shop.settle import FORMS
from sweeper.locks import LOCKS

LET_IN, REFUSED = "let in", "refused"


@dataclass(frozen=True)
class Cell:
    """One lock, one fault, one form. `stop`: with stop-on-lost-lease. `expected` holds keys of what is seen."""

    lock: str
    fault: str
    settle: str
    stop: bool = False
    expected: dict[str, Any] = field(default_factory=dict, compare=False, hash=False)

    @property
    def name(self) -> str:
        """As `manage.py prove --cell` takes it: `overrun/redis-token/unguarded`, or with `/stopping` behind it."""
        return "/".join((self.fault, self.lock, self.settle, *(["stopping"] if self.stop else [])))

    def agrees(self, seen: dict[str, Any]) -> bool:
        return all(seen.get(name) == value for name, value in self.expected.items())


@dataclass(frozen=True)
class Outcome:
    """What the table says of a lock under a fault, unguarded."""

    second: str
    phantom: int = 0
    foreign_deletes: int = 0


APART = Outcome(REFUSED)  # the second box is refused until the first has ended
TURNS = Outcome(LET_IN)  # it is let in and nothing comes of it: the first writes no more, or another row
MET = Outcome(LET_IN, phantom=1)  # both believe that they hold the lock, and both write
TURNS_AND_DELETED = Outcome(LET_IN, foreign_deletes=1)  # and the first deletes the second's key all the same
MET_AND_DELETED = Outcome(LET_IN, phantom=1, foreign_deletes=1)  # and the first deletes the second's key

LEASED = ("redis-token", "redlock")
CONSENSUS = ("etcd", "zookeeper")

TABLE: dict[str, dict[str, Outcome]] = {
    # The run ends well within its lease.
    "calm": {
        "none": MET,
        "skip-locked": TURNS,
        **dict.fromkeys(("redis-naive", "slot", "postgres-advisory", *LEASED, *CONSENSUS), APART),
    },
    # The provider answers so late that the run outlives its lease or its slot.
    "overrun": {
        "none": MET,
        "redis-naive": MET_AND_DELETED,
        "slot": MET,
        "skip-locked": TURNS,
        **dict.fromkeys(LEASED, MET),
        **dict.fromkeys(("postgres-advisory", *CONSENSUS), APART),
    },
    # The same, with the lease renewed beside the run.
    "overrun-renewed": dict.fromkeys(LEASED, APART),
    # The box is stopped (SIGSTOP) between its last look at the lease and its write, and goes on when that is over.
    "pause": {
        "none": MET,
        "redis-naive": MET_AND_DELETED,
        "slot": MET,
        "postgres-advisory": APART,
        "skip-locked": TURNS,
        **dict.fromkeys((*LEASED, *CONSENSUS), MET),
    },
    "pause-renewed": dict.fromkeys(LEASED, MET),
    # kill -9 of the box, or its link cut without a word: the second is let in once the lease, the session or the
    # keepalives have run out.
    "kill": dict.fromkeys(LOCKS, TURNS),
    "power-loss": dict.fromkeys(LOCKS, TURNS),
    # Redis fails over to a replica that had not received the key yet.
    "failover": dict.fromkeys(("redis-naive", "redis-token"), MET),
    # Redlock: three of five clocks step past the lease; one steps, where the holder had three nodes of five and the
    # other two are back; one steps, where it had all five; one of three comes back without its keys.
    "three-clocks-step": {"redlock": MET},
    "one-clock-steps-bare-majority": {"redlock": MET},
    "one-clock-steps": {"redlock": APART},
    "node-restarts-bare-majority": {"redlock": MET},
    # The etcd member that leads is killed while the lock is held.
    "leader-loss": {"etcd": APART},
    # The lock's server is restarted mid-run: a Redis without persistence forgets, Postgres ends the session.
    "server-restart": {
        "redis-naive": MET_AND_DELETED,
        "redis-token": MET,
        "postgres-advisory": TURNS,
        "skip-locked": TURNS,
        "etcd": APART,
        "zookeeper": APART,
    },
    # The server ends the connection of the box mid-run.
    "connection-ended": {
        "redis-token": APART,
        "postgres-advisory": TURNS,
        "skip-locked": TURNS,
    },
    # A pooler in transaction mode between the boxes and Postgres: the lock is let go on another session than took it.
    "pooler": {"postgres-advisory": APART},
}
FAULTS = tuple(TABLE)
# Each in one sentence, for whoever reads the table.
ABOUT: dict[str, str] = {
    "calm": "No fault at all: the second box comes by while the first is at work, well within its lease.",
    "overrun": "The provider answers so late that the first box’s run outlives its lease, or its slot.",
    "overrun-renewed": "The run outlives its first lease, which is renewed beside it all the while.",
    "pause": "The first box is stopped between its last look at the lease and its write, until the lease is over.",
    "pause-renewed": "The first box is stopped before its write, and what renews its lease is stopped with it.",
    "kill": "The first box is killed (kill -9) before its write.",
    "power-loss": "The first box’s link is cut before its write, without a word to anybody, as when its power goes.",
    "failover": "Redis fails over to a replica that has not received the key yet.",
    "three-clocks-step": "The clocks of three of the five servers step past the lease.",
    "one-clock-steps-bare-majority": "The holder has three of five servers; the others are back as one clock steps.",
    "one-clock-steps": "The holder has all five servers, and the clock of one steps past the lease.",
    "node-restarts-bare-majority": "The holder has three of five servers; the others are back as one loses its keys.",
    "leader-loss": "The etcd member that leads is killed while the lock is held.",
    "server-restart": "The server that keeps the lock is restarted in the middle of the run.",
    "connection-ended": "The server ends the first box’s connection in the middle of the run.",
    "pooler": "A pooler in transaction mode stands before Postgres: each statement gets whichever session is free.",
}
# With stop-on-lost-lease a run that overruns ends by its own clock and writes nothing; a pause it can't know of.
STOPPING = {
    "overrun": {"redis-naive": TURNS_AND_DELETED, **dict.fromkeys(LEASED, TURNS)},
    "pause": dict.fromkeys((*LEASED, *CONSENSUS), MET),
}
# Where the first box never writes again, one form shows all there is.
ONE_FORM = {"kill", "power-loss", "connection-ended", "leader-loss", "one-clock-steps", "overrun-renewed", "pooler"}
FENCED_UNDER = {"calm", "overrun", "pause"}


def table() -> Iterator[Cell]:
    """Every cell, in the order of the faults and then of the locks."""
    for fault, row in TABLE.items():
        for lock in LOCKS:
            if lock in row:
                for settle in _forms(lock, fault):
                    yield _cell(lock, fault, settle, row[lock])
            if lock in STOPPING.get(fault, {}):
                yield _cell(lock, fault, "unguarded", STOPPING[fault][lock], stop=True)


def _forms(lock: str, fault: str) -> list[str]:
    if fault in ONE_FORM:
        return ["unguarded"]
    fenced = fault in FENCED_UNDER and LOCKS[lock].mints_token
    return [name for name, form in FORMS.items() if fenced or not form.fenced]


def _cell(lock: str, fault: str, settle: str, outcome: Outcome, stop: bool = False) -> Cell:
    """Guarded or fenced, never a phantom. Fenced, the first box's write is refused wherever the second was let in."""
    protected = settle != "unguarded"
    phantom = 0 if protected else outcome.phantom
    stale = int(FORMS[settle].fenced and outcome.phantom > 0)
    expected: dict[str, Any] = {
        "second": outcome.second,
        "phantom": phantom,
        "lost": 0,
        "double_settles": phantom,
        "foreign_deletes": outcome.foreign_deletes,
        "stale": stale,
    }
    if fault in ("kill", "power-loss"):
        expected["settled"] = 1
    if fault == "pooler":
        expected = {"starts": False, "left_behind": 1, "phantom": 0}
    return Cell(lock, fault, settle, stop, expected)
