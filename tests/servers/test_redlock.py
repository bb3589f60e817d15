"""Redlock on five real Redises: what a majority is, what is taken back, and how long a yes is good for."""

from collections.abc import Callable
from datetime import timedelta

import pytest

from marlow.clock import StandingClock
from sweeper.locks.base import Refusal, Released
from sweeper.locks.live import LiveRedisNodes
from sweeper.locks.ports import LockUnavailable
from sweeper.locks.redlock import Redlock, RedlockLease, drift
from tests.fakes import WEDNESDAY
from tests.servers.five import KEY, Fast, Five, leased, over

Make = Callable[..., LiveRedisNodes]


class TestAMajority:
    def test_of_five_is_granted_and_let_go_everywhere(self, five: Five, nodes: Make) -> None:
        """One value on all five, for the ttl; nothing is left behind."""
        lease = leased(Redlock(over(nodes())).acquire("sweeper", 60))
        assert five.values() == ["box-b:1"] * 5
        assert all(50_000 < lives <= 60_000 for lives in five.lives())
        release = lease.release()
        assert (release.released, release.deleted) == (Released.OURS, True)
        assert five.values() == [None] * 5

    def test_survives_two_that_are_gone(self, five: Five, nodes: Make) -> None:
        """Three of five say yes, and three of five let go."""
        five.kill(0, 1)
        lease = leased(Redlock(over(nodes())).acquire("sweeper", 60))
        assert isinstance(Redlock(over(nodes(), "box-a")).acquire("sweeper", 60), Refusal)
        assert lease.release().released is Released.OURS

    def test_is_of_the_configured_and_not_of_those_that_answered(self, five: Five, nodes: Make) -> None:
        """Three are gone and two say yes: not acquired, and the two keys are gone again."""
        five.kill(0, 1, 2)
        lock = Redlock(over(nodes()))
        with pytest.raises(LockUnavailable, match="2 of the 5"):
            lock.acquire("sweeper", 60)
        assert five.values(of=slice(3, None)) == [None] * 2
        assert five.ran("set", of=slice(3, None)) == [1, 1], "they had said yes"
        with pytest.raises(LockUnavailable, match="2 of the 5"):
            lock.demand_server("sweeper")

    def test_that_refuses_leaves_nothing_of_ours(self, five: Five, nodes: Make) -> None:
        """Three hold another's key and two say yes: refused, and the two keys are gone again."""
        five.ask("SET", KEY, "box-x:9", of=slice(3))
        answer = Redlock(over(nodes())).acquire("sweeper", 60)
        assert answer == Refusal("box-x")
        assert five.values() == ["box-x:9"] * 3 + [None] * 2

    def test_names_the_holder_that_most_nodes_name(self, five: Five, nodes: Make) -> None:
        """A box's name may have colons of its own."""
        for server, value in zip(five.servers, ["box-c:1", "box:d:2", "box:d:2", "box-c:1", "box:d:2"], strict=True):
            server.ask("SET", KEY, value)
        assert Redlock(over(nodes())).acquire("sweeper", 60) == Refusal("box:d")

    def test_need_not_be_asked_to_take_back_what_nobody_gave(self, five: Five, nodes: Make) -> None:
        """A plain refusal is two questions."""
        five.ask("SET", KEY, "box-x:9")
        assert Redlock(over(nodes())).acquire("sweeper", 60) == Refusal("box-x")
        assert five.ran("eval") == five.ran("evalsha") == [0] * 5

    def test_is_what_a_box_demands_before_its_first_run(self, five: Five, nodes: Make) -> None:
        """And the question takes nothing and removes nothing."""
        five.kill(0, 1)
        five.servers[4].ask("SET", KEY, "box-x:9")
        Redlock(over(nodes())).demand_server("sweeper")
        assert five.values(of=slice(2, None)) == [None, None, "box-x:9"]


