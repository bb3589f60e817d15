"""What an evening's journal has to show for itself: the moments at which something went wrong, in order.

Nothing failed at any of them, so nothing but this looks for them.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import UUID

from shop.words import count, times
from sweeper.events import Event, Kind
from sweeper.telling import clock
from sweeper.verdict import ENDINGS, foreign_deletes, overlaps

# From the worst to the merely odd; a crowded picture keeps the first ones.
LEASE, TOGETHER, DOUBLE, FOREIGN, STALE, DIED = "lease", "together", "double", "foreign", "stale", "died"
SHARE_ON_PURPOSE = {"skip-locked"}  # locks under which sweeps are meant to meet, each on rows of its own
STILL = datetime.max.replace(tzinfo=UTC)  # the end of what has not ended


@dataclass(frozen=True)
class Span:
    """One run as a stretch of its own box's clock. `end` is None while it runs; `acquired` None if it was refused."""

    run: UUID
    box: str
    state: str
    start: datetime
    end: datetime | None = None
    acquired: datetime | None = None
    lease_until: datetime | None = None
    rows: int | None = None
    lock: str = ""

    @property
    def held(self) -> bool:
        return self.acquired is not None


@dataclass(frozen=True)
class Finding:
    """One moment, or from it to `until`. `note` fits into the picture, `text` is the whole sentence."""

    kind: str
    at: datetime
    note: str
    text: str
    runs: tuple[UUID, ...] = ()
    order: str = ""
    until: datetime | None = None

    def within(self, start: datetime, end: datetime) -> bool:
        """Whether any of it lies in this stretch."""
        return self.at <= end and max(self.at, self.until or self.at) >= start


def find(
    spans: Sequence[Span],
    events: Sequence[Event],
    keys: Sequence[Event],
    doubled: Collection[str] = (),
    tenths: bool = False,
) -> list[Finding]:
    """Everything worth pointing at about these runs.

    What happened is read from `keys`, the events that take the lock and let it go, in the order in which they really
    happened, and judged as the verdict judges it. Two boxes' clocks differ: they only say where to draw it.
    `doubled` are orders known to have been settled more than once (two SETTLED events say so as well). `tenths`: of a
    second, in times of day.
    """
    locks = {span.run: span.lock for span in spans}
    wrong = [*_doubles(events, doubled, tenths), *_foreign(keys, locks)]
    blamed = {run for finding in wrong for run in finding.runs}
    found = [*_leases(spans, events), *_together(keys, locks, blamed, tenths), *wrong, *_ended_badly(events)]
    return sorted(found, key=lambda finding: finding.at)


def harm(findings: Iterable[Finding]) -> bool:
    """Whether an order was settled twice. All else is a warning that this time cost nothing."""
    return any(finding.kind == DOUBLE for finding in findings)


def settled(events: Iterable[Event]) -> dict[str, list[Event]]:
    """The SETTLED events of each order, in the order given."""
    by_order: dict[str, list[Event]] = defaultdict(list)
    for event in events:
        if event.kind is Kind.SETTLED:
            by_order[event.order].append(event)
    return by_order


def _leases(spans: Sequence[Span], events: Sequence[Event]) -> list[Finding]:
    """Runs that still settled orders after their lease was over."""
    found = []
    for span in spans:
        over = span.lease_until
        if over is None:
            continue
        late = [e for e in events if e.run == span.run and e.kind is Kind.SETTLED and e.at > over]
        if late:
            text = (
                f"{span.box}’s lease was over. Nothing told it so: {count(len(late), 'order')} went on being settled."
            )
            found.append(Finding(LEASE, over, f"{span.box}’s lease is over", text, (span.run,)))
    return found


def _together(keys: Sequence[Event], locks: Mapping[UUID, str], blamed: set[UUID], tenths: bool) -> list[Finding]:
    """Pairs of runs that were at work at once. Where that is meant, only those with something to answer for."""
    began = {event.run: event for event in keys if event.kind is Kind.ACQUIRED}
    found = []
    for pair in overlaps(keys):
        theirs = [locks[run] for run in pair if run in locks]
        if not theirs or (SHARE_ON_PURPOSE.issuperset(theirs) and not blamed.intersection(pair)):
            continue
        first, second = (began[run] for run in pair)
        until = _first_to_end(keys, pair)
        ending = "" if until is STILL else f" until {clock(until, tenths)}"
        text = f"{second.box} went to work while {first.box} was still at it: two sweeps at once{ending}."
        found.append(Finding(TOGETHER, second.at, "two sweeps at once", text, pair, until=until))
    return found


def _first_to_end(keys: Sequence[Event], pair: Collection[UUID]) -> datetime:
    """When, by its own clock, the run of the two that really ended first did so."""
    endings = (event.at for event in keys if event.run in pair and event.kind in ENDINGS)
    return next(endings, STILL)


def _doubles(events: Sequence[Event], doubled: Collection[str], tenths: bool) -> list[Finding]:
    found = []
    for order, settles in settled(events).items():
        if len(settles) < 2 and order not in doubled:
            continue
        last = settles[-1]
        who = " and ".join(f"{event.box} at {clock(event.at, tenths)}" for event in settles)
        back = sum(event.data.get("outcome") in ("released", "refunded") for event in settles)
        held = f" It held one copy and gave back {back}." if back > 1 else ""
        often = times(max(len(settles), 2))
        text = f"Order {order} was settled {often}: by {who}.{held}"
        runs = tuple(event.run for event in settles)
        found.append(Finding(DOUBLE, last.at, f"{order} settled {often}", text, runs, order))
    return found


def _foreign(keys: Sequence[Event], runs: Collection[UUID]) -> list[Finding]:
    found = []
    for event in foreign_deletes(keys):
        if event.run in runs:
            text = f"{event.box} finished and deleted the lock’s key, which was another run’s by then."
            found.append(Finding(FOREIGN, event.at, f"{event.box} deletes another run’s key", text, (event.run,)))
    return found


def _ended_badly(events: Sequence[Event]) -> list[Finding]:
    found = []
    for event in events:
        if event.kind is Kind.STALE:
            text = f"The fence refused {event.box}’s write: its token was older than one already seen."
            found.append(Finding(STALE, event.at, "refused by the fence", text, (event.run,)))
        elif event.kind is Kind.DIED:
            text = f"A run on {event.box} died: {event.data.get('error', 'nobody knows why')}."
            found.append(Finding(DIED, event.at, f"{event.box}’s run died", text, (event.run,)))
    return found
