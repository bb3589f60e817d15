"""The ports over real servers, opened for one run and closed behind it."""

import os
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace

from sweeper.locks.live.nodes import LiveRedisNodes
from sweeper.locks.live.postgres import LivePostgres
from sweeper.locks.live.redis import LiveRedis
from sweeper.locks.live.threads import spawning
from sweeper.locks.ports import Ports

__all__ = ["Addresses", "LivePostgres", "LiveRedis", "LiveRedisNodes", "fresh_value", "open_ports", "spawning"]


def fresh_value() -> str:
    """For `Ports.new_value`: 128 random bits of the operating system's, as text. A UUID takes five times as long."""
    return os.urandom(16).hex()


@dataclass(frozen=True)
class Addresses:
    """Where the lock servers are; only the one that the lock stands on is ever asked. Timeouts in real seconds."""

    redis: str = ""
    redlock: tuple[str, ...] = ()
    redlock_timeout: float = 0.2
    etcd: tuple[str, ...] = ()
    zookeeper: str = ""


@contextmanager
def open_ports(server: str, plain: Ports, at: Addresses, ttl: float) -> Iterator[Ports]:
    """These ports with what a lock standing on `server` needs: its `Lock.server`. `ttl` is the lease's (virtual
    seconds), for the servers whose sessions have one. Raises LockUnavailable. A server without an address is left
    absent, and whoever asks it learns which setting names one.
    """
    plain = replace(plain, postgres=LivePostgres(), spawn=spawning(plain.clock))
    match server:
        case "redis" if at.redis:
            with closing(LiveRedis(at.redis, plain.clock)) as redis:
                yield replace(plain, redis=redis)
        case "redlock" if at.redlock:
            with closing(LiveRedisNodes(at.redlock, plain.clock, at.redlock_timeout)) as nodes:
                yield replace(plain, nodes=nodes)
        case "etcd" if at.etcd:
            from sweeper.locks.live.etcd import LiveEtcd  # here, for only who uses it should wait for its client

            timeout = min(1.0, plain.clock.real(ttl) / 6)
            with closing(LiveEtcd(at.etcd, plain.clock, timeout)) as etcd:
                yield replace(plain, etcd=etcd)
        case "zookeeper" if at.zookeeper:
            from sweeper.locks.live.zookeeper import LiveZooKeeper  # likewise

            with closing(LiveZooKeeper(at.zookeeper, plain.clock, ttl)) as zookeeper:
                yield replace(plain, zookeeper=zookeeper)
        case _:
            yield plain
