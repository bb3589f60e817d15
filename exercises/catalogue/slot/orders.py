"""A settle in every order of two boxes, with one of them killed anywhere: what goes wrong, and in which order.

Decided by exhaustion. The lock is `none`: whatever a lock lets through is among these orders, and much that it does
not. Small worlds come first, each of them without a crash and then with one, and what fails first is shown.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from exercises.catalogue.slot.settle import NAME, Settle
from exercises.handed.checks import CouldNotDecide, TheirsFailed
from exercises.lab.database import Database
from exercises.scenarios import oracles
from exercises.scenarios.boxes import Setting
from exercises.scenarios.corner import Corner, Played
from exercises.scenarios.faults import Fault, Kind
from exercises.scenarios.part import Bounds, Frontier, Tally, explore
from exercises.scenarios.shorter import shorter
from shop.models import Order
from sweeper.events import Kind as Happened

MOST = 2000  # orders, of one world
# Boxes, rows, and what may strike. Each box must do the work where it is the only one: box A in the first world, box
# B where A is killed before it settles anything. With one row a stock that is set and not added to looks right, with
# two it does not; what a crash leaves of a settle it leaves of one row's.
WORLDS = (
    (1, 1, Bounds()),
    (2, 1, Bounds(faults=1, kinds=(Kind.CRASH,))),
    (2, 2, Bounds()),
)
LEFT = "a row is pending that a box has been through with"
DIED = "a run died of the settle"


@dataclass(frozen=True)
class Failure:
    """One order that ended badly. `schedule` is its text, `played` has what was wrong."""

    schedule: str
    played: Played
    said: str = ""  # by Postgres


@dataclass(kw_only=True)
class _Judged(Tally):
    """As the laboratory's own tally, where wrong is what the exercise is about: copies, rows left, runs that died."""

    settle: Settle
    said: dict[str, str] = field(default_factory=dict)  # by the schedule's text

    def note(self, corner: Corner, faults: Sequence[Fault], played: Played) -> None:
        failed, self.settle.failed = self.settle.failed, []
        if self.settle.undecided:
            raise CouldNotDecide(self.settle.undecided)
        before = self.shortest
        super().note(corner, faults, replace(played, wrong=_wrong(played, failed)))
        if self.shortest and self.shortest is not before:
            self.said[self.shortest[0]] = failed[0] if failed else ""


def _wrong(played: Played, failed: Sequence[str]) -> tuple[str, ...]:
    """Raises CouldNotDecide where a run ended by what is not the settle's."""
    others = {who: what for who, what in played.errors.items() if what != "TheirsFailed"}
    if others:
        raise CouldNotDecide(f"A run of the laboratory ended by {' and '.join(sorted(set(others.values())))}.")
    left = 0 if failed or _killed_at_work(played) else played.left[0].count(Order.Status.PENDING)
    return (
        *oracles.copies(played.verdict),
        *([f"{LEFT} ({left})"] if left else []),
        *([f"{DIED} ({len(failed)})"] if failed else []),
    )


def _killed_at_work(played: Played) -> bool:
    """Then the other box may have passed by a row that was locked, and the next run finds it."""
    killed = {death.box for death in played.deaths}
    return any(event.kind is Happened.SETTLING and event.box in killed for event in played.events)


def first_failure(database: Database, settle: Settle) -> Failure | None:
    """None: every order ends well, and there are no others. The settle is `ready`. Raises CouldNotDecide, and
    TheirsFailed where there are too many orders and none of those that were tried is wrong.
    """
    for boxes, rows, bounds in WORLDS:
        corner = Corner(Setting("none", NAME, "lookup"), boxes=boxes, orders=rows)
        tally = _explored(database, corner, bounds, settle)
        if tally.shortest:
            return _failure(database, tally)
    return None


def _explored(database: Database, corner: Corner, bounds: Bounds, settle: Settle) -> _Judged:
    tally, frontier = _Judged(settle=settle), Frontier()

    def look() -> None:
        if tally.schedules > MOST:
            raise TheirsFailed(
                f"Two boxes can meet in more than {MOST} orders in your settle: write fewer steps or fewer "
                "transactions, and let each step name its one row."
            )

    try:
        while not tally.shortest and (part := frontier.take()):
            frontier.learn(part, explore(database, corner, bounds, part, tally, look))
    except TheirsFailed:
        if tally.shortest is None:
            raise
    return tally


def _failure(database: Database, tally: _Judged) -> Failure:
    """What is left out of a failure of the settle's own words leaves another failure: those stay as they are."""
    assert tally.shortest is not None  # noqa: S101  asked only where there is one
    schedule, played = tally.shortest
    said = tally.said[schedule]
    if {what.rpartition(" (")[0] for what in played.wrong} <= {*oracles.COPIES.values()}:
        schedule, played = shorter(database, (schedule, played))
        played = replace(played, wrong=oracles.copies(played.verdict))
    return Failure(schedule, played, said)
