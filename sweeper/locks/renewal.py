"""Asking for more time beside the run.

What it fixes: a run longer than its lease, as long as the box, its process and the lock's server are all well. What
it does not fix: a pause (SIGSTOP, a stalled disk, a suspended machine) stops the renewal with the run, and the lease
runs out behind both their backs; a step of the server's clock; a failover that lost the key. Between the moment a
lease is gone and the moment the run is told lies a write: only the fence, compared by the database, refuses that one.
"""

from sweeper.locks.base import Lease
from sweeper.locks.ports import Beside, LockUnavailable, Ports

SHARE = 1 / 3  # of its ttl between two renewals: two may fail before the lease runs out


def keep(lease: Lease, ttl: float, ports: Ports, drift: float = 0.0) -> Lease:
    """Renew this lease beside the run, through the injected `spawn`, until it is released or lost. `drift` is
    how much earlier (virtual seconds) the holder gives up than the server does.
    """

    def renewing(beside: Beside) -> None:
        while not beside.wait(ttl * SHARE):
            deadline = ports.deadline(ttl - drift)
            try:
                renewed = lease.renew(ttl)
            except LockUnavailable:
                continue  # nobody knows; the deadline stays where it was, and the lease is over when that passes
            if not renewed:
                lease.lost = True
                return
            if lease.deadline is not None:
                lease.deadline = deadline

    lease.end_renewal = ports.spawn(renewing)
    return lease
