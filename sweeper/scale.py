"""Which moment stands where along a picture: by the clock, or, where many things share one moment, by their order."""

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from sweeper.shapes import WIDTH, Tick
from sweeper.telling import LONDON, clock

GUTTER, RIGHT = 88.0, 20.0  # of the lanes: their names stand in the gutter
# Seconds: in a shorter window than CLOSE times are told to a tenth of one; APART are those from tick to tick.
CLOSE = 20.0
APART = (0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400)
NO_TIME = datetime(2000, 1, 1, tzinfo=UTC)  # the moment before the first step; each step is a second further
ROUND = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)


@dataclass(frozen=True)
class Scale:
    """Maps the window's moments to the picture's width."""

    start: datetime
    end: datetime
    stepped = False

    @property
    def seconds(self) -> float:
        return max((self.end - self.start).total_seconds(), 1.0)

    @property
    def unit(self) -> float:
        """How wide one second is."""
        return (WIDTH - GUTTER - RIGHT) / self.seconds

    def x(self, moment: datetime) -> float:
        return round(GUTTER + (moment - self.start).total_seconds() * self.unit, 2)

    def clipped(self, moment: datetime) -> float:
        return min(max(self.x(moment), GUTTER), WIDTH - RIGHT)

    def shows(self, moment: datetime) -> bool:
        return self.start <= moment <= self.end

    @property
    def tenths(self) -> bool:
        """Whether two moments of one second stand apart here."""
        return self.seconds < CLOSE

    def clock(self, moment: datetime) -> str:
        return clock(moment, self.tenths)

    def ticks(self) -> list[Tick]:
        """Round times in London, at least 90 units apart."""
        step = next((step for step in APART if step * self.unit >= 90), APART[-1])
        first, last = math.ceil(self.start.timestamp() / step), math.floor(self.end.timestamp() / step)
        moments = [datetime.fromtimestamp(number * step, LONDON) for number in range(first, last + 1)]
        return [Tick(self.x(moment), clock(moment, step < 1)[: 5 if step >= 60 else None]) for moment in moments]

    def moments(self) -> list[Tick]:
        """Where it has to be said what time it is, beside the ticks."""
        return []


@dataclass(frozen=True)
class Steps(Scale):
    """By the order of steps. Its moments are no times: the one of a step is `NO_TIME` and a second for each step up
    to it. `times` are the virtual times of the steps, in order; `said` those that stand at other places.
    """

    start: datetime = field(init=False, default=NO_TIME)
    end: datetime = field(init=False)
    times: Sequence[datetime] = ()
    said: dict[datetime, datetime] = field(default_factory=dict)
    stepped = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "end", moment_of(len(self.times) + 1))

    @property
    def tenths(self) -> bool:
        return True

    def clock(self, moment: datetime) -> str:
        """`step 7 (21:50:00.0)`, or the time alone where it stands for one."""
        if moment in self.said:
            return clock(self.said[moment], tenths=True)
        number = int((moment - NO_TIME).total_seconds())
        if not 1 <= number <= len(self.times):
            return "before step 1" if number < 1 else "after the last step"
        return f"step {number} ({clock(self.times[number - 1], tenths=True)})"

    def ticks(self) -> list[Tick]:
        """Round numbers, at least 22 units apart."""
        apart = next((number for number in ROUND if number * self.unit >= 22), ROUND[-1])
        return [Tick(self.x(moment_of(n)), str(n)) for n in range(1, len(self.times) + 1) if n == 1 or n % apart == 0]

    def moments(self) -> list[Tick]:
        """Just before each step at which time had gone on."""
        found: list[Tick] = []
        for number, at in enumerate(self.times, start=1):
            if number == 1 or at != self.times[number - 2]:
                found.append(Tick(self.x(moment_of(number - 0.5 if number > 1 else 0)), exactly(at)))
        return found

    def after(self, at: datetime) -> datetime:
        """Just behind the last step that was taken by then; beyond the picture where that is the last of all. It is
        told as the time it stands for.
        """
        number = bisect_right(self.times, at)
        known = next((moment for moment, time in self.said.items() if time == at), None)
        # Two that fall between the same two steps stand a little apart, for each is told by its place.
        apart = timedelta(microseconds=len(self.said))
        moment = known or moment_of(number + (0.45 if number < len(self.times) else 2)) + apart
        self.said[moment] = at
        return moment


def moment_of(step: float) -> datetime:
    return NO_TIME + timedelta(seconds=step)


def exactly(at: datetime) -> str:
    """To the second, and to the millisecond where it is not a whole one."""
    return clock(at) + (f".{at.microsecond // 1000:03}" if at.microsecond else "")
