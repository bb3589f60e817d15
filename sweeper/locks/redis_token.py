"""The well-known repair: a fresh random value for each acquisition, compared and deleted in one Lua script."""

from datetime import datetime

from sweeper.locks.base import Lease, Lock, Refusal, Release, Released, Renewal
from sweeper.locks.ports import LockUnavailable, Ports
from sweeper.locks.renewal import keep


class TokenLease(Lease):
    def __init__(self, ports: Ports, key: str, value: str, deadline: datetime) -> None:
        super().__init__(ports.box, clock=ports.clock, deadline=deadline)
        self.redis, self.key, self.value = ports.redis, key, value

    def prolong(self, ttl: float) -> bool:
        return self.redis.expire_if_equal(self.key, self.value, ttl)

    def let_go(self) -> Release:
        try:
            deleted = self.redis.delete_if_equal(self.key, self.value)
        except LockUnavailable:
            return Release(Released.UNKNOWN)
        return Release(Released.OURS if deleted else Released.NOT_OURS, deleted=deleted)


class RedisToken(Lock):
    """Promises what `redis-naive` does, and that a release never removes somebody else's key.

    Still broken by: a run longer than the lease, a pause past it, and the same failover. The value is no fencing
    token: it is random, so nothing can tell an older one from a newer one. May be renewed beside the run, which mends
    the first of these and none of the others: see `renewal`.
    """

    name = "redis-token"
    excludes = True
    mints_token = False
    expires = True
    outlives_holder = True
    renewal = Renewal.OPTIONAL
    server = "redis"

    def acquire(self, name: str, ttl: float) -> Lease | Refusal:
        key, value = f"lock:{name}", f"{self.ports.box}:{self.ports.new_value()}"
        deadline = self.ports.deadline(ttl)
        try:
            holder = self.ports.redis.set_or_get(key, value, ttl)
        except LockUnavailable:
            self._take_back(key, value)
            raise
        if holder is not None:
            return Refusal(holder.rpartition(":")[0])
        lease = TokenLease(self.ports, key, value, deadline)
        return keep(lease, ttl, self.ports) if self.ports.renew else lease

    def demand_server(self, name: str) -> None:
        self.ports.redis.get(f"lock:{name}")

    def _take_back(self, key: str, value: str) -> None:
        """The SET's answer never came; it may have landed. Ours is the only key this can remove."""
        try:
            self.ports.redis.delete_if_equal(key, value)
        except LockUnavailable:
            return
