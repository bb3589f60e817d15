"""An etcd cluster, as one that answers or does not."""

import math
from dataclasses import dataclass, field

from exercises.lab.servers.machine import Machine, NoSuchLease, Now


@dataclass(frozen=True)
class Transaction:
    """What create-if-absent came to: the store's revision that made the key, now or earlier, and what it holds."""

    succeeded: bool
    revision: int
    value: str


@dataclass
class _Lease:
    ttl: int  # milliseconds, as the deadline
    deadline: int
    keys: list[str] = field(default_factory=list)


class VirtualEtcd(Machine):
    """Leases are in whole seconds, rounded up, and at least one. Every transaction that writes has a revision of its
    own, the one that removes a lease's keys included; a lease without keys has none to write.

    Leases run by a clock that never steps. Here one is over at its deadline exactly, on the real server at the next
    of its looks after that, within a second. Whoever leads the cluster after `start` gives every lease its whole ttl
    anew; the data stays.
    """

    name = "etcd"

    def __init__(self, now: Now) -> None:
        super().__init__(now)
        self.revision = 1
        self._keys: dict[str, Transaction] = {}
        self._leases: dict[int, _Lease] = {}
        self._granted = 0

    def grant(self, ttl: float) -> int:
        """A new lease's id. `ttl` in seconds."""
        self._asked()
        self._granted += 1
        whole = max(1, math.ceil(ttl)) * 1000
        self._leases[self._granted] = _Lease(whole, self.time() + whole)
        return self._granted

    def create(self, key: str, value: str, lease: int) -> Transaction:
        """If there is no such key, put it with this lease, else read it. Raises NoSuchLease where it would be put."""
        self._asked()
        if key in self._keys:
            return self._keys[key]
        if lease not in self._leases:
            raise NoSuchLease("The lease is over.")
        self.revision += 1
        self._keys[key] = Transaction(False, self.revision, value)
        self._leases[lease].keys.append(key)
        return Transaction(True, self.revision, value)

    def keep_alive(self, lease: int) -> bool:
        """Its whole ttl from now on. False: it is over."""
        self._asked()
        if lease not in self._leases:
            return False
        self._renew(self._leases[lease])
        return True

    def revoke(self, lease: int) -> bool:
        """End it, and remove its keys. False: it was over."""
        self._asked()
        if lease not in self._leases:
            return False
        self._end(lease)
        return True

    def get(self, key: str) -> str | None:
        self._asked()
        return self._keys[key].value if key in self._keys else None

    def deadlines(self) -> list[int]:
        return sorted({lease.deadline for lease in self._leases.values()})

    def _expire(self) -> None:
        """In the order in which they ran out: each that had keys is a write of its own."""
        time = self.time()
        over = [(lease.deadline, name) for name, lease in self._leases.items() if lease.deadline <= time]
        for _, name in sorted(over):
            self._end(name)

    def _begin(self) -> None:
        for lease in self._leases.values():
            self._renew(lease)

    def _renew(self, lease: _Lease) -> None:
        lease.deadline = self.time() + lease.ttl

    def _end(self, name: int) -> None:
        lease = self._leases.pop(name)
        if lease.keys:
            self.revision += 1
        for key in lease.keys:
            del self._keys[key]
