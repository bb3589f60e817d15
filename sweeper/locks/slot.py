"""A row for each slot: whoever's insert lands runs it."""

from sweeper.locks.base import Lease, Lock, Refusal
from sweeper.locks.ports import LockUnavailable
from sweeper.slots import elect, slot_of

LONGEST = 80  # characters: what the column of the job's name holds


class Slot(Lock):
    """Promises that each two-minute slot has one elected run, for ever: a unique constraint says so, with no expiry.

    Mints a token, the slot's number. Broken by: a run that outlives its slot, for the next slot's row is free. The
    election has no clock in it, but the slot's number is read from one: a box whose clock is slow asks for a slot
    that is long gone, and is refused; fenced, it is locked out safely.
    """

    name = "slot"
    excludes = False
    mints_token = True
    expires = False
    outlives_holder = False

    def acquire(self, name: str, ttl: float) -> Lease | Refusal:
        demand_writable(name)
        now = self.ports.clock.now()
        slot = slot_of(now, self.ports.every)
        elected = elect(self.ports.postgres, name, slot, box=self.ports.box, run=self.ports.run, at=now)
        return Lease(self.ports.box, token=slot) if elected is None else Refusal(elected)


def demand_writable(name: str) -> None:
    """Raise LockUnavailable, saying what to do, for a name that its column can't hold."""
    if len(name) > LONGEST or "\0" in name:
        raise LockUnavailable(
            f"The slot lock can't write down the job's name {name[:LONGEST]!r}, of {len(name)} characters: give the "
            f"job a name of at most {LONGEST} characters and without a NUL, or choose another SWEEPER_LOCK."
        )
