"""Who goes next: replayed, first come, by chance, and by chance with few changes of priority."""

import random
from collections.abc import Mapping, Sequence
from typing import ClassVar

from exercises.lab.scheduler import LabError, Option, Taken


class Diverged(LabError):
    """A replay whose choices do not fit: the code asks in another order than when it was recorded."""


class FirstCome:
    """Whoever was started first goes on, until it waits."""

    def choose(self, options: Sequence[Option]) -> int:
        return 0


class Staying:
    """Whoever went last goes on while it can, except where `turns` says otherwise: decision's number, who instead.

    Decisions are counted where there is more than one to choose from.
    """

    def __init__(self, turns: Mapping[int, str] | None = None) -> None:
        self.turns = dict(turns or {})
        self.decisions = 0
        self.last = ""

    def choose(self, options: Sequence[Option]) -> int:
        place = stay(options, self.last)
        if len(options) > 1:
            who = self.turns.get(self.decisions)
            self.decisions += 1
            if who is not None:
                place = find(options, who, self.decisions)
        self.last = options[place].who
        return place


class Recorded:
    """The choices of a run, made again by their places."""

    def __init__(self, taken: Sequence[Taken]) -> None:
        self.chosen = iter([step.chosen for step in taken])

    def choose(self, options: Sequence[Option]) -> int:
        return min(next(self.chosen, 0), len(options) - 1)


class Chance:
    """Anybody, by a seeded die."""

    def __init__(self, seed: int) -> None:
        self.die = random.Random(seed)  # noqa: S311  to be repeated, not to be secret

    def choose(self, options: Sequence[Option]) -> int:
        return self.die.randrange(len(options))


class Priorities:
    """PCT (Burckhardt et al., ASPLOS 2010): priorities by chance, and `depth` - 1 moments at which the highest drops
    to the lowest. Of n fibres and k steps, a bug of that depth is found with a chance of at least 1/(n k^(depth-1)).
    """

    KINDS: ClassVar[int] = 2**31

    def __init__(self, seed: int, depth: int, steps: int) -> None:
        self.die = random.Random(seed)  # noqa: S311  to be repeated, not to be secret
        self.changes = {self.die.randrange(max(1, steps)) for _ in range(depth - 1)}
        self.priority: dict[str, int] = {}
        self.step, self.lowest = 0, 0

    def choose(self, options: Sequence[Option]) -> int:
        for option in options:
            self.priority.setdefault(option.who, self.die.randrange(1, self.KINDS))
        chosen = max(range(len(options)), key=lambda place: self.priority[options[place].who])
        if self.step in self.changes:
            self.lowest -= 1
            self.priority[options[chosen].who] = self.lowest
        self.step += 1
        return chosen


def stay(options: Sequence[Option], last: str) -> int:
    """The place of whoever went last; of the first, where that one waits."""
    return next((place for place, option in enumerate(options) if option.who == last), 0)


def find(options: Sequence[Option], who: str, decision: int) -> int:
    """Raises Diverged where it is not among them."""
    for place, option in enumerate(options):
        if option.who == who:
            return place
    there = ", ".join(option.who for option in options)
    raise Diverged(f"At decision {decision} {who} was to go, and there are only {there}: record the schedule anew.")
