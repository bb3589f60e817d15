"""Contestants that do the same thing on the same server, taking turns, and what their turns took.

All contestants of a race play once a round, in an order that is shuffled anew each time, so that whatever else the
machine does meanwhile falls on all of them alike; and medians are compared, which do not see its worst moments.
"""

import gc
from collections.abc import Callable, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from random import Random
from statistics import median
from time import perf_counter_ns
from typing import Any

GOAL = 1.15  # of the floor's median
CLOSE = 1.02  # medians no further apart than this are the same: so much another run of the same may differ
SEED = 20261202
TURN = 4  # tries a turn; the first is not counted, for it pays for what the contestant before left behind
FLOOR, OURS = "floor", "ours"

Try = Callable[[], Any]  # one try; false where it did not come out as it should


class WentWrong(Exception):
    """A contestant did not do what is measured: its time would mean nothing."""


@dataclass(frozen=True)
class Race:
    """One path through one lock: `acquired` (and released) or `refused`. `commands` says what the floor sends."""

    lock: str
    path: str
    commands: str
    floor: Try
    ours: Try
    peers: Mapping[str, Try] = field(default_factory=dict)


@dataclass(frozen=True)
class Row:
    """What a race came to: medians, in seconds."""

    race: Race
    floor: float
    ours: float
    peers: Mapping[str, float]

    @property
    def ratio(self) -> float:
        return self.ours / self.floor

    @property
    def missed(self) -> str:
        """Which goal was missed, as a few words; empty where none was."""
        slower = [name for name, seconds in self.peers.items() if seconds * CLOSE < self.ours]
        words = [f"more than {GOAL} of the floor"] if self.ratio > GOAL else []
        return ", ".join([*words, *(f"slower than {name}" for name in slower)])

    def as_json(self) -> dict[str, Any]:
        return {
            **{"name": self.race.lock, "path": self.race.path, "ours": self.ours, "ratio": self.ratio},
            **{"floor": self.floor, "peers": dict(self.peers), "missed": self.missed},
        }


def run(race: Race, rounds: int, chance: Random) -> Row:
    """Race for so many rounds, after a tenth as many that do not count. Raises WentWrong."""
    contestants = {FLOOR: race.floor, OURS: race.ours, **race.peers}
    taken: dict[str, list[int]] = {name: [] for name in contestants}
    warming = max(2, rounds // 10)
    order = list(contestants)
    with _no_garbage_collected():
        for number in range(warming + rounds):
            chance.shuffle(order)
            for name in order:
                times = _turn(contestants[name], f"{name} ({race.lock}, {race.path})")
                if number >= warming:
                    taken[name].extend(times)
    medians = {name: median(times) / 1e9 for name, times in taken.items()}
    return Row(race, medians.pop(FLOOR), medians.pop(OURS), medians)


def _turn(once: Try, name: str) -> Iterable[int]:
    times = []
    for _ in range(TURN):
        began = perf_counter_ns()
        came_out = once()
        times.append(perf_counter_ns() - began)
        if not came_out:
            raise WentWrong(f"{name} answered {came_out!r}: that is not the path that is measured.")
    return times[1:]


@contextmanager
def _no_garbage_collected() -> Any:
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
