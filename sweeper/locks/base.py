"""What a lock promises: leases, refusals, and what every strategy declares.

A lock answers `acquire` with a lease or a refusal. It never raises for "somebody else has it"; it raises
`LockUnavailable` when its server can't be asked, and that is never a grant.
"""

import os
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from types import TracebackType
from typing import TYPE_CHECKING, ClassVar, NoReturn

from marlow.clock import Clock
from sweeper.locks.ports import Ports

if TYPE_CHECKING:
    from shop.models import Order


class Refused(Exception):
    """A refusal was entered as if it were a lease: the block did not run."""


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
    """The lock said no, at once. `holder` is who it said yes to, where the lock can tell.

    Entered like a lease (`with lock.acquire(…)`), it raises Refused and the block does not run.
    """

    holder: str = ""

    def __enter__(self) -> NoReturn:
        raise Refused(f"The lock is {self.holder or 'somebody'}'s: nothing was done.")

    def __exit__(self, kind: object, error: object, trace: object) -> None: ...


class Lease:
    """A lock's yes. The base class holds nothing: strategies override `believes`, `prolong` and `let_go`.

    `deadline` is in virtual time by this box's own clock; None means that the lease ends by no clock of ours.
    `token` only ever rises, where the strategy mints one. `session` is set where the lock lives in the database
    session that does the work; the settle's first update then demands that it is still the same session.
    `lost` is set by what runs beside the run, once it learns that the lease is gone.

    A lease is its own process's: after a fork the child neither holds it nor can renew it or let it go.
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
        self.lost = False
        self.end_renewal: Callable[[], None] | None = None
        self.process = os.getpid()

    def __enter__(self) -> "Lease":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()

    def still_held(self) -> bool:
        """As far as this box can know. A pause between asking and writing is beyond it: that is the fence's work."""
        return self.process == os.getpid() and not self.lost and self.believes()

    def believes(self) -> bool:
        """What the strategy itself knows; here: that the deadline, if there is one, has not passed on our clock."""
        return self.deadline is None or self.clock is None or self.clock.now() <= self.deadline

    def claim(self, order: "Order") -> AbstractContextManager[bool]:
        """Hold one row while it is worked on; yields False where another worker has it. Here: nothing to do."""
        return nullcontext(True)

    def renew(self, ttl: float) -> bool:
        """Ask for `ttl` more (virtual seconds), if it is still ours; False: it is not. Raises LockUnavailable."""
        return self.process == os.getpid() and self.prolong(ttl)

    def prolong(self, ttl: float) -> bool:
        raise NotImplementedError(f"{type(self).__name__} can't be renewed.")

    def release(self) -> Release:
        """Let go, and say whether it was still ours. Never raises for a server that is gone: UNKNOWN."""
        if self.process != os.getpid():
            return Release(Released.NOT_OURS)
        if self.end_renewal is not None:
            self.end_renewal()
        return self.let_go()

    def let_go(self) -> Release:
        return Release(Released.OURS)


class Renewal(StrEnum):
    """Whether something beside the run asks for more time."""

    NEVER = "never"
    OPTIONAL = "optional"  # with `Ports.renew`
    ALWAYS = "always"


class Lock(ABC):
    """A strategy over its ports. The declarations are what the conformance suite holds it to."""

    name: ClassVar[str]
    excludes: ClassVar[bool]  # at most one holder of a name at a time, in calm weather
    mints_token: ClassVar[bool]  # leases carry a number that only rises
    expires: ClassVar[bool]  # leases carry a deadline by this box's own clock
    outlives_holder: ClassVar[bool]  # a killed holder's lock stays until its ttl is over; else it is free at once
    renewal: ClassVar[Renewal] = Renewal.NEVER
    server: ClassVar[str] = ""  # what it stands on beside the shop's own database: redis, redlock, etcd, zookeeper

    def __init__(self, ports: Ports) -> None:
        self.ports = ports

    @abstractmethod
    def acquire(self, name: str, ttl: float) -> Lease | Refusal:
        """Try once, without waiting. `ttl` is in virtual seconds and ignored where leases have no expiry."""

    def demand_server(self, name: str) -> None:  # noqa: B027  most stand on the shop's own database alone
        """Raise LockUnavailable unless what this lock stands on answers and is fit for it. Takes nothing."""
