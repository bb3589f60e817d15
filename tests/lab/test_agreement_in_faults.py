"""What is left after a server was lost or began anew: the laboratory's servers agree with the real ones here too."""

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from exercises.lab.servers import VirtualEtcd, VirtualRedis, VirtualZooKeeper
from exercises.scenarios.ports import EtcdPort, RedisPort, ZooKeeperPort
from marlow.clock import RealClock, monotonic, wait_until
from marlow.servers import etcd, zookeeper
from marlow.servers.launcher import Embedded, ServerError
from marlow.servers.redis_pair import RedisPair
from sweeper.locks.live import LiveRedis
from sweeper.locks.live.etcd import LiveEtcd
from sweeper.locks.live.zookeeper import LiveZooKeeper
from sweeper.locks.ports import Redis as Port
from tests.lab.sides import EtcdSide, Script, ZooKeeperSide, demand_agreement, end_session, step
from tests.lab.tempo import LONG, Passing, Standing, Tempo, WholeSeconds
from tests.servers.test_zookeeper import expire

SECONDS = 30  # real ones, that a server has to come up in


def demand(installed: Callable[[], object]) -> None:
    try:
        installed()
    except ServerError as missing:
        pytest.skip(str(missing))


def kill(server: Embedded) -> None:
    assert server.running
    server.running.kill()


class TestAFailover:
    @pytest.fixture
    def pair(self, tmp_path: Path) -> Iterator[RedisPair]:
        pair = RedisPair(tmp_path).start()
        yield pair
        pair.stop()

    @pytest.fixture
    def virtual(self) -> VirtualRedis:
        server = VirtualRedis(Standing(Tempo(1, 1, 1)).clock.now)
        server.add_replica()
        return server

    def test_loses_alike_what_was_not_shipped(self, pair: RedisPair, virtual: VirtualRedis) -> None:
        """A key that was set is gone, one that was deleted is back, and another box's answer is yes."""
        with closing(LiveRedis(pair.url, RealClock())) as master:
            prepare(master)
            pair.master.ask("WAIT", "1", str(1000 * SECONDS))
            pair.hold_back()
            acknowledged = go_on(master)
            pair.promote()
        with closing(LiveRedis(pair.url, RealClock())) as promoted:
            told = acknowledged, look_around(promoted)
        port = RedisPort(virtual, step)
        prepare(port)
        virtual.replicate()
        assert (go_on(port), (virtual.fail_over(), look_around(port))[1]) == told
        assert told == ([None, True, True], ["v", "v", None, None, None])

    def test_to_a_replica_of_a_master_that_began_anew_finds_nothing(
        self, pair: RedisPair, virtual: VirtualRedis
    ) -> None:
        """The replica takes the empty master's word for it."""
        with closing(LiveRedis(pair.url, RealClock())) as master:
            prepare(master)
            pair.master.ask("WAIT", "1", str(1000 * SECONDS))
        kill(pair.master)
        pair.master.start()
        assert wait_until(lambda: pair.replica.ask("DBSIZE") == 0, SECONDS)
        pair.hold_back()
        pair.promote()
        with closing(LiveRedis(pair.url, RealClock())) as promoted:
            told = look_around(promoted)
        port = RedisPort(virtual, step)
        prepare(port)
        virtual.replicate()
        virtual.stop()
        virtual.start()
        virtual.replicate()
        virtual.fail_over()
        assert look_around(port) == told


def prepare(redis: Port) -> None:
    """Three are there, and a fourth no more."""
    for key in ("kept", "deleted", "renewed", "over"):
        assert redis.set_if_absent(key, "v", LONG)
    assert redis.delete("over")


def go_on(redis: Port) -> list[object]:
    """One more is set, one deleted."""
    return [redis.set_or_get("late", "v", LONG), redis.delete("deleted"), redis.expire_if_equal("renewed", "v", LONG)]


