"""The laboratory for anybody's functions: callables, a set-up, and what must hold; every order is tried.

    trial = Trial(database, set_up=open_account, boxes={"a": withdraw, "b": withdraw}, wrong=overdrawn)
    result = trial.explore()
    assert result.holds, result.told

Functions take no argument and use Django's ORM as they always do. They must find the same rows under the same ids in
every run, so `set_up` empties what it fills and names its primary keys; they must read no clock and no chance of
their own. What a function raises is part of what an order came to: `wrong` is told of it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from exercises.lab.database import Database
from exercises.lab.explore import every_order, plain
from exercises.lab.policies import Diverged, Recorded, Staying
from exercises.lab.schedule import Schedule
from exercises.lab.scheduler import LabError, Policy, Scheduler, Stuck, Taken
from exercises.lab.steady import Unsteady, demand_the_same

START = datetime(2026, 1, 1, tzinfo=UTC)
Errors = Mapping[str, BaseException]  # by the names of those that raised


class NoTrial(LabError):
    """Nothing that could be tried."""


@dataclass(frozen=True)
class Failure:
    """One order that ended badly, and what it was."""

    why: str
    schedule: Schedule
    taken: Sequence[Taken]
    errors: Errors

    @property
    def timeline(self) -> str:
        """A line a step, a column a box."""
        names = sorted({step.option.who for step in self.taken})
        width = max((len(step.option.step.label) for step in self.taken), default=0) + 2
        lines = ["".join(name.ljust(width) for name in names)]
        for step in self.taken:
            place = names.index(step.option.who)
            lines.append(" " * (width * place) + step.option.step.label)
        lines += [f"{name}: {type(error).__name__}: {error}".splitlines()[0] for name, error in self.errors.items()]
        return "\n".join(line.rstrip() for line in lines if line)

    @property
    def told(self) -> str:
        """The order, and how to see it again."""
        return f"{self.timeline}\n\nreplay: {self.schedule}"


@dataclass
class Result:
    """`schedules`: orders tried; `exhausted`: there is no other; `shortest`: the failure with the fewest turns."""

    schedules: int = 0
    failures: int = 0
    exhausted: bool = False
    shortest: Failure | None = None
    ends: set[str] = field(default_factory=set)

    @property
    def holds(self) -> bool:
        return self.shortest is None

    @property
    def told(self) -> str:
        """For an assertion's message: what went wrong, in which order, and how to see it again."""
        space = "all there are" if self.exhausted else "not all there are"
        if self.shortest is None:
            return f"Held in {self.schedules} orders, {space}."
        return (
            f"{self.shortest.why}\nin {self.failures} of {self.schedules} orders ({space}). The shortest:\n\n"
            f"{self.shortest.told}"
        )


@dataclass
class Trial:
    """`boxes`: functions by name. `wrong`: asked after every order, outside of it: why it ended badly, or nothing."""

    database: Database
    set_up: Callable[[], object]
    boxes: Mapping[str, Callable[[], object]]
    wrong: Callable[[Errors], str | None]

    def __post_init__(self) -> None:
        if not self.boxes:
            raise NoTrial("There is nothing to try: name at least one function.")
        for name in self.boxes:
            if not name or name != name.strip() or {",", "=", "~"}.intersection(name):
                raise NoTrial(f"{name!r} can't stand in a schedule's text: take a name of letters.")

    def explore(self, *, most: int | None = None, reduced: bool = True, twice: bool = False) -> Result:
        """Every order; or the first `most` of them. Not `reduced`: without leaving any out. `twice`: play each order
        again; raises Unsteady where that does other steps, touches other rows, or ends otherwise.
        """
        if most is not None and most < 1:
            raise NoTrial(f"In {most} orders nothing is tried: take 1 or more.")
        result = Result()

        def one(policy: Policy) -> Sequence[Taken]:
            played = self._play(policy)
            if twice:
                again = self._play(Recorded(played.taken))
                demand_the_same(played.taken, again.taken, played.end, again.end)
            result.schedules += 1
            result.ends.add(played.why or "")
            if failure := played.failure:
                result.failures += 1
                if result.shortest is None or _turns(failure) < _turns(result.shortest):
                    result.shortest = failure
            return played.taken

        for _ in every_order(one) if reduced else plain(one):
            if most is not None and result.schedules >= most:
                return result
        result.exhausted = True
        return result

    def replay(self, text: str) -> Failure | None:
        """The order of this text again; None where it ends well. Raises Unreadable, Diverged."""
        schedule = Schedule.read(text)
        played = self._play(Staying(dict(schedule.turns)))
        schedule.demand(played.taken)
        return played.failure

    def _play(self, policy: Policy) -> "_Played":
        self.set_up()
        scheduler = Scheduler(policy, START)
        for name, work in self.boxes.items():
            self.database.session(scheduler.start(name, name, work).name)
        errors: dict[str, BaseException] = {}
        try:
            scheduler.run()
        except Stuck as stuck:
            errors["everybody"] = stuck
        finally:
            self.database.tidy()
        errors |= {fibre.name: fibre.error for fibre in scheduler.fibres if fibre.error is not None}
        return _Played(scheduler.taken, errors, self.wrong(errors))


@dataclass(frozen=True)
class _Played:
    """One order, and what it came to."""

    taken: Sequence[Taken]
    errors: Errors
    why: str | None

    @property
    def failure(self) -> Failure | None:
        return Failure(self.why, Schedule.of(self.taken), self.taken, self.errors) if self.why else None

    @property
    def end(self) -> str:
        raised = (f"{name} raised {type(error).__name__}" for name, error in self.errors.items())
        return "; ".join([self.why or "well", *raised])


def _turns(failure: Failure) -> int:
    return len(failure.schedule.turns)


__all__ = ["Diverged", "Failure", "NoTrial", "Result", "Trial", "Unsteady"]
