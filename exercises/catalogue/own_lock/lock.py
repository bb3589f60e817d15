"""The lock that was handed in, as one of the shop's strategies: what the sweeper calls, its program is asked."""

from typing import ClassVar

from exercises.catalogue.own_lock.conduct import Copy
from exercises.catalogue.own_lock.port import Asking
from exercises.catalogue.own_lock.watch import Watch
from exercises.handed.checks import CouldNotDecide, Json, TheirsFailed
from exercises.lab.fibre import current
from sweeper.locks.base import Lease, Lock, Refusal, Release, Released

NAME = "yours"
FOUND = {"": Released.NOT_OURS, "ours": Released.OURS, "another’s": Released.UNKNOWN}


class YourLock(Lock):
    """Promises what its author says. Whoever makes one for a run hands it the run's name, its copy and the watch."""

    name = NAME
    excludes: ClassVar[bool] = True
    mints_token = False
    expires = True
    outlives_holder = True
    server = "redis"

    run: str
    copy: Copy
    watch: Watch

    def acquire(self, name: str, ttl: float) -> Lease | Refusal:
        """Raises TheirsFailed, CouldNotDecide."""
        until = self.ports.deadline(ttl)
        asking = Asking(self.run, self.ports, self.watch)
        yes = self.ask("acquire", [name, round(ttl * 1000)], asking)
        if not isinstance(yes, bool):
            self.watch.failed.append(f"Your acquire returned {str(yes)[:40]!r}: return True or False.")
            raise TheirsFailed(self.watch.failed[-1])
        if not yes:
            return Refusal()
        self.watch.holds(self.run, name, self.ports.clock.now(), until)
        return YourLease(self, name)

    def ask(self, method: str, arguments: list[Json], asking: Asking) -> Json:
        """What it raises is kept by the watch, for a sweep makes another thing of it."""
        try:
            return self.copy.call(method, arguments, asking)
        except TheirsFailed as failed:
            self.watch.failed.append(str(failed))
            raise
        except CouldNotDecide as why:
            self.watch.undecided = self.watch.undecided or str(why)
            raise


class YourLease(Lease):
    def __init__(self, lock: YourLock, name: str) -> None:
        super().__init__(lock.run, clock=lock.ports.clock)
        self.lock, self.name = lock, name

    def let_go(self) -> Release:
        """Where its box has died the program is not asked any more."""
        lock, fibre = self.lock, current()
        asking = Asking(lock.run, lock.ports, lock.watch, letting_go=self._over)
        try:
            if fibre is None or not fibre.abandoned:
                lock.ask("release", [self.name], asking)
                asking.ends()
        finally:
            self._over()
        return Release(FOUND[asking.removed], deleted=bool(asking.removed))

    def _over(self) -> None:
        self.lock.watch.lets_go(self.lock.run)
