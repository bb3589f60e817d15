"""A journal that was kept as JSON in a verdict, read back for pictures and findings.

It comes from a database of another day or from somebody's own run, so nothing is taken for granted: an event that
can't be read, or could not be told in words, is left out.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import NAMESPACE_OID, UUID, uuid5

from sweeper.events import Event, Kind
from sweeper.findings import DIED, Finding, Span
from sweeper.telling import clock, tell
from sweeper.window import YEARS

NAMED = ("at", "box", "run", "kind", "order", "answer", "token")  # all else in an event's JSON is its data
ENDED = {
    Kind.REFUSED: "refused",
    Kind.FINISHED: "finished",
    Kind.STOPPED: "stopped (lease lost)",
    Kind.DIED: "died",
}
CUT_OFF = "not heard of again"
UNREADABLE = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)


def raw_events(verdict: Any) -> list[Any]:
    """What a verdict holds under `events`, readable or not."""
    events = verdict.get("events") if isinstance(verdict, dict) else None
    return events if isinstance(events, list) else []


def events_of(verdict: Any) -> list[Event]:
    """The events of a verdict that can be read, in the order in which they were kept: that of real time."""
    return [event for event in map(_event, raw_events(verdict)) if event is not None]


def spans_of(events: Sequence[Event], lock: str = "") -> list[Span]:
    """The runs that these events are of, by their beginning. `lock` is the one they all ran under.

    A run whose end is not on record (its box was killed, or cut off) reaches as far as it was heard of.
    """
    by_run: dict[UUID, list[Event]] = {}
    for event in events:
        by_run.setdefault(event.run, []).append(event)
    return sorted((_span(theirs, lock) for theirs in by_run.values()), key=lambda span: (span.start, span.box))


def with_ends(events: Sequence[Event]) -> list[Event]:
    """With an end for each run that has none on record, right after it was last heard of: who comes later does not
    meet it.
    """
    ended = {event.run for event in events if event.kind in ENDED}
    last = {event.run: number for number, event in enumerate(events) if event.run not in ended}
    closed = []
    for number, event in enumerate(events):
        closed.append(event)
        if last.get(event.run) == number:
            closed.append(Event(event.at, event.box, event.run, Kind.DIED))
    return closed


def cut_off(spans: Sequence[Span]) -> list[Finding]:
    """Where runs were last heard of that have no end on record."""
    return [
        Finding(
            DIED,
            span.end or span.start,
            f"{span.box} is not heard of again",
            f"After {clock(span.end or span.start, tenths=True)} {span.box}’s run was not heard of again.",
            (span.run,),
        )
        for span in spans
        if span.state == CUT_OFF
    ]


def _event(kept: Any) -> Event | None:
    try:
        event = Event(
            at=moment(kept["at"]),
            box=_text(kept["box"]),
            run=_run(_text(kept["run"])),
            kind=Kind(kept["kind"]),
            order=_text(kept.get("order", "")),
            answer=_text(kept.get("answer", "")),
            token=kept.get("token"),
            data={name: value for name, value in kept.items() if name not in NAMED},
        )
        tell(event)
        deadline(event)
    except UNREADABLE:
        return None
    return event


def _span(events: Sequence[Event], lock: str) -> Span:
    first = min(events, key=lambda event: event.at)
    ended = next((event for event in reversed(events) if event.kind in ENDED), None)
    acquired = next((event for event in events if event.kind is Kind.ACQUIRED), None)
    rows = next((event.data.get("rows") for event in events if event.kind is Kind.LISTED), None)
    return Span(
        run=first.run,
        box=first.box,
        state=CUT_OFF if ended is None else ENDED[ended.kind],
        start=first.at,
        end=max(event.at for event in events) if ended is None else ended.at,
        acquired=acquired.at if acquired else None,
        lease_until=deadline(acquired) if acquired else None,
        rows=rows,
        lock=lock,
    )


def deadline(event: Event) -> datetime | None:
    """Until when the lock was promised, of an event that says so."""
    return moment(event.data["deadline"]) if event.data.get("deadline") else None


def moment(text: str) -> datetime:
    """An ISO time, in UTC. Raises ValueError without a zone, or where there is no room to draw it."""
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None or moment.year not in YEARS:
        raise ValueError(f"“{text}” is no moment that could be drawn.")
    return moment.astimezone(UTC)


def _run(text: str) -> UUID:
    """A run’s id; the laboratory names its runs `box-a/1`, and this name stands for one. Raises ValueError."""
    box, slash, number = text.partition("/")
    if box and slash and number.isdecimal():
        return uuid5(NAMESPACE_OID, text)
    return UUID(text)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"“{value}” is no text.")
    return value
