"""One order of two boxes that sweep under the lock that was handed in. Nothing is pending: what a lock does is no
matter of rows, and a sweep that finds none leaves more orders to try.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, cast

from exercises.catalogue.own_lock.conduct import Conduct, Copy
from exercises.catalogue.own_lock.lock import NAME, YourLock
from exercises.catalogue.own_lock.port import DAY
from exercises.catalogue.own_lock.watch import Watch
from exercises.handed.checks import CouldNotDecide
from exercises.lab.database import Database
from exercises.lab.scheduler import Policy, Scheduler, at
from exercises.lab.steps import Step
from exercises.scenarios.boxes import ALL_FORMS, ALL_LOCKS, Box, Servers, Setting, as_told
from exercises.scenarios.corner import JUST_AFTER, START, Corner, Played
from exercises.scenarios.faults import Fault, Kind
from exercises.scenarios.placed import Placed
from exercises.scenarios.ports import ZooKeeperPort
from exercises.scenarios.strikes import Strikes
from shop.models import Order
from shop.settle import Form, complete_guarded, refund_guarded, release_guarded
from sweeper import verdict
from sweeper.journal import Memory, Run
from sweeper.locks.base import Lock
from sweeper.sweep import Rules

LISTS = Step("lists: nothing is pending", frees=False)
NO_ROWS = {"phantom": 0, "lost": 0, "double_settles": 0}


@dataclass(frozen=True)
class Terms:
    """Under which a lock is asked: by its name, for a lease of virtual seconds, from the first message on. These are
    those of the statement.
    """

    name: str = "sweeper"
    lease: float = 120.0
    start: datetime = START


@dataclass(frozen=True)
class World:
    """`messages`: of each box, which come a lease and a millisecond apart, and `early` by virtual seconds. `strikes`:
    what may happen to box A, once, anywhere. `apart`: each box asks for a lock of a name of its own.
    """

    messages: tuple[int, ...] = (1, 2)
    early: float = 0.0
    strikes: tuple[Kind, ...] = ()
    apart: bool = False
    terms: Terms = Terms()

    @property
    def every(self) -> float:
        return self.terms.lease - self.early

    @property
    def corner(self) -> Corner:
        """As the laboratory's menu of faults knows it. Only while `known`."""
        return Corner(self.setting(self.terms.name), len(self.messages), 1, max(self.messages))

    def setting(self, job: str) -> Setting:
        """Of a box whose lock has the name of this job. Only while `known`."""
        return _Setting(NAME, NAME, ttl=self.terms.lease, every=self.every, job=job)

    def job(self, box: str) -> str:
        return f"{self.terms.name}-{box}" if self.apart else self.terms.name


@dataclass(frozen=True)
class _Setting(Setting):
    """`job`: by its name the lock is asked for."""

    job: str = ""

    @property
    def rules(self) -> Rules:
        return replace(super().rules, job=self.job)


@dataclass(frozen=True)
class Went:
    """One order, and what was seen of it."""

    world: World
    played: Played
    watch: Watch


@dataclass(frozen=True)
class _Lends:
    """What the lock of every run is handed."""

    conduct: Conduct
    watch: Watch


class _YourBox(Box):
    def __init__(self, name: str, servers: Servers, setting: Setting, journal: Memory, lends: _Lends) -> None:
        super().__init__(name, 0.0, servers, setting, journal)
        self.lends = lends

    def _new_value(self) -> str:
        return f"{super()._new_value()} {self.lends.conduct.salt}"

    def _lock(self, run: Run, name: str, session: ZooKeeperPort) -> Lock:
        lock = super()._lock(run, name, session)
        if isinstance(lock, YourLock):
            lock.run, lock.copy, lock.watch = name, Copy(self.lends.conduct), self.lends.watch
        return lock


class _Servers(Servers):
    def deadlines(self) -> set[datetime]:
        """A key that has no expiry has no deadline: nobody stands still until then."""
        last = self.scheduler.now + timedelta(milliseconds=DAY)
        return {deadline for deadline in super().deadlines() if deadline <= last}


class _NoSessions:
    """Stands where a fault looks for a box's sessions with the database: nobody has any."""

    def __init__(self) -> None:
        self.sessions: dict[str, Any] = {}


@contextmanager
def known() -> Iterator[None]:
    """The strategy and the form of this exercise have their names meanwhile, and nobody else's."""
    ALL_LOCKS[NAME] = YourLock
    ALL_FORMS[NAME] = Form(NAME, complete_guarded, release_guarded, refund_guarded, lambda permit, rows: _none())
    try:
        yield
    finally:
        del ALL_LOCKS[NAME], ALL_FORMS[NAME]


def _none() -> list[Order]:
    """One step, as if they had been asked for."""
    at(LISTS)
    return []


def play(world: World, conduct: Conduct, policy: Policy, faults: Sequence[Fault]) -> Went:
    """Raises CouldNotDecide, and what the policy raises."""
    corner = world.corner
    scheduler, watch = Scheduler(policy, world.terms.start), Watch()
    servers, journal = _Servers(scheduler), Placed(scheduler)
    boxes: dict[str, Box] = {}
    for name in corner.names:
        boxes[name] = _YourBox(name, servers, world.setting(world.job(name)), journal, _Lends(conduct, watch))
    for message in range(max(world.messages)):
        for box in [box for box, messages in zip(boxes.values(), world.messages, strict=True) if message < messages]:
            box.cron(world.terms.start + message * (timedelta(seconds=world.every) + JUST_AFTER))
    strikes = Strikes(scheduler, cast("Database", _NoSessions()), boxes, servers, faults)
    strikes.lie_in_wait()
    try:
        scheduler.run()
    finally:
        watch.demand_decided()
    errors = {fibre.name: type(fibre.error).__name__ for fibre in scheduler.fibres if fibre.error is not None}
    if others := {what for what in errors.values() if what != "TheirsFailed"}:
        raise CouldNotDecide(f"A run of the laboratory ended by {' and '.join(sorted(others))}.")
    told = verdict.on(journal.events, NO_ROWS, **corner.setting.named)
    told["events"] = as_told(journal.events)
    played = Played(
        scheduler.taken, told, tuple(watch.wrong), errors, strikes.met, journal.places, journal.events, strikes.deaths
    )
    return Went(world, played, watch)
