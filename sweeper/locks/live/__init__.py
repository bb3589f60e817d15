"""The ports over real servers, opened for one run and closed behind it."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
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
    seconds), for the servers whose sessions have one. Raises LockUnavailable.
    """
    plain = replace(plain, postgres=LivePostgres(), spawn=spawning(plain.clock))
    match server:
        case "redis":
            redis = LiveRedis(at.redis, plain.clock)
            try:
                yield replace(plain, redis=redis)
            finally:
                redis.close()
        case "redlock" if at.redlock:
            nodes = LiveRedisNodes(at.redlock, plain.clock, at.redlock_timeout)
            try:
                yield replace(plain, nodes=nodes)
            finally:
                nodes.close()
        case "etcd":
            from sweeper.locks.live.etcd import LiveEtcd

            etcd = LiveEtcd(at.etcd, plain.clock, timeout=min(1.0, plain.clock.real(ttl) / 6))
            try:
                yield replace(plain, etcd=etcd)
            finally:
                etcd.close()
        case "zookeeper":
            from sweeper.locks.live.zookeeper import LiveZooKeeper

            zookeeper = LiveZooKeeper(at.zookeeper, plain.clock, ttl)
            try:
                yield replace(plain, zookeeper=zookeeper)
            finally:
                zookeeper.close()
        case _:
            yield plain
