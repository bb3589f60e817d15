"""Two locks that look right and are not, as strategies over the ports: for the laboratory and exercises.

advisory-apart   Postgres' advisory lock, on a connection of its own: the lock dies and the work goes on
client-compare   Redis with a random token that the client compares: it deletes another's key

In the timelines time runs to the right. They are not in `sweeper.locks.LOCKS`, so no setting names one.
"""

from dataclasses import replace

from sweeper.locks.base import Lease, Lock, Refusal, Release, Released, Renewal
from sweeper.locks.live import LivePostgres
from sweeper.locks.ports import LockUnavailable, Ports
from sweeper.locks.postgres_advisory import AdvisoryLease, PostgresAdvisory
from sweeper.locks.redis_token import RedisToken, TokenLease

APART = "journal"  # an alias of the shop's database that is a second connection to it


class ApartLease(Lease):
    """The lease of another session than the one that works. So there is no session that a write could demand."""

    def __init__(self, apart: AdvisoryLease) -> None:
        super().__init__(apart.holder)
        self.apart = apart

    def believes(self) -> bool:
        """Whether the lock's own session is still there: a question to that one, and not to the one that writes."""
        return self.apart.believes()

    def let_go(self) -> Release:
        return self.apart.let_go()


class AdvisoryApart(PostgresAdvisory):
    """Promises what `postgres-advisory` does, for as long as a session lives that has nothing to do with the work.

    A's work   ─ list: row 13 ─ ask ─ · · · · · · · · · · · · · · · · · · · · · · ─ release row 13
    A's lock   ─ held ─ · · · · · · ✗ the session ends
    B                                  takes the lock ─ list: row 13 ─ ask ─ · · · · · · · · · · ─ release row 13

    Server and network may end one connection and leave the other. To look at the lock before each write is no help:
    it may end behind the look. The shop's own lock is held by the session that writes, whose update demands it.
    """

    name = "wrong:advisory-apart"

    def __init__(self, ports: Ports) -> None:
        super().__init__(replace(ports, postgres=LivePostgres(APART)))

    def acquire(self, name: str, ttl: float) -> Lease | Refusal:
        lease = super().acquire(name, ttl)
        return ApartLease(lease) if isinstance(lease, AdvisoryLease) else lease


class ComparingLease(TokenLease):
    def let_go(self) -> Release:
        """Two questions, and what the first one was answered may be over before the second. Nothing here can tell."""
        try:
            if self.redis.get(self.key) != self.value:
                return Release(Released.NOT_OURS)
            deleted = self.redis.delete(self.key)
        except LockUnavailable:
            return Release(Released.UNKNOWN)
        return Release(Released.UNKNOWN if deleted else Released.NOT_OURS, deleted=deleted)


class ClientCompare(RedisToken):
    """Promises what `redis-token` does, but for the one thing for which that has a token. Never renewed.

    B         GET: ours ─ · · · · · · · · · · · · ─ DEL
    the key                expires
    A                               SET NX: granted ─ · · · works on without a lock

    The token was compared, and it was ours. One Lua script would have been one event; this is two.
    """

    name = "wrong:client-compare"
    renewal = Renewal.NEVER

    def acquire(self, name: str, ttl: float) -> Lease | Refusal:
        key, value = f"lock:{name}", f"{self.ports.box}:{self.ports.new_value()}"
        deadline = self.ports.deadline(ttl)
        holder = self.ports.redis.set_or_get(key, value, ttl)
        if holder is not None:
            return Refusal(holder.rpartition(":")[0])
        return ComparingLease(self.ports, key, value, deadline)


WRONG_LOCKS: dict[str, type[Lock]] = {strategy.name: strategy for strategy in (AdvisoryApart, ClientCompare)}
