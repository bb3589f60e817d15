"""A Redis whose clock can be wrong, with a replica that lags behind."""

from collections import deque
from dataclasses import dataclass

from exercises.lab.servers.machine import Machine, NotAllowed, Now


@dataclass(frozen=True)
class Entry:
    value: str
    deadline: int  # by the server's own clock, in milliseconds

    def dead(self, time: int) -> bool:
        """A key is still alive at its deadline."""
        return time > self.deadline


Write = tuple[str, Entry | None]  # a key and what it holds from then on; None: it is gone


class VirtualRedis(Machine):
    """Durations are in milliseconds, as Redis takes them, and at least one.

    Keys expire by the wall clock of this server, which is the given one plus an offset that can be stepped: a key
    whose deadline a step has passed is gone, and does not come back when the clock does. `stop` and `start` make a
    server without data.

    A replica gets every write some time later: `replicate` says when. An acknowledged write that was not shipped is
    lost with the master (`fail_over`).
    """

    name = "Redis"

    def __init__(self, now: Now, offset: float = 0.0) -> None:
        """`offset`: how far ahead this server's clock is, in seconds."""
        super().__init__(now)
        self._offset = round(offset * 1000)
        self._keys: dict[str, Entry] = {}
        self._replica: dict[str, Entry] | None = None
        self._replica_offset = 0
        self._unshipped: deque[Write] = deque()

    def set_if_absent(self, key: str, value: str, ttl: int) -> bool:
        """SET key value NX PX ttl."""
        return self.set_or_get(key, value, ttl) is None

    def set_or_get(self, key: str, value: str, ttl: int) -> str | None:
        """SET key value NX GET PX ttl: what the key held; None where there was none, and now it holds this."""
        self._asked()
        if (there := self._keys.get(key)) is not None:
            return there.value
        self._write(key, Entry(value, self._deadline(ttl)))
        return None

    def get(self, key: str) -> str | None:
        self._asked()
        there = self._keys.get(key)
        return None if there is None else there.value

    def delete(self, key: str) -> bool:
        """DEL: whether there was such a key."""
        self._asked()
        if key not in self._keys:
            return False
        self._write(key, None)
        return True

    def delete_if_equal(self, key: str, value: str) -> bool:
        """The compare-and-delete script: whether it was this value that was deleted."""
        return self.get(key) == value and self.delete(key)

    def expire_if_equal(self, key: str, value: str, ttl: int) -> bool:
        """The compare-and-expire script: the key lives so long from now on, if it holds this value."""
        if self.get(key) != value:
            return False
        self._write(key, Entry(value, self._deadline(ttl)))
        return True

    def remaining(self, key: str) -> int | None:
        """PTTL; None where there is no such key."""
        self._asked()
        there = self._keys.get(key)
        return None if there is None else there.deadline - self.time()

    def deadlines(self) -> list[int]:
        self._expire()
        return sorted({entry.deadline for entry in self._keys.values()})

    def stop(self) -> None:
        """At once: what was not shipped never will be."""
        super().stop()
        self._unshipped.clear()

    def time(self) -> int:
        return super().time() + self._offset

    def step(self, seconds: float) -> None:
        """Set the clock forward, or back. What was over by then is gone."""
        self._expire()
        self._offset += round(seconds * 1000)

    def add_replica(self, offset: float = 0.0) -> None:
        """With everything that is here now. `offset`: how far ahead its clock is, in seconds."""
        self._replica, self._replica_offset = dict(self._keys), round(offset * 1000)
        self._unshipped.clear()

    def unshipped(self) -> int:
        """How many writes the replica has not got yet."""
        return len(self._unshipped)

    def replicate(self, writes: int | None = None) -> None:
        """Ship so many of the writes that wait, the oldest first; without a number all of them."""
        replica = self._demand_replica()
        if self.up:
            self._expire()
        for _ in range(len(self._unshipped) if writes is None else min(writes, len(self._unshipped))):
            key, entry = self._unshipped.popleft()
            _put(replica, key, entry)

    def fail_over(self) -> None:
        """The master is gone for good, whether it was up or not, and its replica takes its place: with what it was
        shipped, by its own clock, and with no replica of its own.
        """
        self._keys, self._offset = self._demand_replica(), self._replica_offset
        self._replica = None
        self._unshipped.clear()
        self.up = True

    def _begin(self) -> None:
        """Empty; and so is a replica, once it hears of that."""
        self._keys.clear()
        self._unshipped.extend((key, None) for key in self._replica or ())

    def _expire(self) -> None:
        time = self.time()
        for key in [key for key, entry in self._keys.items() if entry.dead(time)]:
            self._write(key, None)

    def _deadline(self, ttl: int) -> int:
        if ttl < 1:
            raise NotAllowed(f"Redis knows no expiry of {ttl} ms.")
        return self.time() + ttl

    def _write(self, key: str, entry: Entry | None) -> None:
        _put(self._keys, key, entry)
        if self._replica is not None:
            self._unshipped.append((key, entry))

    def _demand_replica(self) -> dict[str, Entry]:
        if self._replica is None:
            raise NotAllowed("This Redis has no replica.")
        return self._replica


def _put(keys: dict[str, Entry], key: str, entry: Entry | None) -> None:
    if entry is None:
        keys.pop(key, None)
    else:
        keys[key] = entry
