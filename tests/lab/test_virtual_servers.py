"""The laboratory's etcd and ZooKeeper to the millisecond, and what is true of all its lock servers."""

from collections.abc import Callable

import pytest

from exercises.lab.servers import NoSuchLease, NotAllowed, SessionOver, Unreachable
from exercises.lab.servers import VirtualEtcd as Etcd
from exercises.lab.servers import VirtualRedis as Redis
from exercises.lab.servers import VirtualZooKeeper as ZooKeeper
from tests.fakes import StandingClock

MILLISECOND = 0.001


@pytest.fixture
def clock() -> StandingClock:
    return StandingClock()


@pytest.fixture
def etcd(clock: StandingClock) -> Etcd:
    return Etcd(clock.now)


@pytest.fixture
def zookeeper(clock: StandingClock) -> ZooKeeper:
    return ZooKeeper(clock.now)


class TestAnEtcdLease:
    @pytest.mark.parametrize(("asked", "granted"), [(0.1, 1), (1.0, 1), (119.2, 120), (120, 120)])
    def test_is_in_whole_seconds_rounded_up(
        self, clock: StandingClock, etcd: Etcd, asked: float, granted: int
    ) -> None:
        """Over at its deadline."""
        lease = etcd.grant(asked)
        etcd.create("k", "b", lease)
        clock.advance(granted - MILLISECOND)
        assert etcd.get("k") == "b"
        clock.advance(MILLISECOND)
        assert etcd.get("k") is None
        assert not etcd.keep_alive(lease)
        assert not etcd.revoke(lease)

    def test_takes_no_key_once_it_is_over(self, etcd: Etcd) -> None:
        """Where the key is there, its lease does not matter."""
        lease = etcd.grant(1)
        etcd.revoke(lease)
        with pytest.raises(NoSuchLease):
            etcd.create("k", "b", lease)
        etcd.create("k", "a", etcd.grant(1))
        assert etcd.create("k", "b", lease).value == "a"

    def test_that_is_kept_alive_has_its_whole_ttl_again(self, clock: StandingClock, etcd: Etcd) -> None:
        """From then on; and so has everybody's once the cluster has begun anew, however long that took."""
        lease = etcd.grant(10)
        clock.advance(9)
        assert etcd.keep_alive(lease)
        clock.advance(9)
        etcd.stop()
        clock.advance(1000)
        etcd.start()
        clock.advance(9)
        assert etcd.keep_alive(lease)


def test_etcd_s_revision_rises_with_every_write_and_with_nothing_else(clock: StandingClock, etcd: Etcd) -> None:
    """A lease that runs out with its keys is one write, without keys none."""
    seen = [etcd.revision]

    def look(done: object) -> None:
        seen.append(etcd.revision)

    lease, bare = etcd.grant(10), etcd.grant(10)
    look(etcd.create("k", "b", lease))
    look(etcd.create("l", "b", lease))
    look(etcd.create("k", "a", bare))
    look(etcd.keep_alive(lease))
    clock.advance(10)
    look(etcd.get("k"))
    assert seen == [1, 2, 3, 3, 3, 4]
    assert etcd.create("k", "a", etcd.grant(1)).revision == 5


