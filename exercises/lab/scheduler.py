"""The scheduler: it owns the time and decides who goes next.

Everything that matters happens between two calls of `Policy.choose`: so a run is the list of what was chosen.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Protocol

from exercises.lab.fibre import Fibre, State, current
from exercises.lab.steps import Step


class LabError(Exception):
    """The laboratory can't go on with this run."""


class Stuck(LabError):
    """Everybody waits for somebody, and no time that passes will help."""


class TooLong(LabError):
    """A ceiling was reached: of steps, or of virtual time."""


class BrokenOff(LabError):
    """A policy wanted no more of this run. `taken` is what was done by then."""

    taken: Sequence["Taken"] = ()


@dataclass(frozen=True)
class Option:
    """Who could go next, and with what."""

    who: str
    step: Step


class Policy(Protocol):
    """Who goes next. All there is to a policy."""

    def choose(self, options: Sequence[Option]) -> int:
        """The place in `options` of the one to go on; they are in the order in which the fibres were started."""
        ...


@dataclass(frozen=True)
class Taken:
    """One step of a run: what could have been done, and what was. `at` is the virtual time; `freed_by` is the place
    of the step without which a blocked one would still wait.
    """

    at: datetime
    options: tuple[Option, ...]
    chosen: int
    freed_by: int | None = None

    @property
    def option(self) -> Option:
        return self.options[self.chosen]


@dataclass
class Timer:
    at: datetime
    do: Callable[[], None]


