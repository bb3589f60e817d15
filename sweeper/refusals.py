"""The words beside the crosses of refused runs, so that many knocks in a row do not write over each other."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from shop.words import times
from sweeper.events import Event, Kind

ROOM = 56.0  # how far to the right the word beside a cross reaches


@dataclass(frozen=True)
class Words:
    """Either of them may be empty; `above` stands over the first cross of several."""

    beside: str = ""
    above: str = ""


def words(events: Sequence[Event], rows: Mapping[UUID, float], x: Callable[[datetime], float]) -> dict[UUID, Words]:
    """For refused runs that have words: `refused` where there is room for it, else above; for several that follow
    each other closely, how often, above the first of them.
    """
    crosses, begins = defaultdict(list), defaultdict(list)
    for event in sorted(events, key=lambda event: event.at):
        if event.kind is Kind.REFUSED:
            crosses[rows[event.run]].append((x(event.at), event.run))
        elif event.kind is Kind.ACQUIRED:
            begins[rows[event.run]].append(x(event.at))
    found = {}
    for row, places in crosses.items():
        for series in _series(places):
            at, run = series[0]
            crowded = len(series) > 1 or any(0 <= other - at < ROOM for other in begins[row])
            text = "refused" if len(series) == 1 else f"refused {times(len(series))}"
            found[run] = Words(above=text) if crowded else Words(beside=text)
    return found


def _series(places: Sequence[tuple[float, UUID]]) -> list[list[tuple[float, UUID]]]:
    """Cut wherever there is room for the word."""
    series: list[list[tuple[float, UUID]]] = []
    for place in places:
        if series and place[0] - series[-1][-1][0] < ROOM:
            series[-1].append(place)
        else:
            series.append([place])
    return series
