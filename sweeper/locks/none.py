"""No lock at all: what two boxes with one crontab do to each other."""

from sweeper.locks.base import Lease, Lock, Refusal


class NoLock(Lock):
    """Promises nothing: everybody who asks is told yes, at once and for ever. The others are seen against it."""

    name = "none"
    excludes = False
    mints_token = False
    expires = False
    outlives_holder = False

    def acquire(self, name: str, ttl: float) -> Lease | Refusal:
        return Lease(holder=self.ports.run)
