"""The locks over etcd and over ZooKeeper."""

from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

from etcd3gw.client import Etcd3Client
from etcd3gw.lease import Lease as Granted
from etcd3gw.lock import Lock as TheirLock
from kazoo.client import KazooClient

from bench.locks.contest import Race
from bench.locks.redises import acquired, was_refused
from bench.locks.world import HELD, JOB, TTL, World
from sweeper.locks import LOCKS
from sweeper.locks.live.etcd import _create_if_absent


def etcd(world: World) -> Iterator[Race]:
    """The floor's client and theirs are etcd3gw's, as it sets itself up once it is told the version of the API."""
    holder, ours = world.ports("etcd", "box-b"), world.ports("etcd")
    at = urlsplit(world.etcd)
    client = Etcd3Client(at.hostname, at.port, timeout=2, api_path="/v3/")
    world.closing.callback(client.session.close)

    def floor() -> bool:
        lease = client.lease(int(TTL))
        created = client.transaction(_create_if_absent("floor", "box-a", lease.id))
        return created["succeeded"] and Granted(lease.id, client).revoke()

    def refused() -> bool:
        return client.get("held") == [b"box-b"]

    mine = TheirLock("theirs", int(TTL), client=client)
    peers = {"etcd3gw": lambda: mine.acquire() and mine.release()}
    yield Race("etcd", "acquired", "grant, transaction, revoke", floor, acquired("etcd", ours), peers)
    client.put("held", "box-b")
    lease = LOCKS["etcd"](holder).acquire(JOB, HELD)
    TheirLock("theirs", int(HELD), client=client).acquire()
    peers = {"etcd3gw": lambda: not mine.acquire()}
    yield Race("etcd", "refused", "range", refused, was_refused("etcd", ours), peers)
    lease.release()


def zookeeper(world: World) -> Iterator[Race]:
    """The floor's client is ours; theirs is another of the same kind, as anybody would make it."""
    holder, ours = world.ports("zookeeper", "box-b"), world.ports("zookeeper")
    client = ours.zookeeper._open()
    client.ensure_path("/floor")
    client.ensure_path("/held")
    client.create("/held/a-", b"box-b", sequence=True)

    def floor() -> bool:
        path, stat = client.create("/floor/a-", b"box-a", ephemeral=True, sequence=True, include_data=True)
        standing = client.get_children("/floor")
        return client.delete(path) and len(standing) == 1 and stat.czxid > 0

    def refused() -> bool:
        path, _ = client.create("/held/a-", b"box-a", ephemeral=True, sequence=True, include_data=True)
        first = min(client.get_children("/held"))
        return client.get(f"/held/{first}")[0] == b"box-b" and client.delete(path)

    theirs, others = (begun(world) for _ in range(2))
    mine = theirs.Lock("/theirs")
    peers = {"kazoo": lambda: mine.acquire(blocking=False) and mine.release()}
    yield Race("zookeeper", "acquired", "create2, get_children, delete", floor, acquired("zookeeper", ours), peers)
    lease = LOCKS["zookeeper"](holder).acquire(JOB, HELD)
    others.Lock("/theirs").acquire()
    peers = {"kazoo": lambda: not mine.acquire(blocking=False)}
    commands = "create2, get_children, get, delete"
    yield Race("zookeeper", "refused", commands, refused, was_refused("zookeeper", ours), peers)
    lease.release()


def begun(world: World) -> Any:
    client = KazooClient(world.zookeeper, timeout=TTL)
    client.start()
    world.closing.callback(client.close)
    world.closing.callback(client.stop)
    return client
