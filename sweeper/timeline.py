"""Where everything in the picture of an evening goes: pure geometry, no HTML, no database, no clock.

A lane a box, runs that overlap stacked inside it, time from left to right. Positions are by each box's own clock, the
only one it could have acted upon; units are those of the picture (its width is `WIDTH`, whatever it is shown at).
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from shop.words import count
from sweeper import refusals
from sweeper.events import Event, Kind
from sweeper.findings import DOUBLE, FOREIGN, TOGETHER, Finding, Span
from sweeper.lanes import Below, lay_servers
from sweeper.scale import Scale
from sweeper.shapes import LANE_GAP, WIDTH, Band, Bar, Lane, Mark, Note, Picture, Tie
from sweeper.telling import tell

AXIS, NOTE, ROW = 30.0, 20.0, 88.0
BAR_TOP, BAR = 22.0, 30.0  # of a run's bar within its row
LETTER, LETTER_OF_A_NOTE = 6.6, 7.2  # about as wide as a letter is in a label, and in a note
A_CAPTION = 130.0  # how wide the words under a bar are
NOTES_AT_MOST = 9
MARKS = {
    Kind.ASKED: "asked",
    Kind.ANSWERED: "answered",
    Kind.SETTLED: "settled",
    Kind.REFUSED: "refused",
    Kind.UNTOUCHED: "untouched",
    Kind.OWED: "owed",
    Kind.SKIPPED: "skipped",
    Kind.STALE: "stale",
    Kind.STOPPED: "stopped",
    Kind.DIED: "died",
}


def draw(
    scale: Scale,
    spans: Sequence[Span],
    events: Sequence[Event],
    findings: Sequence[Finding] = (),
    chosen: Collection[UUID] = (),
    orders: Collection[str] = (),
    below: Below | None = None,
) -> Picture:
    """The picture of these runs in this window. `chosen` runs and `orders` are brought out; the rest fades. `below`
    the boxes' lanes stand those of the servers they asked.
    """
    moments = scale.moments()
    picture = Picture(ticks=scale.ticks(), stepped=scale.stepped, moments=moments)
    picture.notes = notes(scale, findings, AXIS + (NOTE if moments else 0))
    levels = max((note.y for note in picture.notes), default=AXIS + (NOTE if moments else 0))
    picture.top = levels + LANE_GAP
    rows = _lay_lanes(picture, scale, spans)
    picture.notes = [replace(note, foot=picture.foot) for note in picture.notes]
    numbers = {lane.box: lane.number for lane in picture.lanes}
    bars = [bar(scale, span, rows[span.run], span.run in chosen) for span in spans]
    picture.bars = [replace(bar, lane=numbers[span.box]) for bar, span in zip(bars, spans, strict=True)]
    picture.bands = bands(scale, findings)
    pen = _Pen(scale, rows, shared_prefix({event.order for event in events if event.order}), frozenset(orders))
    picture.prefix, picture.marks = pen.prefix, pen.marks(events, findings)
    picture.ties = pen.ties()
    if below is not None:
        lay_servers(picture, scale, below, {run: row + BAR_TOP + BAR for run, row in rows.items()}, numbers)
    return picture


def stack(spans: Iterable[Span], room: timedelta = timedelta()) -> dict[UUID, int]:
    """A row for each run of one box: the first that is free when it starts. `room` is kept between two runs."""
    free: list[datetime | None] = []
    rows = {}
    for span in sorted(spans, key=lambda span: span.start):
        row = next((n for n, until in enumerate(free) if until is not None and until <= span.start), len(free))
        until = None if span.end is None else max(span.end, span.start) + room
        free[row : row + 1] = [until]
        rows[span.run] = row
    return rows


def bar(scale: Scale, span: Span, y: float, chosen: bool = False) -> Bar:
    x, end = scale.clipped(span.start), scale.clipped(span.end or scale.end)
    width = max(end - x, 3.0)
    until = scale.clock(span.end) if span.end else "still running"
    words = f"{span.box}, {scale.clock(span.start)}–{until}: {span.state}"
    if not span.held:
        return Bar(span.run, span.state, x, y, 0.0, words, chosen=chosen)
    lease = _lease(scale, span, span.lease_until) if span.lease_until else {}
    room = width if not lease.get("lease_text") else min(width, lease["lease_width"] - A_CAPTION)
    caption = count(span.rows, "order") + " on its list" if span.rows and room > A_CAPTION else ""
    return Bar(span.run, span.state, x, y, round(width, 2), words, caption=caption, chosen=chosen, **lease)


def bands(scale: Scale, findings: Sequence[Finding]) -> list[Band]:
    """The stretches in which two sweeps were found at work at once, joined where they touch."""
    together = [(finding.at, finding.until) for finding in findings if finding.kind == TOGETHER]
    found: list[Band] = []
    for x, end in sorted((scale.clipped(at), scale.clipped(until or at)) for at, until in together):
        if found and x <= found[-1].end:
            x, end = found[-1].x, max(end, found.pop().end)
        if end > x:
            found.append(Band(x, round(end - x, 2)))
    return found


def notes(scale: Scale, findings: Sequence[Finding], top: float = AXIS) -> list[Note]:
    """The findings in view as steps down to the right, so that no leader line crosses another's words.

    Where there are too many, the double settles stay. Two that say the same in the same place become one.
    """
    seen = {(round(scale.x(f.at)), f.note): f for f in findings if scale.shows(f.at)}
    shown = list(seen.values())
    if len(shown) > NOTES_AT_MOST:
        shown = [f for f in shown if f.kind != TOGETHER]
    if len(shown) > NOTES_AT_MOST:
        shown = [f for f in shown if f.kind == DOUBLE][:NOTES_AT_MOST]
    return _steps(scale, shown, top)


def _steps(scale: Scale, findings: Sequence[Finding], top: float) -> list[Note]:
    ends: list[float] = []  # how far to the right the words of each level reach
    placed = []
    for finding in findings:
        x = scale.x(finding.at)
        level = len(ends)
        while level > 0 and ends[level - 1] < x:
            level -= 1
        reach = x + 12 + len(finding.note) * LETTER_OF_A_NOTE
        anchor = "start" if reach < WIDTH else "end"
        ends[level:] = [reach]
        placed.append(Note(finding.kind, x, top + NOTE * (level + 1), finding.note, anchor))
    return placed


def _lay_lanes(picture: Picture, scale: Scale, spans: Sequence[Span]) -> dict[UUID, float]:
    """A lane for each box, in the order of their names; returns the top of each run's row."""
    by_box: dict[str, list[Span]] = defaultdict(list)
    for span in spans:
        by_box[span.box].append(span)
    y, tops = picture.top, {}
    for number, box in enumerate(sorted(by_box), start=1):
        rows = stack(by_box[box], timedelta(seconds=4 / scale.unit))
        height = ROW * (max(rows.values()) + 1)
        picture.lanes.append(Lane(box, number, y, height))
        tops.update({run: y + ROW * row for run, row in rows.items()})
        y += height + LANE_GAP
    picture.height, picture.foot = y, y - LANE_GAP
    return tops


