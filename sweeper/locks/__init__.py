"""The lock strategies, by the name that `SWEEPER_LOCK` gives them."""

from sweeper.locks.base import Lock
from sweeper.locks.etcd import EtcdLock
from sweeper.locks.none import NoLock
from sweeper.locks.ports import Ports
from sweeper.locks.postgres_advisory import PostgresAdvisory
from sweeper.locks.redis_naive import RedisNaive
from sweeper.locks.redis_token import RedisToken
from sweeper.locks.redlock import Redlock
from sweeper.locks.skip_locked import SkipLocked
from sweeper.locks.slot import Slot
from sweeper.locks.zookeeper import ZooKeeperLock

LOCKS: dict[str, type[Lock]] = {
    strategy.name: strategy
    for strategy in (
        *(NoLock, RedisNaive, RedisToken, Slot, PostgresAdvisory, SkipLocked),
        *(Redlock, EtcdLock, ZooKeeperLock),
    )
}


def build(name: str, ports: Ports) -> Lock:
    """The strategy of this name over these ports. Raises KeyError for a name that is not in the registry."""
    return LOCKS[name](ports)
