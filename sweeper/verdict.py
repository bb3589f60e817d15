"""What a playing of the shop came to: one verdict, the same keys live and in the laboratory."""

from collections.abc import Iterable, Sequence
from typing import Any
from uuid import UUID

from django.db.models import Count

from shop.models import Settlement
from shop.shelf import totals
from sweeper import models
from sweeper.events import Event, Kind
from sweeper.locks.base import Released

ENDINGS = {Kind.RELEASED, Kind.FINISHED, Kind.STOPPED, Kind.DIED}


def foreign_deletes(events: Iterable[Event]) -> list[Event]:
    """The releases that removed another run's key, from a journal in the order in which things happened.

    The key belongs to whoever acquired last. A hostname can't tell two runs of one box apart, a run's id can.
    """
    owner: UUID | None = None
    foreign = []
    for event in events:
        if event.kind is Kind.ACQUIRED:
            owner = event.run
        elif event.kind is Kind.RELEASED and event.data.get("deleted"):
            # A release that compared and found its own took nobody else's, whoever acquired before we heard of it.
            if owner not in (None, event.run) and event.data.get("released") != Released.OURS:
                foreign.append(event)
            if owner == event.run or event.data.get("released") != Released.OURS:
                owner = None
    return foreign


def overlaps(events: Sequence[Event]) -> list[tuple[UUID, UUID]]:
    """Pairs of runs that both held the lock, as they understood it, at one moment."""
    open_runs: dict[UUID, None] = {}
    pairs = []
    for event in events:
        if event.kind is Kind.ACQUIRED:
            pairs += [(earlier, event.run) for earlier in open_runs]
            open_runs[event.run] = None
        elif event.kind in ENDINGS:
            open_runs.pop(event.run, None)
    return pairs


def double_settles() -> int:
    """Orders settled more than once, by the rows that the settles themselves wrote."""
    return Settlement.objects.values("order").annotate(times=Count("id")).filter(times__gt=1).count()


def journal() -> list[Event]:
    """Every event on record, in the order in which they happened (real time)."""
    return [as_event(row) for row in models.Event.objects.order_by("real_at", "id")]


def as_event(row: models.Event) -> Event:
    return Event(row.at, row.box, row.run_id, Kind(row.kind), row.order, row.answer, row.token, row.data)


def read(*, lock: str, settle: str, question: str, schedule: str | None = None) -> dict[str, Any]:
    """The verdict on the shop as it stands: the database for copies and rows, the journal for the runs."""
    return on(journal(), counted(), lock=lock, settle=settle, question=question, schedule=schedule)


def counted() -> dict[str, int]:
    """What the database has to say: copies made up or lost, and rows settled twice."""
    copies = totals()
    return {"phantom": copies.phantom, "lost": copies.lost, "double_settles": double_settles()}


def on(
    events: Sequence[Event],
    shop: dict[str, int],
    *,
    lock: str,
    settle: str,
    question: str,
    schedule: str | None = None,
) -> dict[str, Any]:
    """The same, with the journal and `counted` at hand: in the laboratory the journal is memory."""
    return {
        "lock": lock,
        "settle": settle,
        "question": question,
        **shop,
        "foreign_deletes": len(foreign_deletes(events)),
        "overlaps": len(overlaps(events)),
        "events": [event.as_json() for event in events],
        "schedule": schedule,
    }
