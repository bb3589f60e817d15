"""A Postgres advisory lock, held by the very session that does the work."""

import hashlib
from functools import lru_cache

from sweeper.locks.base import Lease, Lock, Refusal, Release, Released
from sweeper.locks.ports import LockUnavailable, Ports, Postgres

# In: key, run. Takes the lock and marks this session as the one that took it for this run. Out: the run if the lock
# was granted, null if another session has it or if this session still bears a mark: the lock is re-entrant, so a
# pooled session that kept it for an earlier borrower would be told yes, and it would mean nothing. Never waits.
TAKE = """
    select case
        when current_setting('marlow.run', true) <> '' then null
        when pg_try_advisory_lock(%s) then set_config('marlow.run', %s, false)
    end
"""
# In: run, key. Lets go and takes the mark away, also where nothing was held any more: a mark that stayed would have
# this session refused its own lock for ever; hence that first. Out: true if it was held, false if not (Postgres warns
# too), null if this is not the session that took it.
LET_GO = """
    select case when current_setting('marlow.run', true) = %s then
        set_config('marlow.run', '', false) = '' and pg_advisory_unlock(%s)
    end
"""
# Out: the run this session is marked with; a session that was opened anew behind our back has none.
MARKED = "select current_setting('marlow.run', true)"


@lru_cache(maxsize=64)
def key_of(name: str) -> int:
    """The lock's 64-bit key: the first eight bytes of SHA-256 of `marlow:` and the name, signed, big-endian.

    Pinned by a test: boxes that derive different keys from one name do not exclude each other. Not `hashtext`
    (32 bits, and Postgres may change it) and not crc32 (`plumless` and `buckeroo` are one).
    """
    return int.from_bytes(hashlib.sha256(f"marlow:{name}".encode()).digest()[:8], "big", signed=True)


@lru_cache(maxsize=64)
def with_key(statement: str, key: int) -> str:
    """TAKE or LET_GO with the key, a number of ours, written in: one value less to bind each time."""
    return statement.replace("lock(%s)", f"lock({key:d})")


class AdvisoryLease(Lease):
    def __init__(self, ports: Ports, key: int) -> None:
        super().__init__(ports.box, session=ports.run)
        self.postgres: Postgres = ports.postgres
        self.key = key

    def believes(self) -> bool:
        """Whether the connection that works is still the session that took the lock."""
        try:
            return self.postgres.row(MARKED) == (self.session,)
        except LockUnavailable:
            return False

    def let_go(self) -> Release:
        """An unlock that does not answer true is reported, never ignored: the session was not ours any more."""
        try:
            row = self.postgres.row(with_key(LET_GO, self.key), (self.session,))
        except LockUnavailable:
            return Release(Released.UNKNOWN)
        unlocked = row == (True,)
        return Release(Released.OURS if unlocked else Released.NOT_OURS, deleted=unlocked)


class PostgresAdvisory(Lock):
    """Promises that no other session holds the lock for as long as this session lives. No expiry, no clock.

    An overrunning or paused run keeps it, and the next one is refused. Broken by: a pooler in transaction mode
    (acquire and release reach different sessions; a box refuses to start behind one it can tell), and a connection
    that is silently opened anew. The second is caught: every settle's first update demands the session's mark. When a
    box loses power the lock stays until the server notices: see the keepalive settings.
    """

    name = "postgres-advisory"
    excludes = True
    mints_token = False
    expires = False
    outlives_holder = False

    def acquire(self, name: str, ttl: float) -> Lease | Refusal:
        key = key_of(name)
        if self.ports.postgres.row(with_key(TAKE, key), (self.ports.run,)) == (self.ports.run,):
            return AdvisoryLease(self.ports, key)
        return Refusal()

    def demand_server(self, name: str) -> None:
        if pooled := self.ports.postgres.pooler():
            raise LockUnavailable(
                f"postgres-advisory needs a session of its own, and {pooled}. Point DATABASE_URL at Postgres itself, "
                "at a pooler in session mode, or choose another SWEEPER_LOCK."
            )
