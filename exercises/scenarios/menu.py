"""Where each fault can matter: the finite menu that an exploration with faults goes through.

Two places that nothing can tell apart are one place. Where an answer takes time, the moment of a fault can be told,
and every place counts.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from exercises.lab.steps import Mode, Step
from exercises.scenarios.corner import START, Corner, Played
from exercises.scenarios.faults import Fault, Kind
from exercises.scenarios.strikes import FREE, LOCK_SERVERS, commits, server_of
from exercises.wrong_locks import AdvisoryApart
from sweeper.locks import LOCKS

# Faults that strike only where a lock stands on one of these servers.
SERVERS: dict[Kind, tuple[str, ...]] = {
    Kind.CLOCK: ("redis", "redlock"),
    Kind.CLOCK_SHORT: ("redis", "redlock"),
    Kind.FAILOVER: ("redis",),
    Kind.LOCK_DONE: LOCK_SERVERS,
    Kind.LOCK_UNDONE: LOCK_SERVERS,
}
AT_DEADLINES = (
    *(Kind.PAUSE, Kind.PAUSE_SHORT, Kind.BOX_CLOCK, Kind.BOX_CLOCK_SHORT),
    *(Kind.CLOCK, Kind.CLOCK_SHORT),
)
ENDS = (Kind.CRASH, Kind.POWER)


@dataclass
class Place:
    """What a box could do there, in one order or another. `later`: in some order time went on just before it."""

    steps: set[Step] = field(default_factory=set)
    later: bool = False


@dataclass
class Reach:
    """What orders of one set of faults came to: of each box, what it could do at each of its steps."""

    places: dict[str, list[Place]] = field(default_factory=dict)
    met: set[Fault] = field(default_factory=set)  # that found in some order what they were to strike

    def note(self, played: Played) -> None:
        """A step at which a statement goes on is none of its own: it was counted when it was asked."""
        self.met |= played.met
        counted: dict[str, int] = {}
        last: dict[str, datetime] = {}
        for done in played.taken:
            box = done.option.who.partition("/")[0]
            if box.startswith("box-") and done.freed_by is None:
                number = counted[box] = counted.get(box, -1) + 1
                places = self.places.setdefault(box, [])
                if number == len(places):
                    places.append(Place())
                places[number].steps.add(done.option.step)
                places[number].later |= done.at != last.get(box, START)
                last[box] = done.at


def kinds(corner: Corner, *, missed: bool = False) -> list[Kind]:
    """What can strike here. `missed`: a box may be gone without a word, and when Postgres notices is a deadline."""
    lock = corner.setting.strategy
    able = [kind for kind in Kind if lock.server in SERVERS.get(kind, (lock.server,))]
    if lock is not AdvisoryApart:  # the one that keeps a session of its own
        able.remove(Kind.LOCK_LOST)
    deadlines = lock.server or lock is LOCKS["slot"] or corner.messages > 1 or missed
    if not deadlines:
        able = [kind for kind in able if kind not in AT_DEADLINES]
    return able


def menu(corner: Corner, reach: Reach, before: Sequence[Fault] = ()) -> Iterator[Fault]:
    """Every kind at every place where it can matter. Boxes are alike, so the first fault is box A's; one more comes
    at or behind the places of those before it. Of those at deadlines only the first: see `further`.
    """
    for box in corner.names if before else _struck_first(corner):
        least = max((fault.after for fault in before if fault.box == box), default=0)
        places = reach.places.get(box, [])
        for kind in kinds(corner, missed=any(fault.kind is Kind.POWER for fault in before)):
            for after in range(least, len(places) + (kind in FREE)):
                if _matters(kind, places, after, corner):
                    yield from (fault for fault in _each(kind, box, after, corner) if fault not in before)


def _struck_first(corner: Corner) -> list[str]:
    """All boxes do the same, so that whatever happens to one of them might happen to box A."""
    return corner.names[:1]


def further(fault: Fault, reach: Reach) -> Fault | None:
    """The same fault at the next deadline, if there may be one: some order had one of this number."""
    if fault.kind not in AT_DEADLINES or fault not in reach.met:
        return None
    return Fault(fault.kind, fault.box, fault.after, fault.which + 1)


def _each(kind: Kind, box: str, after: int, corner: Corner) -> Iterator[Fault]:
    """Money lands row by row."""
    for which in range(1, corner.orders + 1) if kind is Kind.LANDS else (1,):
        yield Fault(kind, box, after, which)


def _matters(kind: Kind, places: Sequence[Place], after: int, corner: Corner) -> bool:
    """Whether this fault before the box's step of that number can be told from the same fault elsewhere. One that no
    box waits for comes at any point behind the step before, until time goes on: a place earlier it might as well,
    unless time went on before that step.
    """
    if kind in FREE:
        return after == 0 or places[after - 1].later
    here = places[after]
    if kind in _WHERE:
        return any(_WHERE[kind](step) for step in here.steps)
    if kind in ENDS and after and not corner.latency:
        return not all(_only_looks(step) for step in places[after - 1].steps)
    return True


def _asks_lock(step: Step) -> bool:
    return server_of(step) in LOCK_SERVERS


def _asks_provider(step: Step) -> bool:
    return server_of(step) == "provider"


# What strikes the very question that is about to be asked, and would strike nothing elsewhere.
_WHERE: dict[Kind, Callable[[Step], bool]] = {
    Kind.UNKNOWN_DONE: commits,
    Kind.UNKNOWN_UNDONE: commits,
    Kind.LOCK_DONE: _asks_lock,
    Kind.LOCK_UNDONE: _asks_lock,
    Kind.PROVIDER_DONE: _asks_provider,
}


def _only_looks(step: Step) -> bool:
    """A box that ends right after a look might as well have ended before it."""
    return bool(step.touches) and all(touch.mode in (Mode.SNAPSHOT, Mode.READ) for touch in step.touches)