def _lease(scale: Scale, span: Span, until: datetime) -> dict[str, Any]:
    x, end = scale.clipped(span.acquired or span.start), scale.clipped(until)
    over = end if scale.shows(until) else None
    text = f"lease until {scale.clock(until)}" if over is not None and end - x > A_CAPTION else ""
    return {"lease_x": x, "lease_width": round(max(end - x, 0.0), 2), "lease_over": over, "lease_text": text}


@dataclass
class _Pen:
    """Puts the events' marks on their runs' rows, and remembers where the settles of each order went."""

    scale: Scale
    rows: dict[UUID, float]
    prefix: str
    orders: frozenset[str]
    places: dict[str, list[tuple[float, float]]] = field(default_factory=lambda: defaultdict(list))
    often: dict[str, int] = field(default_factory=dict)
    refused: dict[UUID, refusals.Words] = field(default_factory=dict)
    written_to: dict[float, float] = field(default_factory=dict)  # how far to the right a row's labels reach

    def marks(self, events: Sequence[Event], findings: Sequence[Finding]) -> list[Mark]:
        self.often = {finding.order: len(finding.runs) for finding in findings if finding.kind == DOUBLE}
        foreign = {run for finding in findings if finding.kind == FOREIGN for run in finding.runs}
        seen = [event for event in events if event.run in self.rows and self.scale.shows(event.at)]
        self.refused = refusals.words(seen, self.rows, self.scale.x)
        made = []
        for event in seen:
            taken = event.kind is Kind.RELEASED and event.run in foreign
            kind = "foreign" if taken else MARKS.get(event.kind)
            if kind:
                made.append(self._mark(event, kind, tell(event, taken, self.scale.tenths)))
        return made

    def _mark(self, event: Event, kind: str, words: str) -> Mark:
        x, y = self.scale.x(event.at), self.rows[event.run]
        often = self.often.get(event.order, 1) if kind == "settled" else 1
        label = ""
        if kind == "settled":
            self.places[event.order].append((x, y + BAR_TOP + BAR / 2))
            label = self._label(event.order.removeprefix(self.prefix), x, y, often > 1)
        title = f"{self.scale.clock(event.at)}, {event.box}: {words}" + (f" ({event.order})" if event.order else "")
        kind = "double" if often > 1 else kind
        said = self.refused.get(event.run, refusals.Words()) if kind == "refused" else refusals.Words()
        faded = self._faded(event.order)
        return Mark(kind, x, y, title, event.order, label, often, faded, said.beside, said.above)

    def ties(self) -> list[Tie]:
        """Lines between the settles of an order that has several."""
        return [
            Tie(order, *one, *other, self._faded(order))
            for order in self.often
            for one, other in zip(self.places[order], self.places[order][1:], strict=False)
        ]

    def _faded(self, order: str) -> bool:
        return bool(self.orders) and order not in self.orders

    def _label(self, text: str, x: float, y: float, always: bool) -> str:
        """The text if there is room for it beside its neighbours in this row."""
        half = len(text) * LETTER / 2
        if not always and x - half < self.written_to.get(y, 0.0):
            return ""
        self.written_to[y] = x + half + 4
        return text


def shared_prefix(references: Collection[str]) -> str:
    """What all references begin with, up to and including their last dash: `WED-` of WED-01 and WED-02."""
    prefixes = {reference[: reference.rfind("-") + 1] for reference in references}
    return prefixes.pop() if len(prefixes) == 1 and len(references) > 1 else ""
