"""One failure at a time of the evening: what it strikes, when, and for how long.

Where `faults` strikes between two steps, for whoever tries every order, this strikes at a moment, for whoever tells a
story. Whatever is due at that very moment comes first.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from enum import StrEnum

from exercises.lab.database import Database
from exercises.lab.fibre import current
from exercises.lab.scheduler import Scheduler, at
from exercises.lab.steps import step
from exercises.scenarios.boxes import Box, Servers

LONGEST = 86_400  # seconds
LOOKS_LIKE = re.compile(r"([a-z]+)(?::(box-[ab]))?(?::([0-9]{1,5}))?@([0-9]{2}:[0-9]{2}:[0-9]{2})")


class What(StrEnum):
    """What fails. On a box that stands still the kernel still answers; one without power says nothing more."""

    FREEZE = "freeze"  # every process of the box stands still for so long, and goes on
    KILL = "kill"  # kill -9 of each process that is at a run: its session ends at once, and another takes its place
    POWER = "power"  # the box is gone; so long after that Postgres misses it and ends its sessions
    SESSION = "session"  # Postgres ends the sessions in which the box is at a run; the box lives
    FAILOVER = "failover"  # the lock's Redis is lost, and the replica that takes over has none of its keys
    DARK = "dark"  # the provider answers nobody for so long


STRIKES_A_BOX = (What.FREEZE, What.KILL, What.POWER, What.SESSION)
LASTS = (What.FREEZE, What.POWER, What.DARK)
IN_WORDS = {
    What.FREEZE: "{box} stands still for {lasts} s",
    What.KILL: "{box}’s process is killed",
    What.POWER: "{box} loses its power",
    What.SESSION: "{box}’s session ends",
    What.FAILOVER: "Redis fails over, without its keys",
    What.DARK: "the provider goes dark for {lasts} s",
}


@dataclass(frozen=True)
class Mishap:
    """As text: `power:box-b:7875@21:51:00`, `kill:box-b@21:51:00`, `dark:300@21:51:00`, `failover@21:51:00`.
    `lasts`: whole seconds.
    """

    what: What
    at: time
    box: str = ""
    lasts: int = 0

    def __post_init__(self) -> None:
        """Raises ValueError."""
        if bool(self.box) != (self.what in STRIKES_A_BOX):
            raise ValueError(f"{self.what} strikes {'a box: name one' if not self.box else 'no box: name none'}.")
        if bool(self.lasts) != (self.what in LASTS):
            needed = "lasts: say for how many seconds" if not self.lasts else "is over at once: leave the seconds out"
            raise ValueError(f"{self.what} {needed}.")
        if self.lasts > LONGEST:
            raise ValueError(f"{self.lasts} s are more than a day: name {LONGEST} at the most.")

    def __str__(self) -> str:
        parts = [str(self.what), self.box, str(self.lasts or "")]
        return f"{':'.join(part for part in parts if part)}@{self.at:%H:%M:%S}"

    @property
    def words(self) -> str:
        return IN_WORDS[self.what].format(box=self.box, lasts=self.lasts)

    @classmethod
    def read(cls, text: str) -> "Mishap":
        """Raises ValueError."""
        if (found := LOOKS_LIKE.fullmatch(text)) is None:
            raise ValueError(f"{text!r} is no failure: it looks like power:box-b:7875@21:51:00.")
        what, box, lasts, moment = found.groups()
        return cls(What(what), time.fromisoformat(moment), box or "", int(lasts or 0))

    def moment(self, day: datetime) -> datetime:
        """On the day of this one, and in its zone."""
        on: date = day.date()
        return datetime.combine(on, self.at, day.tzinfo)


class Waiting:
    """A mishap that waits for its moment, on a fibre that begins behind everybody else's."""

    def __init__(
        self, mishap: Mishap, scheduler: Scheduler, database: Database, boxes: Sequence[Box], servers: Servers
    ) -> None:
        self.mishap, self.scheduler, self.database, self.servers = mishap, scheduler, database, servers
        self.box = next((box for box in boxes if box.name == mishap.box), None)
        scheduler.start("faults", "fault 1", self._strike, mishap.moment(scheduler.now))

    def _strike(self) -> None:
        at(step(self.mishap.words))
        getattr(self, f"_{self.mishap.what}")()

    def _freeze(self) -> None:
        self.scheduler.freeze(self.mishap.box, self.scheduler.now + timedelta(seconds=self.mishap.lasts))

    def _kill(self) -> None:
        for run in self._at_work():
            doomed = [self.database.sessions[name] for name in self._sessions(run)]
            for fibre in list(self.scheduler.fibres):
                if fibre.name.partition(" ")[0] == run:
                    fibre.abandon()
            for name, session in list(self.database.sessions.items()):  # its process has it back by now
                if session in doomed:
                    self.database.lose(name)

    def _power(self) -> None:
        self.scheduler.crash(self.mishap.box)
        self._rest()
        at(step(f"Postgres notices that {self.mishap.box} is gone"))
        for name in list(self.database.sessions):
            if re.split("[ /]", name)[0] == self.mishap.box:
                self.database.lose(name)

    def _session(self) -> None:
        for run in self._at_work():
            for name in self._sessions(run):
                self.database.lose(name)

    def _failover(self) -> None:
        self.servers.redis.fail_over()
        self.servers.redis.add_replica()

    def _dark(self) -> None:
        self.servers.provider.dark = True
        self._rest()
        at(step("the provider answers again"))
        self.servers.provider.dark = False

    def _rest(self) -> None:
        fibre = current()
        assert fibre is not None  # noqa: S101  it strikes as a fibre
        fibre.sleep_until(self.scheduler.now + timedelta(seconds=self.mishap.lasts))

    def _at_work(self) -> list[str]:
        """The runs of the box that have a session, which their process has lent them for as long as they last."""
        runs = [] if self.box is None else self.box.runs
        return [run.name for run in runs if run.name in self.database.sessions]

    def _sessions(self, run: str) -> list[str]:
        """Its own, and those that it keeps beside it."""
        return [name for name in self.database.sessions if name.partition(" ")[0] == run]
