"""How long nobody swept, read from a journal."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from uuid import UUID

from sweeper.events import Event, Kind
from sweeper.verdict import ENDINGS


@dataclass(frozen=True)
class Stop:
    """From the last that a run with the lock did until the next that one does. `over`: somebody swept again before
    the evening's end.
    """

    begins: datetime
    ends: datetime
    over: bool = True

    @property
    def lasted(self) -> timedelta:
        return self.ends - self.begins

    @property
    def seconds(self) -> str:
        """To the millisecond, as far as there are any: `120.001`, `75`."""
        return f"{self.lasted.total_seconds():.3f}".rstrip("0").rstrip(".")


def longest(events: Sequence[Event], since: datetime, until: datetime) -> Stop:
    """The longest stop within this time, the earliest of several. Events are of one clock, in their order."""
    signs = [event.at for event, _ in _sweeping(events) if since < event.at <= until]
    moments = [since, *signs, until]
    begins, ends = max(pairwise(moments), key=lambda pair: pair[1] - pair[0])
    return Stop(begins, ends, ends in signs)


def following(events: Sequence[Event], since: datetime, until: datetime) -> Stop:
    """The one that begins here: until a run with the lock next does something, or the evening ends."""
    signs = [event.at for event, _ in _sweeping(events) if since < event.at <= until]
    return Stop(since, signs[0] if signs else until, bool(signs))


def holders(events: Sequence[Event], moment: datetime) -> set[str]:
    """The boxes with a run that has the lock, as it understands it, once this moment's events have happened."""
    held: set[UUID] = set()
    by_run = {event.run: event.box for event in events}
    for event, holding in _sweeping(events):
        if event.at > moment:
            break
        held = holding
    return {by_run[run] for run in held}


def _sweeping(events: Sequence[Event]) -> Iterator[tuple[Event, set[UUID]]]:
    """Each event of a run that has the lock, with the runs that have it behind that event."""
    holding: set[UUID] = set()
    for event in events:
        if event.kind is Kind.ACQUIRED:
            holding.add(event.run)
        if event.run not in holding:
            continue
        if event.kind in ENDINGS:
            holding.discard(event.run)
        yield event, set(holding)
