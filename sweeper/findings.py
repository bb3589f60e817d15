"""What an evening's journal has to show for itself: the moments at which something went wrong, in order.

Nothing failed at any of them, so nothing but this looks for them.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import combinations
from uuid import UUID

from sweeper.events import Event, Kind
from sweeper.telling import clock, count

# From the worst to the merely odd; a crowded picture keeps the first ones.
LEASE, TOGETHER, DOUBLE, FOREIGN, STALE, DIED = "lease", "together", "double", "foreign", "stale", "died"


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

    @property
    def held(self) -> bool:
        return self.acquired is not None


@dataclass(frozen=True)
class Finding:
    """One moment. `note` fits into the picture, `text` is the whole sentence."""

    kind: str
    at: datetime
    note: str
    text: str
    runs: tuple[UUID, ...] = ()
    order: str = ""


def find(
    spans: Sequence[Span], events: Sequence[Event], doubled: Collection[str] = (), foreign: Collection[UUID] = ()
) -> list[Finding]:
    """Everything worth pointing at, by the boxes' own clocks.

    `doubled` are orders known to have been settled more than once (two SETTLED events say so as well); `foreign` are
    the runs whose release removed another run's key.
    """
    found = [
        *_leases(spans, events),
        *_together(spans),
        *_doubles(events, doubled),
        *_foreign(events, foreign, {span.run: span for span in spans}),
        *_ended_badly(events),
    ]
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


def _together(spans: Sequence[Span]) -> list[Finding]:
    found = []
    for one, other in combinations([span for span in spans if span.held], 2):
        first, second = sorted((one, other), key=lambda span: span.start)
        if first.end is not None and first.end <= second.start:
            continue
        until = min((span.end for span in (first, second) if span.end), default=None)
        ending = f" until {clock(until)}" if until else ""
        text = f"{second.box} began while {first.box} was still at work: two sweeps at once{ending}."
        found.append(Finding(TOGETHER, second.start, "two sweeps at once", text, (first.run, second.run)))
    return found


def _doubles(events: Sequence[Event], doubled: Collection[str]) -> list[Finding]:
    found = []
    for order, times in settled(events).items():
        if len(times) < 2 and order not in doubled:
            continue
        last = times[-1]
        who = " and ".join(f"{event.box} at {clock(event.at)}" for event in times)
        back = sum(event.data.get("outcome") in ("released", "refunded") for event in times)
        held = f" It held one copy and gave back {back}." if back > 1 else ""
        often = "twice" if len(times) <= 2 else f"{len(times)} times"
        text = f"Order {order} was settled {often}: by {who}.{held}"
        found.append(
            Finding(DOUBLE, last.at, f"{order} settled {often}", text, tuple(event.run for event in times), order)
        )
    return found


def _foreign(events: Sequence[Event], foreign: Collection[UUID], spans: dict[UUID, Span]) -> list[Finding]:
    found = []
    for event in events:
        if event.kind is not Kind.RELEASED or not event.data.get("deleted"):
            continue
        if event.run in foreign or event.data.get("foreign"):
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
