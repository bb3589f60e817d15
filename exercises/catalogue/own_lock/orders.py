"""Every order of a world, until one is wrong; and that one without what it does not need."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from exercises.catalogue.own_lock.conduct import Conduct
from exercises.catalogue.own_lock.playing import Went, World, play
from exercises.handed.checks import TheirsFailed
from exercises.lab.explore import every_order
from exercises.lab.policies import Diverged, Staying
from exercises.lab.schedule import Schedule
from exercises.lab.scheduler import Policy, Taken
from exercises.scenarios.faults import Fault
from exercises.scenarios.menu import Reach, further, menu
from exercises.scenarios.part import Beyond, Frontier
from exercises.scenarios.written import written

MOST = 4000  # orders of one world
TOO_MANY = f"Your lock asks so much that two boxes can meet in more than {MOST} orders: ask fewer questions."

Wrong = Callable[[Went], Sequence[str]]  # what is wrong with an order, in sentences; nothing where all is well


@dataclass(frozen=True)
class Failure:
    world: World
    faults: tuple[Fault, ...]
    went: Went
    wrong: tuple[str, ...]  # sentences; one of the program's own failure stands alone

    @property
    def failed(self) -> bool:
        """Whether it is the program's own failure."""
        return bool(self.went.watch.failed)

    @property
    def schedule(self) -> str:
        """The order as a text."""
        return written(self.world.corner, self.faults, self.went.played.taken)

    @property
    def length(self) -> tuple[int, int, str]:
        """By which of two failures is shorter: turns, then steps, then letters."""
        return len(Schedule.of(self.went.played.taken).turns), len(self.went.played.taken), self.schedule


def first_failure(worlds: Sequence[World], wrong: Wrong, conduct: Conduct) -> Failure | None:
    """The shortest of the first set of faults in which anything is wrong; None: every order is well, and there are no
    others. Smaller worlds come first, and in each what happens with no fault. Raises CouldNotDecide, TheirsFailed.
    """
    for world in worlds:
        for failures in _explored(world, conduct, wrong):
            if failures:
                return without_turns(min(failures, key=lambda failure: failure.length), conduct, wrong)
    return None


def _explored(world: World, conduct: Conduct, wrong: Wrong) -> Iterator[list[Failure]]:
    """Of each set of faults every order that is wrong."""
    frontier, tried = Frontier(), 0
    while part := frontier.take():
        failures: list[Failure] = []
        reach = Reach()

        def one(policy: Policy, faults: tuple[Fault, ...] = part.faults) -> Sequence[Taken]:
            went = play(world, conduct, policy, faults)
            reach.note(went.played)  # noqa: B023  called before the next part is taken
            if what := _what(went, wrong):
                failures.append(Failure(world, faults, went, what))  # noqa: B023  likewise
            return went.played.taken

        for _ in every_order(one):
            tried += 1
            if tried > MOST:
                raise TheirsFailed(TOO_MANY)
        yield failures
        frontier.learn(part, Beyond(sets=tuple(_sets(world, part.faults, reach))))


def _what(went: Went, wrong: Wrong) -> tuple[str, ...]:
    """What a program itself fails of is wrong wherever it happens, and hides whatever else came of it."""
    return tuple(dict.fromkeys(went.watch.failed[:1] or wrong(went)))


def _sets(world: World, faults: tuple[Fault, ...], reach: Reach) -> Iterator[tuple[Fault, ...]]:
    """One fault in a run, at every place; and where it is of a deadline, at each of them."""
    if faults and (another := further(faults[-1], reach)):
        yield (another,)
    if not faults:
        yield from ((fault,) for fault in menu(world.corner, reach) if fault.kind in world.strikes)


def without_turns(failure: Failure, conduct: Conduct, wrong: Wrong) -> Failure:
    """Whoever went last goes on where the failure does not need another to."""
    turns = dict(Schedule.of(failure.went.played.taken).turns)
    for place in turns:
        fewer = {other: who for other, who in turns.items() if other != place}
        with suppress(Diverged):
            went = play(failure.world, conduct, Staying(fewer), failure.faults)
            if set(failure.wrong) <= set(what := _what(went, wrong)):
                return without_turns(replace(failure, went=went, wrong=what), conduct, wrong)
    return failure
