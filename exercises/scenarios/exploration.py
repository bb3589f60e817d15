"""Trying a corner in every order, with faults at every place, until it is exhausted or somebody says stop."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

from exercises.lab.database import Database
from exercises.lab.explore import every_order, plain
from exercises.lab.policies import Chance, Diverged, Priorities, Staying
from exercises.lab.schedule import Schedule
from exercises.lab.scheduler import LabError, Policy, Taken
from exercises.scenarios.boxes import Setting, Unplayable
from exercises.scenarios.corner import Corner, Played, play
from exercises.scenarios.faults import STRIKES, Fault, Kind
from marlow.clock import monotonic

POLICIES = ("all", "plain", "random", "pct")
# Why a search with faults is never called exhausted.
GAPS = "every order with these faults was tried, and there are faults that the menu leaves out"
DEPTH = 3  # of the bugs that "pct" looks for
RUNS = 1000  # of "random" and "pct", where nobody says how many


class CannotReplay(LabError):
    """This text names no run of this laboratory."""


@dataclass(frozen=True)
class Bounds:
    """How far to look. `faults`: at most so many in one run; `runs` and `seconds`: ceilings, None for none."""

    faults: int = 0
    policy: str = "all"
    preemptions: int | None = None
    runs: int | None = None
    seconds: float | None = None
    seed: int = 1

    def __post_init__(self) -> None:
        for name, least in (("runs", 1), ("seconds", 1), ("preemptions", 0)):
            value = getattr(self, name)
            if value is not None and not value >= least:  # nan is none
                raise Unplayable(f"{name} must be {least} or more, and not {value:g}.")


@dataclass
class Found:
    """What came of it, so far."""

    corner: Corner
    bounds: Bounds
    schedules: int = 0
    alike: int = 0  # runs that were broken off: like another one
    plans: int = 0  # sets of faults
    depth: int = 0
    failures: dict[tuple[str, ...], int] = field(default_factory=dict)
    outcomes: set[tuple[Any, ...]] = field(default_factory=set)
    shortest: tuple[str, Played] | None = None
    exhausted: bool = False
    stopped: str = ""  # why it ended before its end
    began: float = field(default_factory=monotonic)
    seconds: float = 0.0

    def as_json(self) -> dict[str, Any]:
        setting = self.corner.setting
        shortest = self.shortest and {"schedule": self.shortest[0], "timeline": self.shortest[1].verdict["events"]}
        return {
            "lock": setting.lock,
            "settle": setting.settle,
            "schedules": self.schedules,
            "exhausted": self.exhausted,
            "bounds": self.told_bounds(),
            "failures": [{"what": list(what), "schedules": number} for what, number in self.failures.items()],
            "shortest": shortest,
            "seconds": round(self.seconds, 2),
        }

    def told_bounds(self) -> dict[str, Any]:
        """Within which the word "exhausted" holds, where it is said."""
        return {
            "boxes": self.corner.boxes,
            "orders": self.corner.orders,
            "messages": self.corner.messages,
            "latency": self.corner.latency,
            "lease": self.corner.setting.ttl,
            "faults": self.bounds.faults,
            "menu": [str(kind) for kind in kinds(self.corner)] if self.bounds.faults else [],
            "policy": self.bounds.policy,
            "preemptions": self.bounds.preemptions,
            "stopped": self.stopped or None,
        }


class Enough(Exception):
    """A ceiling was reached."""


class Exploration:
    """One exploration; `progress` is called after every run, and `stop` ends it after the next one."""

    def __init__(
        self, database: Database, corner: Corner, bounds: Bounds, progress: Callable[[Found], None] = lambda _: None
    ) -> None:
        self.database, self.corner, self.bounds, self.progress = database, corner, bounds, progress
        self.found = Found(corner, bounds)
        self.stopping = False

    def stop(self) -> None:
        """What was found so far is what `go` then returns."""
        self.stopping = True

    def go(self) -> Found:
        found = self.found
        try:
            self._with_faults(())
            whole = self.bounds.policy == "all" or (self.bounds.policy == "plain" and self.bounds.preemptions is None)
            found.exhausted = whole and not self.bounds.faults
            if whole and self.bounds.faults:
                found.stopped = GAPS
        except Enough as stopped:
            found.stopped = str(stopped)
        found.seconds = monotonic() - found.began
        if found.shortest:
            found.shortest = shorter(self.database, found.shortest)
        return found

    def _with_faults(self, faults: tuple[Fault, ...]) -> None:
        """All orders with these faults, and then with one more at each place where it can still come."""
        self.found.plans += 1
        reach: dict[str, int] = {}

        def one(policy: Policy) -> Sequence[Taken]:
            played = play(self.database, self.corner, policy, faults)
            self._note(played, faults)
            for box, steps in steps_of(played.taken).items():
                reach[box] = max(reach.get(box, 0), steps)
            return played.taken

        for ended in self._runs(one):
            self.found.alike += ended is False
            self.progress(self.found)
            self._demand_time()
        if len(faults) < self.bounds.faults:
            for fault in menu(self.corner, reach, faults):
                self._with_faults((*faults, fault))

    def _runs(self, one: Callable[[Policy], Sequence[Taken]]) -> Iterator[object]:
        bounds = self.bounds
        if bounds.policy == "all":
            yield from every_order(one)
        elif bounds.policy == "plain":
            yield from plain(one, bounds.preemptions)
        else:
            for number in range(bounds.runs or RUNS):
                seed = bounds.seed + number
                random = bounds.policy == "random"
                one(Chance(seed) if random else Priorities(seed, DEPTH, max(self.found.depth, 20)))
                yield None

    def _note(self, played: Played, faults: Sequence[Fault]) -> None:
        found = self.found
        found.schedules += 1
        found.depth = max(found.depth, len(played.taken))
        found.outcomes.add(played.outcome)
        if not played.wrong:
            return
        found.failures[played.wrong] = found.failures.get(played.wrong, 0) + 1
        text = written(self.corner, faults, played.taken)
        if found.shortest is None or length(text) < length(found.shortest[0]):
            found.shortest = text, played

    def _demand_time(self) -> None:
        bounds, found = self.bounds, self.found
        if self.stopping:
            raise Enough("it was stopped by hand")
        if bounds.runs is not None and found.schedules >= bounds.runs and bounds.policy in ("all", "plain"):
            raise Enough(f"the ceiling of {bounds.runs} schedules was reached")
        if bounds.seconds is not None and monotonic() - found.began > bounds.seconds:
            raise Enough(f"the ceiling of {bounds.seconds:g} s was reached")


def steps_of(taken: Sequence[Taken]) -> dict[str, int]:
    """How many steps each box did, its runs together."""
    steps: dict[str, int] = {}
    for step in taken:
        box = step.option.who.partition("/")[0]
        if box.startswith("box-"):
            steps[box] = steps.get(box, 0) + 1
    return steps


def kinds(corner: Corner) -> list[Kind]:
    """What can strike here: a server's fault only where the lock stands on it."""
    lock = corner.setting.lock
    return [kind for kind in Kind if lock in STRIKES.get(kind, (lock,))]