def look_around(redis: Port) -> list[object]:
    return [*map(redis.get, ("kept", "deleted", "over", "late")), redis.set_or_get("late", "w", LONG)]


class TestEtcdBegunAnew:
    SCRIPT: Script = [
        *(("grant", 0, "short"), ("create", 0, "k", "v", 0), ("grant", 0, "long"), ("create", 0, "l", "v", 1)),
        ("wait",),
        *(("off",), ("get", 0, "k"), ("on",)),
        ("wait",),
        ("get", 0, "k"),
        ("wait",),
        *(("get", 0, "k"), ("revoke", 0, 0), ("get", 0, "l"), ("create", 0, "k", "v", 1)),
    ]

    def test_gives_leases_their_whole_ttl_alike(self, tmp_path: Path) -> None:
        """What was about to run out lives on for as long again; data and revisions go on."""
        demand(etcd.binary)
        server = etcd.EmbeddedEtcd(tmp_path).start()

        class RealSide(EtcdSide):
            def off(self) -> None:
                kill(server)

            def on(self) -> None:
                """However long it was down: no lease ran out meanwhile, and now each has its whole ttl."""
                server.start()
                self.time.mark = monotonic()

        try:
            with closing(LiveEtcd(server.urls, RealClock())) as port:
                demand_agreement(
                    self.SCRIPT,
                    WholeSeconds(wait=1.5, short=1.1, slack=0.3),
                    lambda time: RealSide([port], time, "script-"),
                    virtual_etcd,
                )
        finally:
            server.stop()


def virtual_etcd(time: Standing) -> EtcdSide:
    server = VirtualEtcd(time.clock.now)

    class VirtualSide(EtcdSide):
        def off(self) -> None:
            server.stop()

        def on(self) -> None:
            server.start()

    return VirtualSide([EtcdPort(server, step)], time, "script-")


class TestZooKeeperBegunAnew:
    # Nothing is written while it is down: the live client may keep that and send it once it is connected again.
    SCRIPT: Script = [
        *(("create", 0, "k", "v"), ("create", 1, "k", "w"), ("session", 0), ("delete", 0, 0)),
        *(("off",), ("get", 0, 1), ("session", 0), ("session", 1), ("on",)),
        *(("session", 1), ("session", 0), ("get", 0, 1), ("children", 0, "k"), ("create", 0, "k", "v")),
        *(("end", 1), ("children", 0, "k")),
    ]

    def test_finds_sessions_and_nodes_alike(self, tmp_path: Path) -> None:
        """Nobody is connected while it is down; afterwards everybody has the session that he had."""
        demand(lambda: zookeeper.command(tmp_path))
        server = zookeeper.EmbeddedZooKeeper(tmp_path).start()

        class RealSide(ZooKeeperSide):
            def off(self) -> None:
                kill(server)
                assert wait_until(lambda: not any(box.session() for box in self.boxes), SECONDS)

            def on(self) -> None:
                server.start()
                assert wait_until(lambda: all(box.session() for box in self.boxes), SECONDS)

        def real(time: Passing) -> ZooKeeperSide:
            boxes = [LiveZooKeeper(server.hosts, RealClock(), LONG) for _ in range(2)]
            return RealSide(boxes, time, "script", expire)

        try:
            demand_agreement(self.SCRIPT, Tempo(wait=100.0, short=150.0, slack=40.0), real, virtual_zookeeper)
        finally:
            server.stop()


def virtual_zookeeper(time: Standing) -> ZooKeeperSide:
    server = VirtualZooKeeper(time.clock.now)

    class VirtualSide(ZooKeeperSide):
        def off(self) -> None:
            server.stop()
            assert [box.keep_alive() for box in self.boxes] == [False, False]

        def on(self) -> None:
            server.start()
            assert [box.keep_alive() for box in self.boxes] == [True, True]

    return VirtualSide([ZooKeeperPort(server, step, LONG) for _ in range(2)], time, "script", end_session)
