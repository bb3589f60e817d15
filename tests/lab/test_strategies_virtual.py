"""The locks themselves, unchanged, over the laboratory's servers: what they promise there to the second."""

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count

import pytest

from exercises.lab.servers import VirtualEtcd, VirtualRedis, VirtualZooKeeper
from exercises.scenarios.ports import EtcdPort, RedisNodesPort, RedisPort, ZooKeeperPort
from marlow.clock import StandingClock
from sweeper.locks import LOCKS, build
from sweeper.locks.base import Lease, Lock, Refusal, Release, Released
from sweeper.locks.ports import Beside, LockUnavailable, Ports
from tests.fakes import WEDNESDAY

TTL = 120.0
MILLISECOND = 0.001

every = pytest.mark.parametrize("name", ["redis-naive", "redis-token", "redlock", "etcd", "zookeeper"])
on_redis = pytest.mark.parametrize("name", ["redis-naive", "redis-token", "redlock"])
minting = pytest.mark.parametrize("name", ["etcd", "zookeeper"])


@dataclass
class World:
    """One clock, one of each server, and what was asked of them, step by step."""

    clock: StandingClock = field(default_factory=lambda: StandingClock(WEDNESDAY))
    steps: list[tuple[str, tuple[str, ...], bool]] = field(default_factory=list)
    beside: list[Callable[[Beside], None]] = field(default_factory=list)

    def __post_init__(self) -> None:
        now = self.clock.now
        self.redis, self.nodes = VirtualRedis(now), [VirtualRedis(now) for _ in range(5)]
        self.etcd, self.zookeeper = VirtualEtcd(now), VirtualZooKeeper(now)
        self.values = count(1)

    def box(self, name: str, box: str = "box-b") -> Lock:
        """A lock as this box builds it. What it starts beside the run is not let go on here: the box is paused."""
        ports = Ports(
            clock=self.clock,
            box=box,
            run="run",
            every=TTL,
            new_value=lambda: str(next(self.values)),
            redis=RedisPort(self.redis, self.step),
            nodes=RedisNodesPort(self.nodes, self.step),
            etcd=EtcdPort(self.etcd, self.step),
            zookeeper=ZooKeeperPort(self.zookeeper, self.step, TTL),
            spawn=self.spawn,
        )
        return build(name, ports)

    def step(self, label: str, touches: tuple[str, ...], writes: bool) -> None:
        self.steps.append((label, touches, writes))

    def spawn(self, work: Callable[[Beside], None]) -> Callable[[], None]:
        self.beside.append(work)
        return lambda: None


@pytest.fixture
def world() -> World:
    return World()


def leased(answer: Lease | Refusal) -> Lease:
    assert isinstance(answer, Lease), answer
    return answer


class For:
    """Waits so many times beside a run, each time so long by the clock, and is then told to end."""

    def __init__(self, clock: StandingClock, times: int) -> None:
        self.clock, self.times = clock, times

    def wait(self, seconds: float) -> bool:
        self.times -= 1
        if self.times >= 0:
            self.clock.sleep(seconds)
        return self.times < 0


@every
def test_one_is_told_yes_and_the_other_no_until_it_is_let_go(world: World, name: str) -> None:
    """And who has it."""
    one, other = world.box(name), world.box(name, "box-a")
    lease = leased(one.acquire("sweeper", TTL))
    assert lease.still_held()
    assert other.acquire("sweeper", TTL) == Refusal("box-b")
    assert leased(other.acquire("another", TTL)).release().deleted
    assert lease.release().deleted
    assert leased(other.acquire("sweeper", TTL)).release().deleted


@every
def test_a_box_that_is_gone_keeps_the_others_out_for_its_ttl(world: World, name: str) -> None:
    """Redis a millisecond longer, and so a ZooKeeper session; etcd to the second."""
    other = world.box(name, "box-a")
    leased(world.box(name).acquire("sweeper", TTL))
    world.clock.sleep(TTL - MILLISECOND)
    assert other.acquire("sweeper", TTL) == Refusal("box-b")
    world.clock.sleep(2 * MILLISECOND)
    leased(other.acquire("sweeper", TTL))


@every
def test_a_holder_that_wakes_too_late_lets_nothing_go(world: World, name: str) -> None:
    """Except with the lock that shipped, which deletes the other's key."""
    first = leased(world.box(name).acquire("sweeper", TTL))
    world.clock.sleep(TTL + MILLISECOND)
    second = leased(world.box(name, "box-a").acquire("sweeper", TTL))
    late = first.release()
    assert late.released is not Released.OURS
    assert late.deleted == (name == "redis-naive")
    assert isinstance(world.box(name, "box-c").acquire("sweeper", TTL), Lease) == (name == "redis-naive")
    assert second.still_held()


@on_redis
def test_a_holder_knows_by_its_own_clock_that_its_lease_is_over(world: World, name: str) -> None:
    """Redlock's a little earlier than its servers."""
    lease = leased(world.box(name).acquire("sweeper", TTL))
    world.clock.sleep(TTL * 0.98)
    assert lease.still_held()
    world.clock.sleep(TTL * 0.02 + MILLISECOND)
    assert not lease.still_held()


def test_a_zookeeper_session_is_believed_in_until_the_server_says_that_it_is_over(world: World) -> None:
    """The heartbeat learns it, and begins another session; the lease was the old one's."""
    lease = leased(world.box("zookeeper").acquire("sweeper", TTL))
    world.clock.sleep(TTL + MILLISECOND)
    assert lease.still_held()
    port = lease.zookeeper
    assert not port.keep_alive()
    assert not lease.still_held()
    assert port.session() not in ("", lease.node.session)
    assert lease.release() == Release(Released.NOT_OURS)