def menu(corner: Corner, reach: dict[str, int], before: Sequence[Fault]) -> Iterator[Fault]:
    """Every kind on every box after each of its steps; a second fault comes at or behind the first one's place."""
    for kind in kinds(corner):
        for box in corner.names:
            least = max((fault.after for fault in before if fault.box == box), default=0)
            for after in range(least, reach.get(box, 0)):
                if (fault := Fault(kind, box, after)) not in before:
                    yield fault


# --- A run as a text ----------------------------------------------------------------------------------------------


def written(corner: Corner, faults: Sequence[Fault], taken: Sequence[Taken]) -> str:
    """`corner;redis-naive;unguarded;lookup;2;2;1;0;120;pause@box-a:7;9=box-b/1~5d2f91c0`: what was played, boxes,
    orders, messages, latency, lease, faults, and the schedule. Behind the question: `+stop`, `+renew` where on.
    """
    setting = corner.setting
    flags = "".join(f"+{name}" for name, on in (("stop", setting.stop_on_lost_lease), ("renew", setting.renew)) if on)
    parts = [
        *("corner", setting.lock, setting.settle, setting.question + flags),
        *(str(corner.boxes), str(corner.orders), str(corner.messages), f"{corner.latency:g}", f"{setting.ttl:g}"),
        *("+".join(str(fault) for fault in faults), str(Schedule.of(taken))),
    ]
    return ";".join(parts)


