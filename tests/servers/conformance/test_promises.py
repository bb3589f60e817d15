"""What every strategy is held to on one server: leases, refusals, releases, time and tokens, as it declares them."""

import pytest

from marlow.clock import RealClock, StandingClock, monotonic, real_sleep, wait_until
from sweeper.locks.base import Lease, Refusal, Refused, Release, Released, Renewal
from tests.fakes import WEDNESDAY
from tests.servers.conformance.boxes import TTL, Boxes
from tests.servers.conformance.processes import EVERY
from tests.servers.conformance.stands import Stand
from tests.servers.conformance.strategies import (
    DELETES_ANYBODY_S,
    Strategy,
    every,
    excluding,
    leased,
    minting,
    refuses,
    refusing,
    runs_out,
    strategies,
)

MARGIN = 10.0  # real seconds beyond what is promised, for a busy machine
SHORT = 1.0  # a ttl in real seconds that is waited for; etcd knows no shorter one

outlasting = strategies(lambda strategy: strategy.excludes and not runs_out(strategy))
running_out = strategies(lambda strategy: strategy.excludes and runs_out(strategy))
renewable = strategies(lambda strategy: strategy.renewal is Renewal.OPTIONAL)


class TestALease:
    @every
    def test_is_what_the_strategy_declares(self, strategy: Strategy, boxes: Boxes) -> None:
        """A token where it mints one, a deadline where its leases expire, and neither elsewhere."""
        lease = leased(boxes().acquire("sweeper", TTL))
        assert (lease.token is not None) == strategy.mints_token
        assert (lease.deadline is not None) == strategy.expires
        assert lease.still_held()
        lease.release()

    @excluding
    def test_that_was_let_go_is_the_next_one_s(self, boxes: Boxes, stand: Stand) -> None:
        """The release says that something was let go, and nothing is left of it."""
        lease = leased(boxes().acquire("sweeper", TTL))
        assert stand.holds() != []
        assert lease.release().deleted
        assert stand.holds() == []
        assert leased(boxes("box-a").acquire("sweeper", TTL)).release().deleted

    @running_out
    def test_ends_with_its_ttl_although_its_holder_is_at_work(self, boxes: Boxes) -> None:
        """By the server's clock for the others, and by its own for the holder."""
        lease, other = leased(boxes().acquire("sweeper", SHORT)), boxes("box-a")
        assert wait_until(lambda: isinstance(other.acquire("sweeper", TTL), Lease), SHORT + MARGIN)
        assert not lease.still_held()

    @outlasting
    def test_lasts_as_long_as_the_work_does(self, boxes: Boxes) -> None:
        """It has no clock of its own, or is kept alive beside the run."""
        lease = leased(boxes().acquire("sweeper", SHORT))
        real_sleep(2.5 * SHORT)
        assert isinstance(boxes("box-a").acquire("sweeper", SHORT), Refusal)
        assert lease.still_held()
        assert lease.release().released is Released.OURS

    @renewable
    def test_that_is_renewed_lasts_as_long_as_the_work_does(self, boxes: Boxes) -> None:
        """Where the box asks for it."""
        lease = leased(boxes(renew=True).acquire("sweeper", 2 * SHORT))
        real_sleep(3 * SHORT)
        assert isinstance(boxes("box-a").acquire("sweeper", SHORT), Refusal)
        assert lease.still_held()
        assert lease.release().released is Released.OURS


