"""The lock that shipped: `SET NX PX` with the hostname (and `GET`, which only tells who has it), a plain `DEL`."""

from datetime import datetime

from sweeper.locks.base import Lease, Lock, Refusal, Release, Released
from sweeper.locks.ports import LockUnavailable, Ports


class NaiveLease(Lease):
    def __init__(self, ports: Ports, key: str, deadline: datetime) -> None:
        super().__init__(ports.box, clock=ports.clock, deadline=deadline)
        self.redis, self.key = ports.redis, key

    def let_go(self) -> Release:
        """Delete whatever lies under the key. It may be anybody's by now, and nothing here can tell."""
        try:
            deleted = self.redis.delete(self.key)
        except LockUnavailable:
            return Release(Released.UNKNOWN)
        return Release(Released.UNKNOWN if deleted else Released.NOT_OURS, deleted=deleted)


class RedisNaive(Lock):
    """Promises the box that sets the key first that nobody else is told yes until the key is gone.

    Broken by: a run longer than the lease (the next run is told yes while this one works, and this one's DEL then
    deletes the next one's key), a pause past the lease, and a failover to a replica that had not the key.
    """

    name = "redis-naive"
    excludes = True
    mints_token = False
    expires = True
    outlives_holder = True
    server = "redis"

    def acquire(self, name: str, ttl: float) -> Lease | Refusal:
        key, deadline = f"lock:{name}", self.ports.deadline(ttl)
        holder = self.ports.redis.set_or_get(key, self.ports.box, ttl)
        return NaiveLease(self.ports, key, deadline) if holder is None else Refusal(holder)

    def demand_server(self, name: str) -> None:
        self.ports.redis.get(f"lock:{name}")
