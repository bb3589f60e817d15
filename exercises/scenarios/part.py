"""One part of an exploration: a set of faults, and the orders behind one point of their tree.

Whoever explores a part needs nothing of the others; what it finds out about them (places for one more fault, points
at which somebody else should have gone first) is for the `Frontier`, which knows what has been given out.
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from exercises.lab.database import Database
from exercises.lab.explore import Branch, Fork, Path, Reduced, plain
from exercises.lab.policies import Chance, Priorities, Recorded
from exercises.lab.scheduler import Policy, Taken
from exercises.lab.steady import demand_the_same
from exercises.scenarios.boxes import Unplayable
from exercises.scenarios.corner import Corner, Played, play
from exercises.scenarios.faults import Fault, Kind
from exercises.scenarios.menu import Reach, further, menu
from exercises.scenarios.written import length, written

POLICIES = ("all", "plain", "random", "pct")
DEPTH = 3  # of the bugs that "pct" looks for
NAMED = {"runs": "schedules"}  # as the command has it
RUNS = 1000  # of "random" and "pct", where nobody says how many


class Enough(Exception):
    """A ceiling was reached."""


@dataclass(frozen=True)
class Bounds:
    """How far to look. `faults`: at most so many in one run; `runs` and `seconds`: ceilings, None for none; `twice`:
    play each schedule again and compare; `kinds`: of faults, of those that can strike.
    """

    faults: int = 0
    policy: str = "all"
    preemptions: int | None = None
    runs: int | None = None
    seconds: float | None = None
    seed: int = 1
    twice: bool = False
    kinds: tuple[Kind, ...] = tuple(Kind)

    def __post_init__(self) -> None:
        for name, least in (("runs", 1), ("seconds", 1), ("preemptions", 0)):
            value = getattr(self, name)
            if value is not None and not value >= least:  # nan is none
                raise Unplayable(f"{NAMED.get(name, name)} must be {least} or more, and not {value:g}.")
        if self.preemptions is not None and self.policy != "plain":
            raise Unplayable(f"Preemptions are counted by --policy plain, and not by {self.policy}.")
        if not self.faults and set(self.kinds) != set(Kind):
            raise Unplayable("Kinds of faults are taken up to a number of them: say --faults 1 as well.")

    @property
    def whole(self) -> bool:
        """Whether nothing is left out where no ceiling is reached."""
        every = self.policy == "all" or (self.policy == "plain" and self.preemptions is None)
        return every and (not self.faults or set(self.kinds) == set(Kind))


@dataclass(frozen=True)
class Part:
    faults: tuple[Fault, ...] = ()
    path: Path = ()


@dataclass
class Tally:
    """What came of it, so far."""

    schedules: int = 0
    alike: int = 0  # runs that were broken off: like another one
    plans: int = 0  # sets of faults
    depth: int = 0
    preemptions: int = 0  # all orders with fewer were tried
    failures: dict[tuple[str, ...], int] = field(default_factory=dict)
    outcomes: set[tuple[Any, ...]] = field(default_factory=set)
    shortest: tuple[str, Played] | None = None

    def note(self, corner: Corner, faults: Sequence[Fault], played: Played) -> None:
        self.schedules += 1
        self.depth = max(self.depth, len(played.taken))
        self.outcomes.add(played.outcome)
        if played.wrong:
            self.failures[played.wrong] = self.failures.get(played.wrong, 0) + 1
            self.keep(written(corner, faults, played.taken), played)

    def keep(self, text: str, played: Played) -> None:
        if self.shortest is None or length(text) < length(self.shortest[0]):
            self.shortest = text, played


@dataclass(frozen=True)
class Beyond:
    """What a part found out about others: sets with one fault more or another deadline, points that were opened and
    left, and choices before its own beginning that ought to be followed.
    """

    sets: tuple[tuple[Fault, ...], ...] = ()
    forks: tuple[Fork, ...] = ()
    wanted: tuple[tuple[Path, str], ...] = ()


def explore(
    database: Database,
    corner: Corner,
    bounds: Bounds,
    part: Part,
    tally: Tally,
    look: Callable[[], None],
    most: int | None = None,
) -> Beyond:
    """Every order of this part; after `most` orders the rest of it is left to others. `look` is called after each,
    and what it raises ends this.
    """
    reach = Reach()

    def one(policy: Policy) -> Sequence[Taken]:
        played = play(database, corner, policy, part.faults)
        if bounds.twice:
            again = play(database, corner, Recorded(played.taken), part.faults)
            demand_the_same(played.taken, again.taken, _end(played), _end(again))
        tally.note(corner, part.faults, played)
        reach.note(played)
        return played.taken

    tally.plans += not part.path
    reduced = Reduced(one, part.path)
    began = tally.schedules
    for ended in reduced.runs() if bounds.policy == "all" else _runs(one, bounds, tally):
        tally.alike += not ended
        look()
        if most is not None and tally.schedules - began >= most:
            break
    return Beyond(
        tuple(_sets(corner, bounds, part.faults, reach)), tuple(reduced.left()), tuple(reduced.wanted_before)
    )


def _runs(one: Callable[[Policy], Sequence[Taken]], bounds: Bounds, tally: Tally) -> Iterator[bool]:
    if bounds.policy == "plain":
        for spent in plain(one, bounds.preemptions):
            tally.preemptions = spent
            yield True
    else:
        for number in range(bounds.runs or RUNS):
            seed = bounds.seed + number
            one(Chance(seed) if bounds.policy == "random" else Priorities(seed, DEPTH, max(tally.depth, 20)))
            yield True


def _sets(corner: Corner, bounds: Bounds, faults: tuple[Fault, ...], reach: Reach) -> Iterator[tuple[Fault, ...]]:
    if faults and (another := further(faults[-1], reach)):
        yield (*faults[:-1], another)
    if len(faults) < bounds.faults:
        for fault in menu(corner, reach, faults):
            if fault.kind in bounds.kinds:
                yield (*faults, fault)


def _end(played: Played) -> tuple[object, ...]:
    return played.verdict, played.wrong, played.errors


class Frontier:
    """Which parts there are to explore, each given out once."""

    def __init__(self) -> None:
        self.waiting = deque([Part()])
        self.planned: set[tuple[Fault, ...]] = {()}
        # By faults and the names on the way: who has been opened there, in this order.
        self.opened: dict[tuple[tuple[Fault, ...], tuple[str, ...]], list[str]] = {}

    def take(self) -> Part | None:
        return self.waiting.popleft() if self.waiting else None

    def learn(self, part: Part, beyond: Beyond) -> list[Part]:
        """New parts, which are also waiting now."""
        fresh = [Part(faults) for faults in dict.fromkeys(beyond.sets) if faults not in self.planned]
        self.planned.update(new.faults for new in fresh)
        for fork in beyond.forks:
            self._opened(part.faults, fork.path).extend(fork.opened)
            fresh += self._open(part.faults, fork.path, fork.pending)
        for path, who in beyond.wanted:
            fresh += self._open(part.faults, path, (who,))
        self.waiting.extend(fresh)
        return fresh

    def _opened(self, faults: tuple[Fault, ...], path: Path) -> list[str]:
        return self.opened.setdefault((faults, tuple(branch.who for branch in path)), [])

    def _open(self, faults: tuple[Fault, ...], path: Path, whos: Sequence[str]) -> Iterator[Part]:
        opened = self._opened(faults, path)
        for who in whos:
            if who not in opened:
                yield Part(faults, (*path, Branch(who, tuple(opened))))
                opened.append(who)
