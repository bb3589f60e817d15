"""A settle in every order of two boxes, with one of them killed anywhere: what goes wrong, and in which order.

Decided by exhaustion. The lock is `none`: whatever a lock lets through is among these orders, and much that it does
not. Where there is a failure, the parts with fewer rows and no crash are tried first, and each to its end.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from exercises.catalogue.slot.settle import NAME, Settle
from exercises.handed.checks import CouldNotDecide
from exercises.lab.database import Database
from exercises.scenarios import oracles
from exercises.scenarios.boxes import Setting
from exercises.scenarios.corner import Corner, Played
from exercises.scenarios.faults import Fault, Kind
from exercises.scenarios.part import Bounds, Frontier, Tally, explore
from exercises.scenarios.shorter import shorter
from shop.models import Order

MOST = 4000  # orders, of one number of rows
ROWS = (1, 2)  # with one a stock that is set and not added to looks right, with two it does not
LEFT = "a row is pending, and every box has been through with it"
DIED = "a run died of the settle"
BOUNDS = Bounds(faults=1, kinds=(Kind.CRASH,))


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
    left = played.left[0].count(Order.Status.PENDING) if not played.met and not failed else 0
    return (
        *oracles.copies(played.verdict),
        *([f"{LEFT} ({left})"] if left else []),
        *([f"{DIED} ({len(failed)})"] if failed else []),
    )


def first_failure(database: Database, settle: Settle) -> tuple[Failure | None, int]:
    """And how many orders were tried. None: they all end well, and there are no others. The settle is `ready`. Raises
    CouldNotDecide, also where there are too many orders.
    """
    tried = 0
    for rows in ROWS:
        corner = Corner(Setting("none", NAME, "lookup"), boxes=2, orders=rows)
        tally = _explored(database, corner, settle)
        tried += tally.schedules
        if tally.shortest:
            return _failure(database, tally), tried
    return None, tried


def _explored(database: Database, corner: Corner, settle: Settle) -> _Judged:
    tally, frontier = _Judged(settle=settle), Frontier()

    def look() -> None:
        if tally.schedules > MOST:
            raise CouldNotDecide(
                f"There are more than {MOST} orders in which two boxes can meet in this settle: write fewer steps, "
                "or fewer transactions."
            )

    while not tally.shortest and (part := frontier.take()):
        frontier.learn(part, explore(database, corner, BOUNDS, part, tally, look))
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
