"""Redises in several parts: independent ones, a pair that fails over, and a clock that steps."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from marlow.clock import real_sleep, wait_until
from marlow.servers import faketime
from marlow.servers.launcher import ServerError
from marlow.servers.redis_nodes import RedisNodes
from marlow.servers.redis_pair import RedisPair
from tests.servers.groups import demand, groups_in


def test_of_nodes_that_can_not_all_start_none_is_left(tmp_path: Path) -> None:
    """One folder is a file: the four others are stopped, and the error is not swallowed."""
    (tmp_path / "redis-3").write_text("in the way")
    with pytest.raises(FileExistsError):
        RedisNodes(tmp_path).start()
    assert not groups_in(tmp_path)


def test_nodes_know_nothing_of_each_other(tmp_path: Path) -> None:
    """A key set on one is on no other."""
    nodes = RedisNodes(tmp_path, count=3).start()
    assert len(set(nodes.urls)) == 3
    nodes.servers[0].ask("SET", "lock:sweeper", "box-b")
    assert [server.ask("GET", "lock:sweeper") for server in nodes.servers] == ["box-b", None, None]
    nodes.stop()


class TestThePair:
    @pytest.fixture
    def pair(self, tmp_path: Path) -> Iterator[RedisPair]:
        pair = RedisPair(tmp_path).start()
        yield pair
        pair.stop()

    def test_is_ready_when_the_replica_follows(self, pair: RedisPair) -> None:
        """What is written reaches the replica, a moment later."""
        pair.master.ask("SET", "lock:sweeper", "box-b")
        assert wait_until(lambda: pair.replica.ask("GET", "lock:sweeper") == "box-b", 5)

    def test_loses_an_acknowledged_key_when_it_fails_over(self, pair: RedisPair) -> None:
        """Box B was told yes by the master; box A is told yes by the replica that took over."""
        pair.master.ask("SET", "before", "kept")
        assert wait_until(lambda: pair.replica.ask("GET", "before") == "kept", 5)
        lock = ("SET", "lock:sweeper", "box-b", "NX", "PX", "60000")
        old, acknowledged = pair.url, pair.fail_over(lambda: pair.master.ask(*lock))
        assert acknowledged
        assert pair.url != old
        with pytest.raises(redis.ConnectionError):
            pair.master.ask("PING")
        assert pair.replica.ask("GET", "before") == "kept"
        with redis.Redis.from_url(pair.url) as client:
            assert client.set("lock:sweeper", "box-a", nx=True, px=60_000)

    def test_starts_as_a_pair_again(self, pair: RedisPair) -> None:
        """After a failover too."""
        pair.fail_over(lambda: None)
        pair.start()
        assert pair.url == pair.master.url
        assert pair.master.ask("PING")
        assert pair.replica.ask("PING")


class TestAClockThatSteps:
    @pytest.fixture
    def nodes(self, tmp_path: Path) -> Iterator[RedisNodes]:
        demand(faketime.library)
        nodes = RedisNodes(tmp_path, count=2, stepping=[1]).start()
        yield nodes
        nodes.stop()

    def test_ends_a_minute_s_key_at_once_when_it_goes_forward(self, nodes: RedisNodes) -> None:
        """+61 s, on this server alone; keys follow its wall clock."""
        for server in nodes.servers:
            assert server.ask("SET", "lock:sweeper", "box-b", "PX", "60000")
        nodes.clocks[1].step(61)
        assert [server.ask("GET", "lock:sweeper") for server in nodes.servers] == ["box-b", None]

    def test_keeps_a_second_s_key_alive_when_it_goes_back(self, nodes: RedisNodes) -> None:
        """-30 s: there long after its second is over, and gone where no clock stepped."""
        for server in nodes.servers:
            assert server.ask("SET", "lock:sweeper", "box-b", "PX", "1000")
        nodes.clocks[1].step(-30)
        assert wait_until(lambda: nodes.servers[0].ask("GET", "lock:sweeper") is None, 5)
        real_sleep(0.5)
        assert nodes.servers[1].ask("GET", "lock:sweeper") == "box-b"

    def test_steps_add_up(self, nodes: RedisNodes) -> None:
        """Forward and back again is where it was."""
        nodes.clocks[1].step(100)
        nodes.clocks[1].step(-100)
        apart = abs(int(nodes.servers[1].ask("TIME")[0]) - int(nodes.servers[0].ask("TIME")[0]))
        assert apart <= 2

    def test_that_is_not_installed_says_what_to_install(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """No server is started on a clock that would not step."""
        monkeypatch.setattr(faketime, "PLACES", ())
        with pytest.raises(ServerError, match="apt-get install libfaketime"):
            RedisNodes(tmp_path, stepping=[0]).start()