@dataclass
class Scheduler:
    """Runs fibres to their end, one step at a time. `ceiling`: steps and virtual time after which it gives up."""

    policy: Policy
    now: datetime
    steps: int = 20_000
    until: timedelta = timedelta(days=3)
    fibres: list[Fibre] = field(default_factory=list)
    taken: list[Taken] = field(default_factory=list)
    timers: list[Timer] = field(default_factory=list)
    frozen: dict[str, datetime] = field(default_factory=dict)  # boxes that stand still, and until when
    holds: list[Callable[[str], bool]] = field(default_factory=list)  # who may say that a box is to wait
    look_again: bool = True  # a statement that waits in the database may be free by now

    def __post_init__(self) -> None:
        self._ends = self.now + self.until

    def start(self, box: str, name: str, work: Callable[[], Any], at: datetime | None = None) -> Fibre:
        """A new fibre, which begins now or at a later moment. May be called while others run."""
        fibre = Fibre(self, box, name, work)
        if at is not None and at > self.now:
            fibre.state, fibre.wakes = State.ASLEEP, at
        self.fibres.append(fibre)
        return fibre

    def when(self, at: datetime, do: Callable[[], None]) -> None:
        """Do this at that moment, before anybody who wakes then: a service's own clockwork, or a fault."""
        self.timers.append(Timer(at, do))

    def run(self) -> None:
        """Until everybody is done. Raises Stuck, TooLong, and what a policy raises; fibres are unwound then."""
        try:
            while self._once():
                pass
        except BrokenOff as broken:
            broken.taken = self.taken
            raise
        finally:
            for fibre in self.fibres:
                fibre.abandon()

    def crash(self, box: str) -> None:
        """End every fibre of this box, where they stand."""
        for fibre in self.fibres:
            if fibre.box == box and fibre is not current():
                fibre.abandon()

    def freeze(self, box: str, until: datetime) -> None:
        """This box stands still until then: none of its fibres goes on, and what it wakes for is late."""
        self.frozen[box] = until

    def _still(self, box: str) -> bool:
        return self.frozen.get(box, self.now) > self.now or any(hold(box) for hold in self.holds)

    def _once(self) -> bool:
        self._begin_who_may()
        ready = self._who_is_ready()
        if not ready:
            return self._break_a_deadlock() or self._let_time_pass()
        options = tuple(Option(fibre.name, fibre.next) for fibre in ready if fibre.next is not None)
        chosen = self.policy.choose(options)
        if not 0 <= chosen < len(options):
            raise LabError(f"The policy chose {chosen} of {len(options)}.")
        self.taken.append(Taken(self.now, options, chosen, ready[chosen].freed_by))
        if len(self.taken) > self.steps:
            raise TooLong(f"No end after {self.steps} steps: raise the ceiling, or see who asks again and again.")
        self.look_again |= options[chosen].step.frees
        ready[chosen].go_on()
        return True

    def _who_is_ready(self) -> list[Fibre]:
        """That nobody is, is said only when everybody has been asked."""
        everybody = self._see_who_is_free()
        ready = [fibre for fibre in self.fibres if fibre.state is State.READY and not self._still(fibre.box)]
        if ready or everybody:
            return ready
        self.look_again = True
        return self._who_is_ready()

    def _begin_who_may(self) -> None:
        """What a fibre does before its first step, or between waking and its next one, is nobody else's business."""
        begun = True
        while begun:
            begun = False
            for fibre in list(self.fibres):
                woke = fibre.state is State.ASLEEP and fibre.wakes is not None and fibre.wakes <= self.now
                begins = fibre.state is State.READY and fibre.next is None
                if (woke or begins) and not self._still(fibre.box):
                    fibre.go_on()
                    begun = True

    def _see_who_is_free(self) -> bool:
        """Those who wait in the database are asked only after what may have freed them, for asking takes a while; was
        it so? One that goes on may have freed others, by its own COMMIT or its failure: all are asked again then.
        """
        everybody, went_on = self.look_again, True
        while went_on:
            went_on, self.look_again = False, False
            for fibre in self.fibres:
                waiting = fibre.waiting if fibre.state is State.BLOCKED else None
                if waiting and (everybody or not waiting.session) and waiting.arrived():
                    fibre.state, fibre.freed_by = State.READY, len(self.taken) - 1 if self.taken else None
                    went_on = went_on or bool(waiting.session)
        return everybody

    def _break_a_deadlock(self) -> bool:
        """The victim is whoever of them was started last. Postgres would choose by its own clock, which is nobody's
        here; and who closed the circle depends on steps that depend on nothing else, so that orders would be missed.
        """
        waiting = {fibre.waiting.session: fibre for fibre in self.fibres if fibre.waiting and fibre.waiting.give_up}
        if len(waiting) < 2:
            return False
        for session, fibre in reversed(waiting.items()):
            if _waits_for_itself(session, waiting) and fibre.waiting and fibre.waiting.give_up:
                fibre.waiting.give_up()
                self.look_again = True
                return True
        return False

    def _let_time_pass(self) -> bool:
        moments = [
            max(fibre.wakes, self.frozen.get(fibre.box, fibre.wakes))
            for fibre in self.fibres
            if fibre.state is State.ASLEEP and fibre.wakes
        ]
        moments += [timer.at for timer in self.timers]
        moments += [until for until in self.frozen.values() if until > self.now]
        blocked = [fibre.name for fibre in self.fibres if fibre.state is State.BLOCKED]
        if not moments:
            if blocked:
                raise Stuck(f"{', '.join(blocked)}: each waits for what nobody will free.")
            return False
        if not blocked and all(fibre.state is State.DONE for fibre in self.fibres):
            return False  # what is left is clockwork
        self.now = max(self.now, min(moments))
        if self.now > self._ends:
            raise TooLong(f"No end after {self.until} of virtual time: raise the ceiling, or see who never ends.")
        for timer in [timer for timer in self.timers if timer.at <= self.now]:
            self.timers.remove(timer)
            timer.do()
            self.look_again = True
        return True


def _waits_for_itself(session: int, waiting: dict[int, Fibre]) -> bool:
    """Whether those it waits for wait for it, directly or through others."""
    seen, asked = set[int](), [session]
    while asked:
        fibre = waiting.get(asked.pop())
        if fibre is None or fibre.waiting is None:
            continue
        for other in fibre.waiting.blockers() - seen:
            if other == session:
                return True
            seen.add(other)
            asked.append(other)
    return False


class LabClock:
    """The clock of one box, `offset` virtual seconds out. Virtual seconds are the only ones there are here."""

    def __init__(self, scheduler: Scheduler, offset: float = 0.0) -> None:
        self.scheduler, self.offset = scheduler, timedelta(seconds=offset)

    def now(self) -> datetime:
        return self.scheduler.now + self.offset

    def at(self, real: datetime) -> datetime:
        return self.now()

    def real(self, seconds: float) -> float:
        return seconds

    def sleep(self, seconds: float) -> None:
        fibre = current()
        if fibre is None:
            raise LabError("Only a fibre can wait on the laboratory's clock.")
        fibre.sleep_until(self.scheduler.now + timedelta(seconds=max(0.0, seconds)))

    def ticking(self) -> bool:
        return True


def at(step: Step) -> None:
    """Wait here for one's turn; outside the laboratory, go on at once."""
    fibre = current()
    if fibre is not None:
        fibre.at(step)
