"""The small ports through which locks see the world: live they are servers, in the laboratory virtual ones.

All of them raise LockUnavailable when they can't ask. Durations are virtual seconds.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any, NoReturn, Protocol

from marlow.clock import Clock


class LockUnavailable(Exception):
    """The lock's server could not be asked. Nothing was acquired, as far as anybody knows."""


class InTransaction(Exception):
    """A lock was to be taken or let go inside an open transaction: it would be free before its work is committed."""


class Redis(Protocol):
    """One Redis server."""

    def set_if_absent(self, key: str, value: str, ttl: float) -> bool: ...

    def set_or_get(self, key: str, value: str, ttl: float) -> str | None:
        """None: there was no such key, and now it holds this value for `ttl`. Else nothing was done, and this is
        what it holds.
        """
        ...

    def get(self, key: str) -> str | None: ...

    def delete(self, key: str) -> bool: ...

    def delete_if_equal(self, key: str, value: str) -> bool: ...

    def expire_if_equal(self, key: str, value: str, ttl: float) -> bool:
        """Give the key `ttl` more to live, only if it still holds this value."""
        ...


class RedisNodes(Protocol):
    """Independent Redis servers, all asked at once. An answer a node, in their order: None from one that gave none
    within the per-node timeout. Never raises LockUnavailable: to count the answers is the strategy's business.
    """

    def set_or_get(self, key: str, value: str, ttl: float) -> Sequence[str | None]:
        """What the key holds now: this value, for `ttl`, where there was none."""
        ...

    def delete_if_equal(self, key: str, value: str) -> Sequence[bool | None]: ...

    def expire_if_equal(self, key: str, value: str, ttl: float) -> Sequence[bool | None]: ...


class Postgres(Protocol):
    """One database session."""

    def row(self, sql: str, params: tuple[Any, ...] = ()) -> tuple[Any, ...] | None:
        """Run one statement by itself (autocommit) and return its first row. Raises InTransaction inside one."""
        ...

    def pooler(self) -> str:
        """What speaks for a pooler in transaction mode between here and the server; empty if nothing does."""
        ...


@dataclass(frozen=True)
class Created:
    """What a transaction that makes a key came to. `revision` is the store's, of this very transaction."""

    done: bool
    revision: int
    value: str  # what the key holds: ours, or the other one's


class Etcd(Protocol):
    """An etcd cluster: leases in whole seconds (rounded up), and keys that go with them."""

    def grant(self, ttl: float) -> int:
        """A new lease's id."""
        ...

    def create(self, key: str, value: str, lease: int) -> Created:
        """In one transaction: make the key if there is none. One that exists with this very value counts as made by
        us (an answer was lost and the question asked again); the revision is the one it was created at.
        """
        ...

    def keep_alive(self, lease: int) -> bool:
        """False: the lease is over."""
        ...

    def revoke(self, lease: int) -> bool:
        """End the lease and remove its keys. False: it was over."""
        ...

    def get(self, key: str) -> str | None: ...


@dataclass(frozen=True)
class Node:
    """A ZooKeeper node of ours. `czxid` is the id of the transaction that made it: 64 bits, rises for ever.

    `session` is the one that made it and that it goes with; `beside` are the names of the nodes that stood there once
    it was made, its own among them.
    """

    path: str
    czxid: int
    session: str
    beside: Sequence[str]


class ZooKeeper(Protocol):
    """One ZooKeeper session, kept alive by its client's own threads."""

    def create(self, prefix: str, value: str) -> Node:
        """An ephemeral sequential node; its parents are made where they are missing."""
        ...

    def children(self, parent: str) -> Sequence[str]:
        """Names, unordered; empty where the parent does not exist."""
        ...

    def get(self, path: str) -> str | None: ...

    def delete(self, path: str) -> bool:
        """False: it was gone."""
        ...

    def session(self) -> str:
        """The session's id while it is connected, empty while it is not; another id after it was lost."""
        ...


class Beside(Protocol):
    """How work that runs beside the run waits."""

    def wait(self, seconds: float) -> bool:
        """Wait so many virtual seconds, or less where told to end: True then."""
        ...


# Starts work beside the run and returns what ends it: that returns when the work has ended.
Spawn = Callable[[Callable[[Beside], None]], Callable[[], None]]


class _Absent:
    """Stands where a box has no such server; whoever asks it learns which setting names one."""

    def __init__(self, setting: str) -> None:
        self._setting = setting

    def __getattr__(self, question: str) -> NoReturn:
        raise LockUnavailable(f"This box knows no such server: set {self._setting}.")


def absent(setting: str) -> Callable[[], Any]:
    return lambda: _Absent(setting)


def _nothing_beside(work: Callable[[Beside], None]) -> NoReturn:
    raise LockUnavailable("Nothing can run beside this run: hand the ports a `spawn`.")


@lru_cache
def _span(seconds: float) -> timedelta:
    return timedelta(seconds=seconds)


@dataclass(frozen=True)
class Ports:
    """Everything a strategy may be built from.

    `run` is unique to one acquisition; `every` is the schedule's interval and a slot's length (virtual seconds);
    `new_value` gives a fresh random string each time it is called. `renew` asks strategies whose lease may be renewed
    to renew it beside the run.
    """

    clock: Clock
    box: str
    run: str
    every: float
    new_value: Callable[[], str]
    redis: Redis = field(default_factory=absent("LOCK_REDIS_URL"))
    nodes: RedisNodes = field(default_factory=absent("LOCK_REDLOCK_URLS"))
    postgres: Postgres = field(default_factory=absent("DATABASE_URL"))
    etcd: Etcd = field(default_factory=absent("LOCK_ETCD_URLS"))
    zookeeper: ZooKeeper = field(default_factory=absent("LOCK_ZOOKEEPER_HOSTS"))
    spawn: Spawn = _nothing_beside
    renew: bool = False

    def deadline(self, ttl: float) -> datetime:
        """The end of a lease that is about to be asked for. Asked before, not after: an answer may be slow."""
        return self.clock.now() + _span(ttl)