class TestAZooKeeperSession:
    def test_ends_after_its_timeout_unless_it_is_heard_of(self, clock: StandingClock, zookeeper: ZooKeeper) -> None:
        """Alive at its deadline; a question will do for a heartbeat; its nodes go with it and nobody else's do."""
        silent, asking, beating = (zookeeper.open(10) for _ in range(3))
        for session in (silent, asking, beating):
            zookeeper.create(session, "/l/n-", str(session))
        clock.advance(10)
        zookeeper.children(asking, "/l")
        zookeeper.keep_alive(beating)
        clock.advance(MILLISECOND)
        assert zookeeper.children(asking, "/l") == ["n-0000000001", "n-0000000002"]
        for question in (zookeeper.keep_alive, lambda session: zookeeper.get(session, "/l")):
            with pytest.raises(SessionOver):
                question(silent)
        clock.advance(10 - MILLISECOND)
        zookeeper.keep_alive(beating)

    def test_that_is_closed_is_over_at_once(self, zookeeper: ZooKeeper) -> None:
        """Twice is once."""
        one, other = zookeeper.open(10), zookeeper.open(10)
        zookeeper.create(one, "/l/n-", "v")
        zookeeper.close(one)
        zookeeper.close(one)
        assert zookeeper.children(other, "/l") == []
        with pytest.raises(SessionOver):
            zookeeper.keep_alive(one)

    def test_has_its_whole_timeout_again_where_the_server_begins_anew(
        self, clock: StandingClock, zookeeper: ZooKeeper
    ) -> None:
        """However long it was down."""
        session = zookeeper.open(10)
        clock.advance(9)
        zookeeper.stop()
        clock.advance(1000)
        zookeeper.start()
        clock.advance(10)
        zookeeper.keep_alive(session)

    def test_that_ended_before_the_server_did_stays_over(
        self, clock: StandingClock, zookeeper: ZooKeeper, etcd: Etcd
    ) -> None:
        """Though nobody had asked; and so with etcd's leases."""
        session, lease = zookeeper.open(10), etcd.grant(10)
        clock.advance(11)
        for server in (zookeeper, etcd):
            server.stop()
            server.start()
        with pytest.raises(SessionOver):
            zookeeper.keep_alive(session)
        assert not etcd.keep_alive(lease)


class TestAZooKeeperNode:
    def test_is_a_child_of_its_parent_alone(self, zookeeper: ZooKeeper) -> None:
        """Parents are made on the way, and stay when there is nothing left below them."""
        session, witness = zookeeper.open(10), zookeeper.open(10)
        zookeeper.create(session, "/a/b/n-", "v")
        zookeeper.close(session)
        assert [zookeeper.children(witness, path) for path in ("/", "/a", "/a/b", "/c")] == [["a"], ["b"], [], []]

    def test_s_number_begins_anew_with_its_parent_and_its_czxid_does_not(self, zookeeper: ZooKeeper) -> None:
        """Numbers are never used twice under one parent; deleting it starts them over."""
        session = zookeeper.open(10)
        first, second = (zookeeper.create(session, "/l/n-", "v") for _ in range(2))
        assert zookeeper.delete(session, first.path)
        third = zookeeper.create(session, "/l/n-", "v")
        assert zookeeper.delete(session, second.path)
        assert zookeeper.delete(session, third.path)
        assert zookeeper.delete(session, "/l")
        fourth = zookeeper.create(session, "/l/n-", "v")
        made = (first, second, third, fourth)
        assert [node.path[-1] for node in made] == ["0", "1", "2", "0"]
        assert first.czxid < second.czxid < third.czxid < fourth.czxid

    def test_with_others_below_it_is_not_deleted(self, zookeeper: ZooKeeper) -> None:
        """Nor is the root."""
        session = zookeeper.open(10)
        zookeeper.create(session, "/l/n-", "v")
        for path in ("/l", "/"):
            with pytest.raises(NotAllowed, match="not empty"):
                zookeeper.delete(session, path)

    def test_that_is_ephemeral_has_none_below_it(self, zookeeper: ZooKeeper) -> None:
        """They would outlive it."""
        session = zookeeper.open(10)
        made = zookeeper.create(session, "/l/n-", "v")
        with pytest.raises(NotAllowed, match="ephemeral"):
            zookeeper.create(session, f"{made.path}/n-", "v")
        assert zookeeper.children(session, made.path) == []


@pytest.mark.parametrize(
    "question",
    [
        lambda now: (server := Redis(now), lambda: server.get("k")),
        lambda now: (server := Etcd(now), lambda: server.get("k")),
        lambda now: (server := ZooKeeper(now), lambda: server.open(10)),
    ],
    ids=["redis", "etcd", "zookeeper"],
)
def test_a_server_that_is_down_was_not_asked(clock: StandingClock, question: Callable[..., tuple]) -> None:
    """It says so, and answers again once it is up."""
    server, ask = question(clock.now)
    server.up = False
    with pytest.raises(Unreachable, match="is down"):
        ask()
    server.up = True
    ask()
    server.stop()
    with pytest.raises(Unreachable):
        ask()
    server.start()
    ask()
