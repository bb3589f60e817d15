"""Two boxes with the lock that was handed in, in every order: with nothing wrong, with a pause, with a crash.

No row is pending: what is looked at is who holds the lock, and each order is a fifth as long. Bounded by their number
and never by time, so that a slow machine finds what a fast one does.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from exercises.catalogue.own_lock.lock import NAME, Watch
from exercises.handed.checks import CouldNotDecide, TheirsFailed
from exercises.lab.database import Database
from exercises.lab.scheduler import TooLong
from exercises.scenarios import oracles
from exercises.scenarios.boxes import Setting
from exercises.scenarios.corner import Corner, Played
from exercises.scenarios.faults import Fault, Kind
from exercises.scenarios.part import Bounds, Frontier, Tally, explore
from sweeper.events import Kind as Happened

MOST = 2000  # orders of one kind
NOBODY_OLD = 1e9  # seconds: no row is ever pending for so long
CALM = Bounds()
PAUSED = Bounds(faults=1, kinds=(Kind.PAUSE,))
KILLED = Bounds(faults=1, kinds=(Kind.CRASH,))

TWO = "two runs held it at once"
FOREIGN = "a run deleted another run’s key"
STUCK = "nobody got it, long after its holder had died"
NOBODY = "nobody got it, though nobody had it"
KINDS = {TWO, FOREIGN, STUCK, NOBODY}
# What is looked for, by what a run came to and what was watched.
Looked = Callable[[Played, Watch], str]


def two(played: Played, watch: Watch) -> str:
    return TWO if played.verdict["overlaps"] else ""


def foreign(played: Played, watch: Watch) -> str:
    return FOREIGN if watch.foreign else ""


def stuck(played: Played, watch: Watch) -> str:
    return STUCK if any(what.startswith(oracles.STOPPED) for what in played.wrong) else ""


def nobody(played: Played, watch: Watch) -> str:
    """A moment's messages find it free, and both are refused."""
    moments: dict[object, list[Happened]] = {}
    free = True
    for event in played.events:
        if event.kind in (Happened.ACQUIRED, Happened.REFUSED):
            moments.setdefault(event.at, []).append(event.kind)
    for kinds in moments.values():
        free = free and Happened.ACQUIRED in kinds
    return "" if free else NOBODY


def calm(played: Played, watch: Watch) -> str:
    return two(played, watch) or nobody(played, watch)


class _Theirs(Exception):
    """The program failed of itself: there is no shorter order to look for."""


@dataclass(frozen=True)
class Failure:
    """One order, as a text and as it was played. `theirs`: the program's own failure, where that was it."""

    what: str
    schedule: str
    played: Played
    theirs: bool = False


@dataclass(kw_only=True)
class _Judged(Tally):
    """As the laboratory's own tally, where wrong is what is looked for, and what a program itself failed of."""

    watch: Watch
    looked: Looked
    found: str = ""

    def note(self, corner: Corner, faults: Sequence[Fault], played: Played) -> None:
        watch = self.watch
        what = watch.failed[0] if watch.failed else self.looked(played, watch)
        undecided = watch.undecided or _not_theirs(played)
        watch.begin()
        if undecided:
            raise CouldNotDecide(undecided)
        super().note(corner, faults, replace(played, wrong=(what,) if what else ()))
        if what and what not in KINDS:
            raise _Theirs  # in other orders it would fail as well, and each may take as long as this one


def _not_theirs(played: Played) -> str:
    others = {what for what in played.errors.values() if what not in {"TheirsFailed", *oracles.STRUCK}}
    return f"A run of the laboratory ended by {' and '.join(sorted(others))}." if others else ""


def search(database: Database, watch: Watch, looked: Looked, bounds: Bounds, messages: int = 2) -> Failure | None:
    """The shortest of the first failures of this kind; None: no order has one. Raises TheirsFailed,
    CouldNotDecide."""
    setting = Setting(NAME, "guarded", "lookup", pending_for=NOBODY_OLD)
    corner = Corner(setting, boxes=2, orders=1, messages=messages)
    tally, frontier = _Judged(watch=watch, looked=looked), Frontier()

    def look() -> None:
        if tally.schedules > MOST:
            raise CouldNotDecide(
                f"There are more than {MOST} orders in which this lock can be met: ask fewer questions."
            )

    watch.begin()
    try:
        while not tally.shortest and (part := frontier.take()):
            frontier.learn(part, explore(database, corner, bounds, part, tally, look))
    except _Theirs:
        pass
    except TooLong as endless:
        raise TheirsFailed("In one order of the boxes your lock never comes to an end.") from endless
    if tally.shortest is None:
        return None
    schedule, played = tally.shortest
    return Failure(played.wrong[0], schedule, played, theirs=played.wrong[0] not in KINDS)
