"""Time, for everything in Marlow. Nobody else reads it.

The shop and the sweeper live on a *virtual* clock: the same as real time in production, twenty times as fast in
the demo, and owned by a scheduler in the laboratory. Every duration in the shop's code is written in virtual
seconds and is divided in exactly one place, `Clock.real`.

Grading, logins and third-party timestamps use `real_now`, always.
"""

import json
import os
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Protocol


class Clock(Protocol):
    """What time it is here, and how long a virtual second takes."""

    def now(self) -> datetime:
        """The virtual time on this box, timezone-aware (UTC)."""
        ...

    def at(self, real: datetime) -> datetime:
        """The virtual time on this box at this real moment (past or present)."""
        ...

    def real(self, seconds: float) -> float:
        """How many real seconds this many virtual seconds take."""
        ...

    def sleep(self, seconds: float) -> None:
        """Wait for this many virtual seconds."""
        ...

    def ticking(self) -> bool:
        """False before a scaled clock is started and after it is stopped."""
        ...


def real_now() -> datetime:
    """Wall-clock time, timezone-aware (UTC)."""
    return datetime.now(UTC)


def monotonic() -> float:
    """Real seconds on a clock that never steps, for bounds on waiting."""
    return time.monotonic()


def real_sleep(seconds: float) -> None:
    """Wait for real seconds: for start-up code that waits on other processes."""
    time.sleep(seconds)


def wait_until(ready: Callable[[], bool], seconds: float, every: float = 0.02) -> bool:
    """Ask `ready` every so often (real seconds) until it says yes; False when the time is over."""
    deadline = monotonic() + seconds
    while not ready():
        if monotonic() >= deadline:
            return False
        real_sleep(every)
    return True


class RealClock:
    """Production: virtual time is real time, give or take this box's error (`offset`, seconds)."""

    def __init__(self, offset: float = 0.0) -> None:
        self.offset = timedelta(seconds=offset)

    def now(self) -> datetime:
        return datetime.now(UTC) + self.offset

    def at(self, real: datetime) -> datetime:
        return real + self.offset

    def real(self, seconds: float) -> float:
        return seconds

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)

    def ticking(self) -> bool:
        return True


@dataclass(frozen=True)
class Reading:
    """The face of a dial: where virtual time stands, and since when it runs.

    It stands still at `epoch` until it is started at real time `started`, and runs from `ahead` virtual seconds past
    the epoch then.
    """

    epoch: str
    scale: float
    started: float | None = None
    ahead: float = 0.0

    def at(self, real: float) -> datetime:
        epoch = datetime.fromisoformat(self.epoch)
        if self.started is None or real < self.started:
            return epoch
        return epoch + timedelta(seconds=self.ahead + (real - self.started) * self.scale)


class Dial:
    """A clock face in a small file, shared by every process of one machine.

    One process sets, starts and stops it; all others only look. Replaced by rename, so nobody reads half a face.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._seen: tuple[int, int] | None = None
        self._reading: Reading | None = None

    def read(self) -> Reading:
        try:
            stat = os.stat(self.path)
            seen = (stat.st_ino, stat.st_mtime_ns)
            if self._reading is None or seen != self._seen:
                self._reading = Reading(**json.loads(self.path.read_text()))
                self._seen = seen
        except FileNotFoundError as missing:
            raise ClockError(
                f"No clock at {self.path}: `manage.py up` makes it; without one, set MARLOW_TIME_SCALE=1."
            ) from missing
        return self._reading

    def set(self, epoch: datetime, scale: float) -> None:
        """Stand still at this virtual time."""
        self._write(Reading(epoch=epoch.astimezone(UTC).isoformat(), scale=scale))

    def start(self, ahead: float = 0.0) -> None:
        """Run from where it stands, or from `ahead` virtual seconds past that."""
        self._write(replace(self.read(), started=time.time(), ahead=ahead))

    def stop(self) -> None:
        """Stand still at the present virtual time."""
        reading = self.read()
        self.set(reading.at(time.time()), reading.scale)

    def _write(self, reading: Reading) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        draft = self.path.with_suffix(f".{os.getpid()}")
        draft.write_text(json.dumps(asdict(reading)))
        draft.replace(self.path)


class ScaledClock:
    """Virtual time read from a dial, with this box's own error (`offset`, virtual seconds)."""

    def __init__(self, dial: Dial, offset: float = 0.0) -> None:
        self.dial = dial
        self.offset = timedelta(seconds=offset)

    def now(self) -> datetime:
        return self.at(real_now())

    def at(self, real: datetime) -> datetime:
        return self.dial.read().at(real.timestamp()) + self.offset

    def real(self, seconds: float) -> float:
        return seconds / self.dial.read().scale

    def sleep(self, seconds: float) -> None:
        time.sleep(self.real(seconds))

    def ticking(self) -> bool:
        return self.dial.read().started is not None


class StandingClock:
    """A clock that somebody sets by hand: for writing down what happened at a given moment. Real time stands too."""

    def __init__(self, now: datetime) -> None:
        self.moment = now

    def now(self) -> datetime:
        return self.moment

    def at(self, real: datetime) -> datetime:
        return self.moment

    def real(self, seconds: float) -> float:
        return seconds

    def sleep(self, seconds: float) -> None:
        self.moment += timedelta(seconds=seconds)

    def ticking(self) -> bool:
        return False


class ClockError(Exception):
    """The clock this process was told to live on can't be read."""


@cache
def live() -> Clock:
    """The clock that the environment names.

    `MARLOW_TIME_SCALE` (virtual seconds a real second, default 1), `MARLOW_CLOCK_FILE` (the dial, needed at any
    scale but 1) and `MARLOW_CLOCK_OFFSET` (this box's error in virtual seconds).
    """
    dial = os.environ.get("MARLOW_CLOCK_FILE", "")
    offset = float(os.environ.get("MARLOW_CLOCK_OFFSET", "0"))
    if dial:
        return ScaledClock(Dial(Path(dial)), offset)
    if float(os.environ.get("MARLOW_TIME_SCALE", "1")) != 1:
        raise ClockError("MARLOW_TIME_SCALE is not 1 and MARLOW_CLOCK_FILE is not set: name the dial, or set 1.")
    return RealClock(offset)
