"""What a lock promises, and the small ports through which it sees the world.

A lock answers `acquire` with a lease or a refusal. It never raises for "somebody else has it"; it raises
`LockUnavailable` when its server can't be asked, and that is never a grant.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from marlow.clock import Clock

if TYPE_CHECKING:
    from shop.models import Order


class LockUnavailable(Exception):
    """The lock's server could not be asked. Nothing was acquired, as far as anybody knows."""


class Released(StrEnum):
    """What a release found."""

    OURS = "ours"
    NOT_OURS = "not_ours"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Release:
    """`deleted` says whether something was removed from the lock's server, ours or not."""

    released: Released
    deleted: bool = False


@dataclass(frozen=True)
class Refusal:
    """The lock said no, at once. `holder` is who it said yes to, where the lock can tell."""

    holder: str = ""


class Lease:
    """A lock's yes. The base class holds nothing: strategies override what they promise.

    `deadline` is in virtual time by this box's own clock; None means the lease has no expiry.
    `token` only ever rises, where the strategy mints one. `session` is set where the lock lives in the database
    session that does the work; the settle's first update then demands that it is still the same session.
    """

    def __init__(
        self,
        holder: str,
        *,
        clock: Clock | None = None,
        deadline: datetime | None = None,
        token: int | None = None,
        session: str | None = None,
    ) -> None:
        self.holder = holder
        self.clock = clock
        self.deadline = deadline
        self.token = token
        self.session = session

    def still_held(self) -> bool:
        """As far as this box can know. A pause between asking and writing is beyond it: that is the fence's work."""
        return self.deadline is None or self.clock is None or self.clock.now() <= self.deadline

    def claim(self, order: "Order") -> AbstractContextManager[bool]:
        """Hold one row while it is worked on; yields False where another worker has it. Here: nothing to do."""
        return nullcontext(True)

    def release(self) -> Release:
        return Release(Released.OURS)


class Redis(Protocol):
    """A Redis server as locks see it. Durations are virtual seconds. Raises LockUnavailable."""

    def set_if_absent(self, key: str, value: str, ttl: float) -> bool: ...

    def get(self, key: str) -> str | None: ...

    def delete(self, key: str) -> bool: ...

    def delete_if_equal(self, key: str, value: str) -> bool: ...


class Postgres(Protocol):
    """One database session as locks see it. Raises LockUnavailable when it can't be asked."""

    def row(self, sql: str, params: tuple[Any, ...] = ()) -> tuple[Any, ...] | None:
        """Run one statement by itself (autocommit) and return its first row."""
        ...


@dataclass(frozen=True)
class Ports:
    """Everything a strategy may be built from.

    `run` is unique to one acquisition; `every` is the schedule's interval and a slot's length (virtual seconds);
    `new_value` gives a fresh random string each time it is called.
    """

    clock: Clock
    box: str
    run: str
    every: float
    redis: Redis
    postgres: Postgres
    new_value: Callable[[], str]

    def deadline(self, ttl: float) -> datetime:
        """The end of a lease that is about to be asked for. Asked before, not after: an answer may be slow."""
        return self.clock.now() + timedelta(seconds=ttl)


class Lock(ABC):
    """A strategy over its ports. The three declarations are what the conformance suite holds it to."""

    name: ClassVar[str]
    excludes: ClassVar[bool]  # at most one holder of a name at a time, in calm weather
    mints_token: ClassVar[bool]  # leases carry a number that only rises
    expires: ClassVar[bool]  # leases end by a clock
    server: ClassVar[str] = ""  # what must answer before a box starts, beside the shop's own database: "redis"

    def __init__(self, ports: Ports) -> None:
        self.ports = ports

    @abstractmethod
    def acquire(self, name: str, ttl: float) -> Lease | Refusal:
        """Try once, without waiting. `ttl` is in virtual seconds and ignored where leases have no expiry."""
