"""The lock servers of the laboratory: small state machines with no thread, no I/O, no chance and no time of their
own. Each is given `now`, and whoever gives it moves it.

They do what the real ones do where a clock, a lease or a session decides; one suite asks both and demands the same
answers.
"""

from exercises.lab.servers.etcd import Transaction, VirtualEtcd
from exercises.lab.servers.machine import NoSuchLease, NotAllowed, NotDone, SessionOver, Unreachable
from exercises.lab.servers.redis import VirtualRedis
from exercises.lab.servers.zookeeper import Made, VirtualZooKeeper

__all__ = [
    "Made",
    "NoSuchLease",
    "NotAllowed",
    "NotDone",
    "SessionOver",
    "Transaction",
    "Unreachable",
    "VirtualEtcd",
    "VirtualRedis",
    "VirtualZooKeeper",
]