def test_heartbeats_keep_a_zookeeper_session(world: World) -> None:
    """For as long as they come. Before the first question there is none to keep, and after `close` none again."""
    port = ZooKeeperPort(world.zookeeper, world.step, TTL)
    assert not port.keep_alive()
    made = port.create("/l/n-", "v")
    for _ in range(10):
        world.clock.sleep(TTL / 3)
        assert port.keep_alive()
    assert port.session() == made.session
    port.close()
    assert port.session() == ""
    assert not port.keep_alive()
    assert ZooKeeperPort(world.zookeeper, world.step, TTL).children("/l") == []


def test_a_heartbeat_that_is_under_way_while_its_session_is_closed_begins_no_other(world: World) -> None:
    """Nobody would ever close that."""

    def meanwhile(label: str, touches: tuple[str, ...], writes: bool) -> None:
        if "heartbeat" in label:
            port.close()

    port = ZooKeeperPort(world.zookeeper, meanwhile, TTL)
    port.children("/")
    assert not port.keep_alive()
    assert port.session() == ""


def test_a_box_without_a_connection_believes_nothing(world: World) -> None:
    """Until it has one again, in the same session."""
    lease = leased(world.box("zookeeper").acquire("sweeper", TTL))
    world.zookeeper.up = False
    assert not lease.zookeeper.keep_alive()
    assert not lease.still_held()
    assert lease.release() == Release(Released.UNKNOWN)
    world.zookeeper.up = True
    assert lease.zookeeper.keep_alive()
    assert lease.still_held()


def test_an_etcd_lease_is_kept_alive_beside_the_run(world: World) -> None:
    """Through ten times its ttl; a third of it after the last renewal it is still there."""
    lease = leased(world.box("etcd").acquire("sweeper", TTL))
    (renewing,) = world.beside
    renewing(For(world.clock, times=30))
    assert lease.still_held()
    assert world.box("etcd", "box-a").acquire("sweeper", TTL) == Refusal("box-b")
    world.clock.sleep(TTL)
    renewing(For(world.clock, times=1))
    assert lease.lost


@minting
def test_a_token_is_greater_than_any_before(world: World, name: str) -> None:
    """Whoever holds, by whatever name, and however the lease before it ended."""
    tokens = []
    for turn in range(12):
        lease = leased(world.box(name, f"box-{turn % 2}").acquire(f"job-{turn % 3}", TTL))
        tokens.append(lease.token)
        if turn % 2:
            lease.release()
        else:
            world.clock.sleep(TTL + MILLISECOND)
    assert tokens == sorted(set(tokens))


@every
def test_a_server_that_is_down_is_an_error_and_never_a_grant(world: World, name: str) -> None:
    """And a release then says that it does not know."""
    box = world.box(name)
    lease = leased(box.acquire("sweeper", TTL))
    for server in (world.redis, *world.nodes[:3], world.etcd, world.zookeeper):
        server.up = False
    with pytest.raises(LockUnavailable):
        world.box(name, "box-a").acquire("another", TTL)
    assert lease.release() == Release(Released.UNKNOWN)


def test_redlock_goes_on_with_two_of_five_down_and_falls_to_one_clock_then(world: World) -> None:
    """The holder had a bare majority; the other two come back, and one server's clock steps by the ttl."""
    for server in world.nodes[:2]:
        server.stop()
    leased(world.box("redlock").acquire("sweeper", TTL))
    for server in world.nodes[:2]:
        server.start()
    assert world.box("redlock", "box-a").acquire("sweeper", TTL) == Refusal("box-b")
    world.nodes[2].step(TTL + MILLISECOND)
    leased(world.box("redlock", "box-a").acquire("sweeper", TTL))


def test_every_question_is_one_step_before_it_is_asked(world: World) -> None:
    """In words, with what it touches, and whether it may change that; five Redises in one."""
    for name in ("redis-token", "redlock", "etcd", "zookeeper"):
        leased(world.box(name).acquire("sweeper", TTL)).release()
    assert world.steps == [
        ("redis SET NX GET lock:sweeper", ("redis:lock:sweeper",), True),
        ("redis compare-and-delete lock:sweeper", ("redis:lock:sweeper",), True),
        ("redlock SET NX GET lock:sweeper", ("redlock:lock:sweeper",), True),
        ("redlock compare-and-delete lock:sweeper", ("redlock:lock:sweeper",), True),
        ("etcd get /marlow/locks/sweeper", ("etcd",), False),
        ("etcd grant a lease", ("etcd",), True),
        ("etcd create /marlow/locks/sweeper", ("etcd",), True),
        ("etcd revoke the lease", ("etcd",), True),
        ("zookeeper open a session", ("zookeeper",), True),
        ("zookeeper create /marlow/locks/=sweeper/4-", ("zookeeper",), True),
        ("zookeeper children /marlow/locks/=sweeper", ("zookeeper",), False),
        ("zookeeper delete /marlow/locks/=sweeper/4-0000000000", ("zookeeper",), True),
    ]


def test_a_step_comes_before_the_answer(world: World) -> None:
    """What another box does at it is seen by the question."""
    server = VirtualRedis(world.clock.now)
    port = RedisPort(server, lambda label, touches, writes: server.set_or_get("k", "another", 1000))
    assert port.set_or_get("k", "ours", TTL) == "another"


def test_the_names_are_locks() -> None:
    """The ones that stand on a server of their own, all of them."""
    assert {name for name, lock in LOCKS.items() if lock.server} == set(every.args[1])
