"""What a timeline shows, read from the journal: the runs of a window, their events, and what they did wrong."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from django.db.models import Count, Q, QuerySet

from shop.models import Order, Settlement
from sweeper import timeline
from sweeper.events import Event, Kind
from sweeper.findings import Finding, Span, find, settled
from sweeper.models import Event as Row
from sweeper.models import SweepRun
from sweeper.shapes import Picture
from sweeper.telling import LONDON, tell
from sweeper.verdict import as_event, foreign_deletes
from sweeper.window import LONGEST, Window

AT_MOST = 2_000  # events in one picture; more could not be told apart


@dataclass(frozen=True)
class Line:
    """One event as a line of text."""

    event: Event
    text: str
    id: int | None  # the order's, for a link
    marked: bool


@dataclass(frozen=True)
class Scene:
    spans: list[Span]
    events: list[Event]
    foreign: set[UUID]
    findings: list[Finding]

    @property
    def cut(self) -> bool:
        return len(self.events) >= AT_MOST

    def lines(self, orders: Collection[str] = ()) -> list[Line]:
        """The events as sentences; those of `orders` marked."""
        named = Order.objects.filter(reference__in={event.order for event in self.events})
        ids = dict(named.values_list("reference", "pk"))
        return [
            Line(event, tell(event, self.is_foreign(event)), ids.get(event.order), event.order in orders)
            for event in self.events
        ]

    def is_foreign(self, event: Event) -> bool:
        """Whether this release removed another run's key."""
        return event.kind is Kind.RELEASED and event.run in self.foreign

    def picture(self, window: Window, chosen: Collection[UUID] = (), orders: Collection[str] = ()) -> Picture:
        scale = timeline.Scale(window.start, window.end)
        return timeline.draw(scale, self.spans, self.events, self.findings, chosen, orders)


def scene(window: Window) -> Scene:
    """Everything that happened in this window, by the boxes' own clocks; in the order of the real one."""
    return of_runs(SweepRun.objects.filter(_overlaps(window)), window)


def of_runs(runs: QuerySet[SweepRun], window: Window | None = None) -> Scene:
    spans = [as_span(run) for run in runs.order_by("started_at", "box")]
    rows = Row.objects.filter(run__in=[span.run for span in spans])
    if window:
        rows = rows.filter(at__range=(window.start, window.end))
    events = [as_event(row) for row in rows.order_by("real_at", "id")[:AT_MOST]]
    foreign = {event.run for event in events if event.data.get("foreign")} | _foreign(spans)
    return Scene(spans, events, foreign, find(spans, events, doubled(settled(events)), foreign))


def last_evening() -> Window | None:
    """From the first to the last run of the last day that has any, at most LONGEST."""
    last = SweepRun.objects.order_by("-started_at").first()
    if last is None:
        return None
    midnight = last.started_at.astimezone(LONDON).replace(hour=0, minute=0, second=0, microsecond=0)
    since = max(midnight, last.started_at - LONGEST + timedelta(minutes=30))
    first = SweepRun.objects.filter(started_at__gte=since).order_by("started_at").first() or last
    end = max(last.ended_at or last.started_at, last.started_at)
    return Window(first.started_at - timedelta(seconds=15), end + timedelta(seconds=65))


def as_span(run: SweepRun) -> Span:
    return Span(
        run=run.run,
        box=run.box,
        state=run.get_state_display(),
        start=run.started_at,
        end=run.ended_at,
        acquired=run.acquired_at,
        lease_until=run.lease_until,
        rows=run.rows,
    )


def doubled(orders: Collection[str]) -> set[str]:
    """Those of these orders that were settled more than once, by the rows that the settles themselves wrote."""
    written = Settlement.objects.filter(order__reference__in=list(orders)).order_by().values("order__reference")
    return set(written.annotate(often=Count("pk")).filter(often__gt=1).values_list("order__reference", flat=True))


def _overlaps(window: Window) -> Q:
    """Runs at work in the window. One that never ended counts for as long as a timeline can be."""
    unended = Q(ended_at__isnull=True, started_at__gte=window.start - LONGEST)
    return Q(started_at__lte=window.end) & (Q(ended_at__gte=window.start) | unended)


def _foreign(spans: Sequence[Span]) -> set[UUID]:
    """Of these runs, the ones whose release removed another's key: whoever acquired last owned it."""
    if not spans:
        return set()
    keys = Row.objects.filter(kind__in=[Kind.ACQUIRED, Kind.RELEASED], at__gte=min(span.start for span in spans))
    keys = keys.filter(at__lte=max(span.end or span.start for span in spans) + timedelta(minutes=1))
    return {event.run for event in foreign_deletes(map(as_event, keys.order_by("real_at", "id")[:AT_MOST]))}
