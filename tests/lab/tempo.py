"""How time passes while a script is played: for a real server really, for a virtual one by its clock."""

import math
from dataclasses import dataclass

from marlow.clock import monotonic, real_sleep
from tests.fakes import WEDNESDAY, StandingClock

LONG = 60.0  # a ttl, in seconds, that no script outlives


@dataclass(frozen=True)
class Tempo:
    """All in seconds. A script waits `wait` at a time; what is done between two waits is done within `slack`, so that
    no deadline of a `short` ttl comes near any question: wait + slack < short, and short + slack < 2 * wait, by as
    much as the server takes to notice.
    """

    wait: float
    short: float
    slack: float

    def slower(self, scale: int) -> "Tempo":
        return Tempo(self.wait * scale, self.short * scale, self.slack * scale)


class WholeSeconds(Tempo):
    """For a server that rounds ttls up to whole seconds: `short` is most of a second less than it comes to."""

    def slower(self, scale: int) -> Tempo:
        return WholeSeconds(self.wait * scale, math.ceil(self.short) * scale - 0.9, self.slack * scale)


class Passing:
    """Real time. `late` says that the machine was too slow for this tempo, and the answers say nothing."""

    def __init__(self, tempo: Tempo) -> None:
        self.tempo, self.mark, self.late = tempo, monotonic(), False

    def wait(self) -> None:
        self.mark += self.tempo.wait
        real_sleep(max(0.0, self.mark - monotonic()))

    def look(self) -> None:
        self.late |= monotonic() > self.mark + self.tempo.slack


class Standing:
    """Virtual time: it passes in a wait, and nowhere else."""

    def __init__(self, tempo: Tempo) -> None:
        self.tempo, self.clock, self.late = tempo, StandingClock(WEDNESDAY), False

    def wait(self) -> None:
        self.clock.sleep(self.tempo.wait)

    def look(self) -> None:
        """It is never late."""
