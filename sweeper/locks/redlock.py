"""Redlock: a majority of independent Redises, each of which was told the same random value."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from marlow.clock import Clock
from sweeper.locks.base import Lease, Lock, Refusal, Release, Released, Renewal
from sweeper.locks.ports import LockUnavailable, Ports
from sweeper.locks.renewal import keep

# What the Redlock description in Redis' documentation ("Distributed Locks with Redis") calls CLOCK_DRIFT: what is
# left of a lease is its ttl, minus the time it took to acquire, minus this. The share and the two milliseconds (one
# for the precision of Redis' expiry, one at least for the clocks) are those of its reference implementation.
DRIFT_SHARE = 0.01
DRIFT_LEAST = 0.002  # real seconds

# What a majority said of our value when it was to be deleted; None: no majority said the same.
FOUND = {
    True: Release(Released.OURS, deleted=True),
    False: Release(Released.NOT_OURS),
    None: Release(Released.UNKNOWN),
}


def drift(clock: Clock, ttl: float) -> float:
    """How much earlier than the servers a holder gives its lease up; virtual seconds, as `ttl` is."""
    a_second = clock.real(1.0)
    return ttl * DRIFT_SHARE + (DRIFT_LEAST / a_second if a_second else 0.0)


def majority(answers: Sequence[Any]) -> int:
    """How many are enough: of the nodes there are, never of those that answered."""
    return len(answers) // 2 + 1


def verdict(answers: Sequence[bool | None]) -> bool | None:
    """What a majority said; None where too few said the same."""
    enough = majority(answers)
    if answers.count(True) >= enough:
        return True
    return False if answers.count(False) >= enough else None


def demand_majority(answers: Sequence[bool | None]) -> None:
    """Raise LockUnavailable unless a majority answered, whatever they said."""
    answered, enough = len(answers) - answers.count(None), majority(answers)
    if answered < enough:
        raise LockUnavailable(
            f"{answered} of the {len(answers)} Redises of Redlock answered in time, and {enough} are needed: see "
            "that the servers in LOCK_REDLOCK_URLS are up and can be reached within LOCK_REDLOCK_TIMEOUT."
        )


class RedlockLease(Lease):
    def __init__(self, ports: Ports, key: str, value: str, deadline: datetime) -> None:
        super().__init__(ports.box, clock=ports.clock, deadline=deadline)
        self.nodes, self.key, self.value = ports.nodes, key, value

    def prolong(self, ttl: float) -> bool:
        """Lost is what a majority calls lost. Nodes that differ leave it unknown, and the deadline where it was."""
        renewed = verdict(self.nodes.expire_if_equal(self.key, self.value, ttl))
        if renewed is None:
            raise LockUnavailable("No majority of the Redises of Redlock said whether the lease is still ours.")
        return renewed

    def let_go(self) -> Release:
        """Every node is asked, those that never answered included: what they were sent may have landed since.

        What is left of a lost lock on a minority of nodes is removed too. It was compared and ours: no lock was
        deleted by that, and none is reported.
        """
        return FOUND[verdict(self.nodes.delete_if_equal(self.key, self.value))]


class Redlock(Lock):
    """Promises the box that holds it that no other box is told yes before this lease's deadline, and whoever wants it
    that they get it once the holder's validity is over, as long as a majority of the servers is up. It survives the
    loss of any minority of them, and a release never removes another's key.

    All this holds while clocks and pauses are small against the lease: the promise is about time, not about order.
    Broken by:

    * a run that is longer than its lease; it may be renewed beside the run, which mends this and none of the others;
    * a pause (SIGSTOP, a suspended machine) past the lease: two holders, and renewal was paused too;
    * a server's clock that steps: one is enough where the holder had a bare majority (three of five, the others down
      when it acquired and back since); where it had all five, three must step;
    * a server that restarts without its data, which forgets what it said: the same arithmetic;
    * this box's own clock, by which it judges its lease, when it steps back.

    There is no fencing token: the value is random, so nothing can tell an older one from a newer one, and what comes
    late to the database can't be refused for it. A SET that a server had received when it froze lands when it wakes;
    the release was sent to it too, after it, and where even that was lost the key stays for its ttl.

    Each question costs at most the per-node timeout, however many servers are down. A lock that is given costs one
    question, and a refused one too, which says who most nodes have; taking back what was given costs one more. (One
    more for each, where a Redis is older than 7.0.)
    """

    name = "redlock"
    excludes = True
    mints_token = False
    expires = True
    outlives_holder = True
    renewal = Renewal.OPTIONAL
    server = "redlock"

    def acquire(self, name: str, ttl: float) -> Lease | Refusal:
        key, value = f"lock:{name}", f"{self.ports.box}:{self.ports.new_value()}"
        allowance = drift(self.ports.clock, ttl)
        deadline = self.ports.deadline(ttl - allowance)
        held = self.ports.nodes.set_or_get(key, value, ttl)
        answers = [None if found is None else found == value for found in held]
        granted = verdict(answers)
        if granted and self.ports.clock.now() < deadline:
            lease = RedlockLease(self.ports, key, value, deadline)
            return keep(lease, ttl, self.ports, allowance) if self.ports.renew else lease
        if answers.count(False) < len(answers):  # else everybody said no: there is nothing to take back
            self.ports.nodes.delete_if_equal(key, value)
        demand_majority(answers)
        if granted:
            raise LockUnavailable("The Redises of Redlock took longer to say yes than the lease would have lasted.")
        others = [found for found in held if found and found != value]
        return Refusal(max(others, key=others.count).rpartition(":")[0] if others else "")

    def demand_server(self, name: str) -> None:
        """Asks for a removal that can't happen, for nobody holds a fresh value: unlike a look, it tells a node that
        has no such key from one that does not answer.
        """
        demand_majority(self.ports.nodes.delete_if_equal(f"lock:{name}", self.ports.new_value()))