class TestARelease:
    def test_by_a_non_holder_changes_nothing(self, five: Five, nodes: Make) -> None:
        """The value is compared on every server."""
        mine = over(nodes())
        lease = leased(Redlock(mine).acquire("sweeper", 60))
        release = RedlockLease(over(nodes(), "box-a"), KEY, "box-a:1", WEDNESDAY).release()
        assert (release.released, release.deleted) == (Released.NOT_OURS, False)
        assert five.values() == ["box-b:1"] * 5
        lease.release()

    def test_of_which_no_majority_tells_is_unknown(self, five: Five, nodes: Make) -> None:
        """Neither ours nor not ours; what could be deleted was, and that is not the lock."""
        lease = leased(Redlock(over(nodes())).acquire("sweeper", 60))
        five.kill(0, 1, 2)
        release = lease.release()
        assert (release.released, release.deleted) == (Released.UNKNOWN, False)
        assert five.values(slice(3, None)) == [None, None]

    def test_survives_flushed_script_caches(self, five: Five, nodes: Make) -> None:
        """The servers forgot a script that they were seen to know."""
        lock = Redlock(over(nodes()))
        leased(lock.acquire("sweeper", 60)).release()
        lease = leased(lock.acquire("sweeper", 60))
        five.ask("SCRIPT", "FLUSH")
        assert lease.release().released is Released.OURS
        assert five.ran("evalsha") == [1] * 5, "they were asked by the digest first"
        assert five.ran("eval") == [2] * 5

    def test_reaches_servers_that_closed_the_connection_meanwhile(self, five: Five, nodes: Make) -> None:
        """A run is long, and servers close what is idle: that is no node that does not answer."""
        lease = leased(Redlock(over(nodes())).acquire("sweeper", 60))
        five.ask("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        assert lease.release().released is Released.OURS
        assert five.values() == [None] * 5


class TestARenewal:
    def test_gives_a_lease_more_time(self, five: Five, nodes: Make) -> None:
        """On every server that still has our value."""
        lease = leased(Redlock(over(nodes())).acquire("sweeper", 60))
        assert lease.renew(600)
        assert min(five.lives()) > 500_000

    def test_of_another_s_lock_says_lost_and_leaves_its_time(self, five: Five, nodes: Make) -> None:
        """We stalled past the ttl and another acquired: an extension without a look at the owner would prolong it."""
        lease = leased(Redlock(over(nodes())).acquire("sweeper", 60))
        five.ask("SET", KEY, "box-a:1", "PX", "20000")
        assert not lease.renew(600)
        assert max(five.lives()) <= 20_000

    def test_of_which_no_majority_tells_is_no_loss(self, five: Five, nodes: Make) -> None:
        """Nobody knows: it may be asked again until the deadline has passed."""
        lease = leased(Redlock(over(nodes())).acquire("sweeper", 60))
        five.kill(0, 1, 2)
        with pytest.raises(LockUnavailable):
            lease.renew(600)


class TestValidity:
    def test_is_the_ttl_less_the_drift(self, nodes: Make) -> None:
        """One per cent and two real milliseconds, at any speed of the clock."""
        clock = StandingClock(WEDNESDAY)
        lease = leased(Redlock(over(nodes(), clock=clock)).acquire("sweeper", 120))
        assert lease.deadline == WEDNESDAY + timedelta(seconds=120 - 1.2 - 0.002)
        lease.release()
        assert drift(Fast(), 120) == pytest.approx(1.2 + 0.04)

    def test_is_less_what_the_answers_took(self, five: Five, nodes: Make) -> None:
        """Given and not yet over: a lease to the deadline that it had from the start."""
        clock = StandingClock(WEDNESDAY)
        lease = leased(Redlock(over(Slow(nodes(), clock, 118.7), clock=clock)).acquire("sweeper", 120))
        assert lease.deadline == WEDNESDAY + timedelta(seconds=118.798)
        assert lease.still_held()
        clock.sleep(0.1)
        assert not lease.still_held()

    def test_that_is_over_when_the_answers_are_in_is_no_lease(self, five: Five, nodes: Make) -> None:
        """All five said yes, too late: all five keys are gone again."""
        clock = StandingClock(WEDNESDAY)
        with pytest.raises(LockUnavailable, match="longer"):
            Redlock(over(Slow(nodes(), clock, 118.8), clock=clock)).acquire("sweeper", 120)
        assert five.ran("set") == [1] * 5
        assert five.values() == [None] * 5


class Slow:
    """Nodes whose yes takes so many virtual seconds."""

    def __init__(self, nodes: LiveRedisNodes, clock: StandingClock, seconds: float) -> None:
        self.nodes, self.clock, self.seconds = nodes, clock, seconds
        self.delete_if_equal = nodes.delete_if_equal

    def set_or_get(self, key: str, value: str, ttl: float) -> list[str | None]:
        self.clock.sleep(self.seconds)
        return self.nodes.set_or_get(key, value, ttl)
