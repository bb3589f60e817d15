"""A lock for saving work, not for safety: for work whose double run is harmless and has a known price.

Twelve pods that want to rebuild one cache ask it, and one of them rebuilds. Now and then two will, and that costs one
rebuild. Nobody may settle an order behind it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from sweeper.locks.ports import LockUnavailable, Redis


class Probably(StrEnum):
    """What one key with an expiry can know about who else is at work."""

    FIRST = "first"
    SOMEBODY_ELSES = "somebody else's"


@dataclass(frozen=True)
class Turn:
    """What one caller was told. `asked` is False where the server did not answer; the turn is FIRST then."""

    probably: Probably
    asked: bool
    _give_back: Callable[[], bool]

    @property
    def go_ahead(self) -> bool:
        return self.probably is Probably.FIRST

    def give_back(self) -> bool:
        """Optional: let the next caller go before the ttl is over. Did it remove our key? Never another's.

        Leave it out where running again within the ttl would be a waste, as it is for a cache. Never raises.
        """
        return self.go_ahead and self._give_back()


class EfficiencyLock:
    """One key with an expiry, set by whoever comes first; the expiry ends it, and not its holder.

    Promises that of many callers within `ttl` usually one is told FIRST. Promises nothing to the resource: a run that
    outlives the ttl, a pause, a failover that lost the key, a clock that stepped or a server that is gone let two go
    ahead, or all of them. The price is one run too many a time, and with the server gone one run a caller.

    Must never guard a write: "probably" settles rows twice. It is no `Lock`: it has no lease to lose and mints no
    token, so nothing could refuse the second writer; it is not in LOCKS, so no SWEEPER_LOCK names it. When its server
    can't be asked it says go ahead, where a lock must say no: here a double run is harmless and no run at all is not.
    """

    def __init__(self, redis: Redis, new_value: Callable[[], str]) -> None:
        self.redis, self.new_value = redis, new_value

    def turn(self, name: str, ttl: float) -> Turn:
        """Ask once, without waiting. `ttl` (virtual seconds): how long one run keeps the others from theirs."""
        key, value = f"efficiency:{name}", self.new_value()
        try:
            first, asked = self.redis.set_if_absent(key, value, ttl), True
        except LockUnavailable:
            first, asked = True, False
        probably = Probably.FIRST if first else Probably.SOMEBODY_ELSES
        return Turn(probably, asked, lambda: self._delete(key, value))

    def _delete(self, key: str, value: str) -> bool:
        try:
            return self.redis.delete_if_equal(key, value)
        except LockUnavailable:
            return False  # the ttl does it