class TestARefusal:
    @refusing
    def test_is_an_answer_and_not_a_wait(self, strategy: Strategy, boxes: Boxes) -> None:
        """It comes long before the holder is done, and says who holds it where the lock can tell."""
        lease, other = leased(boxes().acquire("sweeper", TTL)), boxes("box-a")
        began = monotonic()
        answer = other.acquire("sweeper", TTL)
        assert monotonic() - began < TTL / 6
        assert answer == Refusal("" if strategy.name == "postgres-advisory" else "box-b")
        assert lease.still_held()
        lease.release()

    @refusing
    def test_in_a_with_runs_nothing(self, boxes: Boxes) -> None:
        """Some locks go on as if they held it."""
        ran = []
        with leased(boxes().acquire("sweeper", TTL)) as lease:
            with pytest.raises(Refused), boxes("box-a").acquire("sweeper", TTL):
                ran.append("box-a")
            assert lease.still_held()
        assert ran == []

    @excluding
    def test_s_holder_that_fails_in_a_with_lets_go(self, boxes: Boxes, stand: Stand) -> None:
        """The error is the work's own."""
        with pytest.raises(KeyError), leased(boxes().acquire("sweeper", TTL)):
            raise KeyError("the work failed")
        assert stand.holds() == []

    @refusing
    def test_leaves_nothing_behind_a_hundred_times(self, boxes: Boxes, stand: Stand) -> None:
        """No key, no lease, no node, no row: what is there is the holder's."""
        lease, other = leased(boxes().acquire("sweeper", TTL)), boxes("box-a")
        holds = stand.holds()
        for _ in range(100):
            assert isinstance(other.acquire("sweeper", TTL), Refusal)
        assert stand.holds() == holds
        lease.release()


class TestAReleaseByWhoHoldsNothing:
    @excluding
    def test_changes_nothing_for_who_holds_it_now(self, strategy: Strategy, boxes: Boxes) -> None:
        """The first let go already. Only the lock that shipped deletes what is another's, and a third gets in."""
        first = leased(boxes().acquire("sweeper", TTL))
        first.release()
        second = leased(boxes("box-a").acquire("sweeper", TTL))
        demand_untouched(strategy, first.release())
        assert isinstance(boxes("box-c").acquire("sweeper", TTL), Lease) == (strategy.name in DELETES_ANYBODY_S)
        second.release()

    @excluding
    def test_whose_lease_was_lost_learns_of_it_and_changes_nothing(
        self, strategy: Strategy, boxes: Boxes, stand: Stand
    ) -> None:
        """It ended behind the holder's back, by its ttl or by the server, and another has the lock by now: the lease
        says so, can't be renewed, and its release is not the other's.
        """
        first, other = leased(boxes().acquire("sweeper", SHORT)), boxes("box-a")
        if not runs_out(strategy):
            stand.take_away(first)
        assert wait_until(lambda: isinstance(other.acquire("sweeper", TTL), Lease), SHORT + MARGIN)
        assert wait_until(lambda: not first.still_held(), SHORT + MARGIN)
        if type(first).prolong is not Lease.prolong:
            holds = stand.holds()
            assert first.renew(TTL) is False
            assert stand.holds() == holds
        demand_untouched(strategy, first.release())
        assert isinstance(boxes("box-c").acquire("sweeper", TTL), Lease) == (strategy.name in DELETES_ANYBODY_S)


def demand_untouched(strategy: Strategy, release: Release) -> None:
    """It doesn't claim to have let go of what was its own, and deleted nothing, or what it should not have."""
    assert release.released is not Released.OURS
    assert release.deleted == (strategy.name in DELETES_ANYBODY_S)


class TestAToken:
    @minting
    def test_is_greater_than_any_before_it(self, boxes: Boxes) -> None:
        """Whoever holds, by whatever name."""
        clock = StandingClock(WEDNESDAY)
        pair = boxes("box-b", clock), boxes("box-a", clock)
        tokens = []
        for turn in range(20):
            lease = leased(pair[turn % 2].acquire(f"job-{turn % 3}", TTL))
            tokens.append(lease.token)
            lease.release()
            clock.sleep(EVERY)
        assert tokens == sorted(set(tokens))


class TestAClock:
    @excluding
    @pytest.mark.parametrize("hours", [-1, 1])
    def test_that_is_an_hour_wrong_lets_nobody_in(self, boxes: Boxes, hours: int) -> None:
        """Whose it is: who holds is no matter of time stamps that the boxes wrote."""
        right, wrong = boxes("box-b"), boxes("box-a", RealClock(offset=hours * 3600))
        for holder, contender in ((right, wrong), (wrong, right)):
            lease = leased(holder.acquire("sweeper", TTL))
            assert isinstance(contender.acquire("sweeper", TTL), Refusal)
            assert lease.still_held()
            assert lease.release().deleted


@every
def test_each_says_what_it_promises(strategy: Strategy) -> None:
    """In its own words, and that it refuses where it excludes."""
    assert strategy.__doc__
    assert strategy.__doc__.startswith("Promises")
    assert refuses(strategy) or not strategy.excludes