def read(text: str) -> tuple[Corner, tuple[Fault, ...], Schedule]:
    """Raises CannotReplay, Unreadable."""
    kind = text.strip().partition(";")[0]
    if kind != "corner":
        raise CannotReplay(f"There is no scenario {kind!r} to replay: copy the whole schedule, from `corner;` on.")
    try:
        _, lock, settle, asked, boxes, orders, messages, latency, ttl, faults, schedule = text.strip().split(";")
        question, *flags = asked.split("+")
        setting = Setting(
            lock,
            settle,
            question,
            stop_on_lost_lease="stop" in flags,
            renew="renew" in flags,
            ttl=float(ttl),
            every=float(ttl),
        )
        corner = Corner(setting, int(boxes), int(orders), int(messages), float(latency))
        planned = tuple(Fault.read(fault) for fault in faults.split("+") if fault)
    except ValueError as error:
        raise CannotReplay(f"{text!r} can't be replayed: copy it whole, from `corner;` to its mark.") from error
    return corner, planned, Schedule.read(schedule)


def replay(database: Database, text: str) -> Played:
    """The same run again. Raises CannotReplay, Unreadable, and Diverged where the code does something else now."""
    corner, faults, schedule = read(text)
    played = play(database, corner, schedule.policy(), faults)
    schedule.demand(played.taken)
    return played


def length(text: str) -> tuple[int, ...]:
    """By which of two failures is shorter: turns and faults, then boxes, orders, messages, then letters."""
    return text.count("=") + text.count("@"), *map(int, text.split(";")[4:7]), len(text)


# --- Shrinking ----------------------------------------------------------------------------------------------------


LOOKED_FOR = 200  # orders of a smaller corner in which the same failure is looked for


def shorter(database: Database, failure: tuple[str, Played]) -> tuple[str, Played]:
    """The same failure with fewer boxes, orders, messages, faults and turns, as far as one less at a time goes."""
    best = failure
    while smaller := next(_smaller(database, best), None):
        best = smaller
    return best


def _smaller(database: Database, failure: tuple[str, Played]) -> Iterator[tuple[str, Played]]:
    """A smaller corner is searched anew, for its orders are others; a fault or a turn is left out as it is."""
    corner, faults, schedule = read(failure[0])
    for name, least in (("boxes", 2), ("orders", 1), ("messages", 1)):
        if getattr(corner, name) > least:
            fewer = replace(corner, **{name: getattr(corner, name) - 1})
            yield from _in(database, fewer, faults, failure)
    for place in range(len(faults)):
        yield from _in(database, corner, faults[:place] + faults[place + 1 :], failure)
    for place in range(len(schedule.turns)):
        turns = schedule.turns[:place] + schedule.turns[place + 1 :]
        with suppress(Diverged):
            yield from _the_same(corner, faults, play(database, corner, Staying(dict(turns)), faults), failure)


def _in(
    database: Database, corner: Corner, faults: tuple[Fault, ...], failure: tuple[str, Played]
) -> Iterator[tuple[str, Played]]:
    """The first orders of this corner that fail in the same way."""
    found: list[tuple[str, Played]] = []

    def one(policy: Policy) -> Sequence[Taken]:
        played = play(database, corner, policy, faults)
        found.extend(_the_same(corner, faults, played, failure))
        return played.taken

    for _ in islice(every_order(one), LOOKED_FOR):
        if found:
            yield found[0]
            return


def _the_same(
    corner: Corner, faults: tuple[Fault, ...], played: Played, failure: tuple[str, Played]
) -> Iterator[tuple[str, Played]]:
    """This one, if it went wrong in every way in which the other did, however often."""
    kinds = {sentence.rpartition(" (")[0] for sentence in failure[1].wrong}
    if kinds <= {sentence.rpartition(" (")[0] for sentence in played.wrong}:
        yield written(corner, faults, played.taken), played
