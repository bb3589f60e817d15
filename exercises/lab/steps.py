"""What one step of a fibre is, what it touches, and which two steps must not be swapped.

A step is one round trip: a statement, a COMMIT, a call to a service, or the moment at which a statement that was
blocked goes on. Two steps *depend* on each other where swapping them may change what either of them finds; when in
doubt they do.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum


class Mode(Enum):
    """How a step touches what it touches."""

    SNAPSHOT = "snapshot"  # reads what is committed, waits for nobody
    LOCK = "lock"  # takes, or waits for, what only one transaction may hold: a row to write, a unique key
    PROBE = "probe"  # looks at others' locks without waiting: skip locked, nowait, try
    CHILD = "child"  # a foreign key's look at its parent row
    GONE = "gone"  # locks a row against such looks: delete, for update
    COMMIT = "commit"  # makes writes visible and frees locks
    READ = "read"  # of a service outside the database
    WRITE = "write"  # likewise


# Which pairs matter where both touch the same thing. Two snapshots never do; a snapshot sees no uncommitted write.
MATTERS = {
    frozenset(pair)
    for pair in (
        (Mode.SNAPSHOT, Mode.COMMIT),
        (Mode.LOCK, Mode.LOCK),
        (Mode.LOCK, Mode.PROBE),
        (Mode.LOCK, Mode.COMMIT),
        (Mode.PROBE, Mode.PROBE),
        (Mode.PROBE, Mode.COMMIT),
        (Mode.COMMIT, Mode.COMMIT),
        (Mode.CHILD, Mode.GONE),
        (Mode.READ, Mode.WRITE),
        (Mode.WRITE, Mode.WRITE),
    )
}
EVERYTHING = "*"


@dataclass(frozen=True)
class Touch:
    """`what` is a thing's name, with its part behind a colon where one part alone is meant: `redis:lock:sweeper`, or
    `shop_order:id=13`. A thing without a part is all of it, and `*` is everything there is. Parts that are named by
    different columns may be the same row.
    """

    what: str
    mode: Mode

    def meets(self, other: "Touch") -> bool:
        return frozenset((self.mode, other.mode)) in MATTERS and _same(self.what, other.what)


@dataclass(frozen=True)
class Step:
    """`label` is for people and the same in every run of the same schedule; `touches` is for the reduction. `frees`:
    a statement that waits in the database may be free after this, and has to be asked. `besides`: what it turned out
    to touch when it was carried out, which nobody could know before.
    """

    label: str
    touches: frozenset[Touch] = frozenset()
    frees: bool = True
    besides: set[Touch] = field(default_factory=set, compare=False)

    def depends_on(self, other: "Step") -> bool:
        return any(
            mine.meets(theirs)
            for mine in (*self.touches, *self.besides)
            for theirs in (*other.touches, *other.besides)
        )


def step(label: str, *touches: Touch) -> Step:
    return Step(label, frozenset(touches))


def touching(names: Iterable[str], mode: Mode) -> frozenset[Touch]:
    return frozenset(Touch(name, mode) for name in names)


def _same(one: str, other: str) -> bool:
    if EVERYTHING in (one, other) or one == other:
        return True
    if one.startswith(f"{other}:") or other.startswith(f"{one}:"):
        return True
    (mine, mine_by), (theirs, theirs_by) = (name.partition("=")[::2] for name in (one, other))
    return bool(mine_by and theirs_by) and mine != theirs and mine.partition(":")[0] == theirs.partition(":")[0]
