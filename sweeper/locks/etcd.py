"""A key in etcd that goes with its lease. The revision that made it is the token."""

from datetime import datetime
from urllib.parse import quote

from sweeper.locks.base import Lease, Lock, Refusal, Release, Released, Renewal
from sweeper.locks.ports import LockUnavailable, Ports
from sweeper.locks.renewal import keep

PREFIX = "/marlow/locks/"


def key_of(name: str) -> str:
    """Percent-encoded, so that no name reaches into another's keys."""
    return PREFIX + quote(name, safe="")


class EtcdLease(Lease):
    def __init__(self, ports: Ports, granted: int, token: int, deadline: datetime) -> None:
        super().__init__(ports.box, clock=ports.clock, deadline=deadline, token=token)
        self.etcd, self.granted = ports.etcd, granted

    def prolong(self, ttl: float) -> bool:
        """Asks for what was granted; etcd knows no other."""
        return self.etcd.keep_alive(self.granted)

    def let_go(self) -> Release:
        try:
            revoked = self.etcd.revoke(self.granted)
        except LockUnavailable:
            return Release(Released.UNKNOWN)
        return Release(Released.OURS if revoked else Released.NOT_OURS, deleted=revoked)


class EtcdLock(Lock):
    """Promises every box that asks this cluster one holder at a time, for as long as its lease is kept alive, and
    with each acquisition a token greater than any before. A majority of the members agrees to every answer, so the
    promise outlives the loss of any minority, the leader included; and every operation costs a round of that
    consensus.

    The lease is kept alive beside the run, so a long run keeps its lock. It runs out by the cluster's clock, not by
    ours: a holder that is killed keeps the others out for its ttl, in whole real seconds rounded up. A new leader
    gives every lease its whole ttl anew.

    A look comes first: to be refused costs one read, agreed to by a majority as well, and writes nothing. Boxes that
    look in the same moment and find nobody are told apart by the transaction.

    Broken by a pause of the holder past its ttl: the lease runs out, the next box is granted the lock, and the first
    one wakes up in the middle of a write. Asked again, its lease says that it is over, by our own clock; a write that
    is on its way already is stopped by nothing but the fence, which compares the token. A cluster that is made anew
    without its data begins to count anew.
    """

    name = "etcd"
    excludes = True
    mints_token = True
    expires = True
    outlives_holder = True
    renewal = Renewal.ALWAYS
    server = "etcd"

    def acquire(self, name: str, ttl: float) -> Lease | Refusal:
        key, value = key_of(name), f"{self.ports.box}:{self.ports.new_value()}"
        if holder := self.ports.etcd.get(key):
            return _refusal(holder)
        deadline = self.ports.deadline(ttl)
        granted = self.ports.etcd.grant(ttl)
        try:
            created = self.ports.etcd.create(key, value, granted)
            if created.done:
                return keep(EtcdLease(self.ports, granted, created.revision, deadline), ttl, self.ports)
        except BaseException:
            self._give_back(granted)
            raise
        self._give_back(granted)
        return _refusal(created.value)

    def demand_server(self, name: str) -> None:
        self.ports.etcd.get(key_of(name))

    def _give_back(self, granted: int) -> None:
        """The lease, and the key if it was made all the same. Where that can't be asked, both end with the ttl."""
        try:
            self.ports.etcd.revoke(granted)
        except LockUnavailable:
            return


def _refusal(value: str) -> Refusal:
    """By the box that the key's value names."""
    return Refusal(value.rpartition(":")[0])
