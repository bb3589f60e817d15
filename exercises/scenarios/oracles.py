"""What no order may come to: read from the shop's database, the provider's books, and the journal."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from exercises.scenarios.boxes import Setting
from exercises.scenarios.provider import VirtualProvider
from exercises.scenarios.strikes import Death
from shop.models import Order
from sweeper.events import Event, Kind
from sweeper.verdict import ENDINGS

COPIES = {
    "phantom": "the catalogue promises copies that no shelf holds",
    "lost": "the shelf holds copies that the catalogue does not know",
    "double_settles": "a row was settled more than once",
    "foreign_deletes": "a run deleted another run's key",
}
WITHOUT_ORDER = "money landed and no order keeps it"
WITHOUT_MONEY = "an order is paid and no money landed"
RETURNED_TWICE = "money was given back twice"
STOPPED = "a dead holder stopped the sweep for longer than its lock promises"
# What a run may end with where its box, its session or its question was struck.
STRUCK = {"OperationalError", "InterfaceError", "LockUnavailable", "LockMislaid"}


def copies(told: Mapping[str, Any]) -> tuple[str, ...]:
    """Of a verdict: copies made up or lost, rows settled twice, keys of others deleted."""
    return tuple(f"{sentence} ({told[name]})" for name, sentence in COPIES.items() if told[name])


def money(provider: VirtualProvider, statuses: Mapping[str, str], owed: Sequence[str]) -> tuple[str, ...]:
    """Whether the provider's charges and the shop's orders agree. `statuses`: of the orders, by their charge's key;
    `owed`: keys of charges that the shop has written down as due back, or has given back.
    """
    landed = {key for key, charge in provider.charges.items() if not charge.refunded}
    stray = [key for key in landed if statuses.get(key) == Order.Status.ABANDONED and key not in owed]
    unpaid = [key for key, status in statuses.items() if status == Order.Status.PAID and key not in landed]
    twice = [key for key, charge in provider.charges.items() if len(charge.refunded) > 1]
    found = ((WITHOUT_ORDER, stray), (WITHOUT_MONEY, unpaid), (RETURNED_TWICE, twice))
    return tuple(f"{sentence} ({len(keys)})" for sentence, keys in found if keys)


def liveness(events: Sequence[Event], deaths: Sequence[Death], setting: Setting) -> tuple[str, ...]:
    """Whether anybody was refused for the sake of a holder that had been dead for longer than its lock promises."""
    dead = {death.box: death for death in deaths}
    late = [
        event.at
        for event, holder in _refused(events)
        if holder.box in dead and event.at > free_again(dead[holder.box], holder, setting)
    ]
    return (f"{STOPPED} ({len(late)})",) if late else ()


def free_again(death: Death, holder: Event, setting: Setting) -> datetime:
    """When the lock of a holder that died is promised to be free, at the latest: at the end of its lease, which may
    just have been renewed; of its slot; or as soon as Postgres knows.
    """
    if setting.strategy.outlives_holder:
        return max(death.at, holder.at) + timedelta(seconds=setting.ttl)
    return death.noticed


def _refused(events: Sequence[Event]) -> Iterator[tuple[Event, Event]]:
    """Every refusal with the acquisition that it was for the sake of: the last one whose run has not ended."""
    open_runs: dict[UUID, Event] = {}
    for event in events:
        if event.kind is Kind.ACQUIRED:
            open_runs[event.run] = event
        elif event.kind in ENDINGS:
            open_runs.pop(event.run, None)
        elif event.kind is Kind.REFUSED and open_runs:
            yield event, list(open_runs.values())[-1]


def died(errors: Mapping[str, str], struck: bool) -> tuple[str, ...]:
    """Runs that ended by an error for which no fault is to blame. Which ones does not matter."""
    expected = STRUCK if struck else set[str]()
    return tuple(f"a run died of {error} (1)" for error in sorted({*errors.values()} - expected))
