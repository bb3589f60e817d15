"""The locks over one Redis and over five."""

from collections.abc import Iterator
from typing import Any

import pottery
import redis
import redis_lock
from redis.backoff import NoBackoff
from redis.connection import Connection, parse_url
from redis.retry import Retry

from bench.locks.contest import Race, Try
from bench.locks.world import HELD, JOB, TTL, World
from sweeper.locks import LOCKS
from sweeper.locks.live.questions import COMPARE_AND_DELETE, DELETE_IF_EQUAL, pack
from sweeper.locks.ports import Ports

LIVES = int(TTL * 1000)
SHA = DELETE_IF_EQUAL.sha


def one(world: World) -> Iterator[Race]:
    """`redis-naive` and `redis-token`."""
    holder, ours = world.ports("redis", "box-b"), world.ports("redis")
    client = redis.Redis.from_url(world.redis, decode_responses=True, retry=Retry(NoBackoff(), 0))
    client.script_load(COMPARE_AND_DELETE)
    theirs = redis.Redis.from_url(world.redis)

    def naive() -> bool:
        return client.set("floor", "box-a", nx=True, px=LIVES) and client.delete("floor")

    def token() -> bool:
        return client.set("floor", "box-a", nx=True, px=LIVES) and client.evalsha(SHA, 1, "floor", "box-a")

    def refused() -> bool:
        return not client.set("held", "box-a", nx=True, px=LIVES) and client.get("held") == "box-b"

    peers = libraries(theirs)
    commands = {"redis-naive": "SET NX PX, DEL", "redis-token": "SET NX PX, EVALSHA"}
    for name, floor in (("redis-naive", naive), ("redis-token", token)):
        yield Race(name, "acquired", commands[name], floor, acquired(name, ours), peers)
    client.set("held", "box-b")
    held = libraries_refused(theirs)
    for name in commands:
        lease = LOCKS[name](holder).acquire(JOB, HELD)
        yield Race(name, "refused", "SET NX PX, GET", refused, was_refused(name, ours), held)
        lease.release()


def five(world: World) -> Iterator[Race]:
    """`redlock`. The floor sends each command to all five before it reads an answer, over connections of redis-py's
    that are set up as ours are; each command is packed once for all.
    """
    holder, ours = world.ports("redlock", "box-b"), world.ports("redlock")
    connections = [connected(url) for url in world.five]
    theirs = {redis.Redis.from_url(url) for url in world.five}

    def all_answer(*words: str | int) -> list[object]:
        packed = pack(*words)
        for connection in connections:
            connection.send_packed_command((packed,), False)
        return [connection.read_response() for connection in connections]

    def given() -> bool:
        told = all_answer("SET", "floor", "box-a", "NX", "PX", LIVES)
        return told == [b"OK"] * 5 and all_answer("EVALSHA", SHA, 1, "floor", "box-a") == [1] * 5

    def refused() -> bool:
        told = all_answer("SET", "held", "box-a", "NX", "PX", LIVES)
        return told == [None] * 5 and all_answer("GET", "held") == [b"box-b"] * 5

    mine, other = (pottery.Redlock(key=JOB, masters=theirs, auto_release_time=HELD) for _ in range(2))
    commands = "five SET NX PX at once, five EVALSHA at once"
    all_answer("SCRIPT", "LOAD", COMPARE_AND_DELETE)
    peers = {"pottery x5": pottery_acquired(mine)}
    yield Race("redlock", "acquired", commands, given, acquired("redlock", ours), peers)
    all_answer("SET", "held", "box-b")
    lease = LOCKS["redlock"](holder).acquire(JOB, HELD)
    mine.acquire()
    peers = {"pottery x5": lambda: not other.acquire(blocking=False)}
    commands = "five SET NX PX at once, five GET at once"
    yield Race("redlock", "refused", commands, refused, was_refused("redlock", ours), peers)
    lease.release()


def connected(url: str) -> Any:
    """A connection of redis-py's own, below its client, as the locks use them."""
    connection: Any = Connection(**parse_url(url), driver_info=None, protocol=2)
    connection.connect()
    return connection


def acquired(name: str, ports: Ports) -> Try:
    lock = LOCKS[name](ports)
    return lambda: lock.acquire(JOB, TTL).release().deleted


def was_refused(name: str, ports: Ports, holder: str = "box-b") -> Try:
    """True where the refusal names the holder, as far as this lock can tell."""
    lock = LOCKS[name](ports)
    return lambda: lock.acquire(JOB, TTL).holder == holder


def libraries(client: redis.Redis) -> dict[str, Try]:
    """Over a client with the defaults that people have; lock objects are made beforehand, as is cheapest for them."""
    redis_py = client.lock("redis-py", timeout=TTL, blocking=False)
    python = redis_lock.Lock(client, "python-redis-lock", expire=int(TTL))
    redlock = pottery.Redlock(key="one", masters={client}, auto_release_time=TTL)
    return {
        "redis-py": lambda: redis_py.acquire() and redis_py.release() is None,
        "python-redis-lock": lambda: python.acquire(blocking=False) and python.release() is None,
        "pottery x1": pottery_acquired(redlock),
    }


def pottery_acquired(lock: pottery.Redlock) -> Try:
    return lambda: lock.acquire(blocking=False) and lock.release() is None


def libraries_refused(client: redis.Redis) -> dict[str, Try]:
    """The same locks, each held by another object of its kind."""
    client.lock("redis-py", timeout=HELD).acquire()
    redis_lock.Lock(client, "python-redis-lock", expire=int(HELD)).acquire()
    pottery.Redlock(key="one", masters={client}, auto_release_time=HELD).acquire()
    redis_py = client.lock("redis-py", timeout=TTL, blocking=False)
    python = redis_lock.Lock(client, "python-redis-lock", expire=int(TTL))
    redlock = pottery.Redlock(key="one", masters={client}, auto_release_time=TTL)
    return {
        "redis-py": lambda: not redis_py.acquire(),
        "python-redis-lock": lambda: not python.acquire(blocking=False),
        "pottery x1": lambda: not redlock.acquire(blocking=False),
    }
