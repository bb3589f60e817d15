"""What a timeline shows, read from the journal: the runs of a window, their events, and what they did wrong."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db.models import Count, Max, Min, Q

from shop.models import Order, Settlement
from sweeper import timeline
from sweeper.events import Event, Kind
from sweeper.findings import FOREIGN, Finding, Span, find, settled
from sweeper.kept import cut_off, events_of, spans_of, with_ends
from sweeper.models import Event as Row
from sweeper.models import SweepRun
from sweeper.scale import Scale
from sweeper.shapes import Picture
from sweeper.telling import LONDON, clock, tell
from sweeper.verdict import ENDINGS, as_event
from sweeper.window import AFTER, BEFORE, LONGEST, Window

AT_MOST = 2_000  # events in one picture; more could not be told apart


@dataclass(frozen=True)
class Line:
    """One event as a line of text."""

    event: Event
    time: str
    text: str
    id: int | None  # the order's, for a link
    marked: bool


@dataclass(frozen=True)
class Scene:
    """`kept`: of a shop that is not this one, so its orders and runs are no rows here; told in tenths of a second."""

    spans: list[Span]
    events: list[Event]
    findings: list[Finding]
    kept: bool = False

    @property
    def cut(self) -> bool:
        return len(self.events) >= AT_MOST

    def lines(self, orders: Collection[str] = ()) -> list[Line]:
        """The events as sentences; those of `orders` marked."""
        ids = {} if self.kept else self._ids()
        return [
            Line(
                event=event,
                time=clock(event.at, self.kept),
                text=tell(event, self.is_foreign(event), self.kept),
                id=ids.get(event.order),
                marked=event.order in orders,
            )
            for event in self.events
        ]

    def is_foreign(self, event: Event) -> bool:
        """Whether this release removed another run's key."""
        return event.kind is Kind.RELEASED and any(f.kind == FOREIGN and event.run in f.runs for f in self.findings)

    def picture(self, window: Window, chosen: Collection[UUID] = (), orders: Collection[str] = ()) -> Picture:
        scale = Scale(window.start, window.end)
        return timeline.draw(scale, self.spans, self.events, self.findings, chosen, orders)

    def _ids(self) -> dict[str, int]:
        named = Order.objects.filter(reference__in={event.order for event in self.events})
        return dict(named.values_list("reference", "pk"))


def kept_scene(verdict: Any, lock: str = "") -> Scene:
    """What a verdict that was kept has to tell. Asks the database for nothing."""
    events = events_of(verdict)[:AT_MOST]
    spans = spans_of(events, lock)
    found = [*find(spans, events, with_ends(events), tenths=True), *cut_off(spans)]
    return Scene(spans, events, sorted(found, key=lambda finding: finding.at), kept=True)


def scene(window: Window) -> Scene:
    """Everything that happened in this window, by the boxes' own clocks; in the order of the real one."""
    runs = SweepRun.objects.filter(_overlaps(window))
    spans = [as_span(run) for run in runs.order_by("started_at", "box")]
    rows = Row.objects.filter(run__in=[span.run for span in spans], at__range=(window.start, window.end))
    events = [as_event(row) for row in rows.order_by("real_at", "id")[:AT_MOST]]
    return Scene(spans, events, find(spans, events, _keys(spans), doubled(settled(events))))


def last_evening() -> Window | None:
    """From the first to the last run of the last day that has any, at most LONGEST."""
    last = SweepRun.objects.order_by("-started_at").first()
    if last is None:
        return None
    midnight = last.started_at.astimezone(LONDON).replace(hour=0, minute=0, second=0, microsecond=0)
    since = max(midnight, last.started_at - LONGEST + timedelta(minutes=30))
    first = SweepRun.objects.filter(started_at__gte=since).order_by("started_at").first() or last
    end = max(last.ended_at or last.started_at, last.started_at)
    return Window(first.started_at - BEFORE, end + AFTER)


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
        lock=run.lock,
    )


def doubled(orders: Collection[str]) -> set[str]:
    """Those of these orders that were settled more than once, by the rows that the settles themselves wrote."""
    written = Settlement.objects.filter(order__reference__in=list(orders)).order_by().values("order__reference")
    return set(written.annotate(often=Count("pk")).filter(often__gt=1).values_list("order__reference", flat=True))


def _overlaps(window: Window) -> Q:
    """Runs at work in the window. One that never ended counts for as long as a timeline can be."""
    unended = Q(ended_at__isnull=True, started_at__gte=window.start - LONGEST)
    return Q(started_at__lte=window.end) & (Q(ended_at__gte=window.start) | unended)


def _keys(spans: Sequence[Span]) -> list[Event]:
    """Who took the lock and who let it go while these runs were about, in the order in which it really happened.

    The stretch is one of real time, for which run was there with which other can't be read off two boxes' clocks.
    """
    theirs = Row.objects.filter(run__in=[span.run for span in spans])
    stretch = theirs.aggregate(first=Min("real_at"), last=Max("real_at"))
    if stretch["first"] is None:
        return []
    rows = Row.objects.filter(
        kind__in=[Kind.ACQUIRED, *ENDINGS], real_at__gte=stretch["first"], real_at__lte=stretch["last"]
    )
    return [as_event(row) for row in rows.order_by("real_at", "id")]
