"""An ephemeral sequential node in ZooKeeper. The lowest holds, and the transaction that made it is the token."""

from collections.abc import Sequence
from urllib.parse import quote

from sweeper.locks.base import Lease, Lock, Refusal, Release, Released, Renewal
from sweeper.locks.ports import LockUnavailable, Node, Ports

PREFIX = "/marlow/locks/"
DIGITS = 10  # of the sequence number that the server appends


def parent_of(name: str) -> str:
    """Percent-encoded, so that no name reaches into another's nodes; never empty or a dot, as no path may end."""
    return PREFIX + "=" + quote(name, safe="")


class ZooKeeperLease(Lease):
    def __init__(self, ports: Ports, node: Node) -> None:
        super().__init__(ports.box, token=node.czxid)
        self.zookeeper, self.node = ports.zookeeper, node

    def believes(self) -> bool:
        """Whether the session that made the node is still connected. While it is not, it may be over already."""
        return self.zookeeper.session() == self.node.session

    def let_go(self) -> Release:
        """The node's name is this acquisition's own, so it is gone where the session that made it is."""
        try:
            deleted = self.zookeeper.delete(self.node.path)
        except LockUnavailable:
            return Release(Released.UNKNOWN)
        return Release(Released.OURS if deleted else Released.NOT_OURS, deleted=deleted)


class ZooKeeperLock(Lock):
    """Promises every box that asks this ensemble one holder at a time, for as long as its session lives, and with
    each acquisition a token greater than any before. A majority of the servers agrees to every write, so the promise
    outlives the loss of any minority; and every write costs a round of that consensus.

    The session is kept alive by its client's own heartbeats, so a long run keeps its lock. It ends by the ensemble's
    clock: a holder that is killed keeps the others out for the session's timeout, which is the ttl, within the bounds
    that the servers set. Here the session is watched: kazoo's own lock goes on saying that it is held after the
    session was lost. Whoever is refused stands there for a moment too, and a box that comes just then is refused by
    that one's node, although the holder may have left meanwhile.

    Broken by a pause of the holder past that timeout: the session ends, the next box is granted the lock, and the
    first one wakes up in the middle of a write. A write that is on its way already is stopped by nothing but the
    fence, which compares the token. That token is the node's czxid: the sequence number in its name begins anew
    whenever the parent node is made anew. Servers made anew without their data begin to count anew.
    """

    name = "zookeeper"
    excludes = True
    mints_token = True
    expires = False
    outlives_holder = True
    renewal = Renewal.ALWAYS
    server = "zookeeper"

    def acquire(self, name: str, ttl: float) -> Lease | Refusal:
        parent, own = parent_of(name), self.ports.new_value()
        try:
            return self._stand(parent, own)
        except BaseException:
            self._leave(parent, own)
            raise

    def demand_server(self, name: str) -> None:
        self.ports.zookeeper.children(parent_of(name))

    def _stand(self, parent: str, own: str) -> Lease | Refusal:
        zookeeper = self.ports.zookeeper
        # To look first would be cheaper for those who are refused, but the server that is asked may be behind the
        # others, and refuse a lock that was just let go. Once it has made our node it is not.
        node = zookeeper.create(f"{parent}/{own}-", f"{self.ports.box}:{own}")
        standing, ours = _in_turn(node.beside), node.path.rpartition("/")[2]
        if zookeeper.session() != node.session or ours not in standing:
            raise LockUnavailable("The ZooKeeper session was lost while the lock was being taken.")
        if standing[0] == ours:
            return ZooKeeperLease(self.ports, node)
        holder = zookeeper.get(f"{parent}/{standing[0]}") or ""
        zookeeper.delete(node.path)
        return Refusal(holder.rpartition(":")[0])

    def _leave(self, parent: str, own: str) -> None:
        """Delete our node, which may have been made by a request that was not answered. Where that can't be done it
        goes with the session.
        """
        try:
            for each in self.ports.zookeeper.children(parent):
                if each.startswith(f"{own}-"):
                    self.ports.zookeeper.delete(f"{parent}/{each}")
        except LockUnavailable:
            return


def _in_turn(nodes: Sequence[str]) -> list[str]:
    """Those that are nodes of this lock, in the order in which they were made."""
    return sorted((each for each in nodes if each[-DIGITS:].isdecimal()), key=lambda each: each[-DIGITS:])
