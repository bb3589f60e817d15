"""What excludes nobody from the job: that it says so, and what it keeps apart instead."""

from datetime import timedelta

import pytest

from marlow.clock import RealClock, StandingClock, wait_until
from sweeper.locks.base import Refusal, Release, Released
from tests.fakes import WEDNESDAY
from tests.servers.conformance.boxes import TTL, Boxes
from tests.servers.conformance.processes import EVERY, holding
from tests.servers.conformance.stands import Stand
from tests.servers.conformance.strategies import INSTEAD, leased, refuses, strategies
from tests.servers.fork import in_a_fork
from tests.servers.worker import old_orders

MARGIN = 10.0  # real seconds for a server to notice that a client is gone; far less than any ttl here

open_to_all = strategies(lambda strategy: not strategy.excludes)
never_refusing = strategies(lambda strategy: not refuses(strategy))
by_slot = strategies(lambda strategy: INSTEAD.get(strategy.name) == "slots")
by_row = strategies(lambda strategy: INSTEAD.get(strategy.name) == "rows")


@never_refusing
def test_everybody_is_told_yes(boxes: Boxes, stand: Stand) -> None:
    """As often as they ask, and nothing is written down about it."""
    leases = [leased(boxes(f"box-{number}").acquire("sweeper", TTL)) for number in range(3)]
    assert all(lease.still_held() for lease in leases)
    assert stand.holds() == []
    assert {lease.release() for lease in leases} == {Release(Released.OURS)}


@open_to_all
@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")  # the fork is what is tested
def test_a_fork_of_who_was_told_yes_was_told_nothing(boxes: Boxes) -> None:
    """The child of a worker has a copy of the lease, which is its parent's."""
    lease = leased(boxes().acquire("sweeper", TTL))
    assert in_a_fork(lambda: not lease.still_held() and lease.release() == Release(Released.NOT_OURS))
    assert lease.still_held()


@by_slot
class TestASlot:
    def test_is_its_run_s_for_ever(self, boxes: Boxes) -> None:
        """Also once that has let go: what a slot is for is done once."""
        at = StandingClock(WEDNESDAY)
        lease = leased(boxes("box-b", at).acquire("sweeper", TTL))
        assert lease.release() == Release(Released.OURS)
        assert boxes("box-a", at).acquire("sweeper", TTL) == Refusal("box-b")
        assert boxes("box-b", at).acquire("sweeper", TTL) == Refusal("box-b"), "a second run of the same box, too"

    def test_is_free_while_the_last_one_s_run_goes_on(self, boxes: Boxes) -> None:
        """What is not promised; the token rises by one a slot."""
        at = StandingClock(WEDNESDAY)
        first = leased(boxes("box-b", at).acquire("sweeper", TTL))
        at.sleep(EVERY)
        second = leased(boxes("box-a", at).acquire("sweeper", TTL))
        assert first.still_held()
        assert first.token is not None
        assert second.token == first.token + 1

    def test_that_is_gone_is_refused_to_a_slow_clock(self, boxes: Boxes) -> None:
        """Safe, and of no use to the slow box."""
        at, slow = StandingClock(WEDNESDAY), StandingClock(WEDNESDAY - timedelta(seconds=EVERY))
        for _ in range(3):
            leased(boxes("box-b", at).acquire("sweeper", TTL))
            at.sleep(EVERY)
            slow.sleep(EVERY)
            assert isinstance(boxes("box-a", slow).acquire("sweeper", TTL), Refusal)

    def test_of_a_killed_run_stays_its_own_and_the_next_one_is_free(self, boxes: Boxes) -> None:
        """Nobody runs the slot again, and nobody has to wait."""
        at = StandingClock(WEDNESDAY)
        with holding(boxes.job(ttl=TTL)) as (process, _):
            process.kill()
            process.wait()
        assert boxes("box-a", at).acquire("sweeper", TTL) == Refusal("box-b")
        at.sleep(EVERY)
        leased(boxes("box-a", at).acquire("sweeper", TTL))


@by_row
class TestARow:
    @pytest.mark.parametrize("hours", [-1, 0, 1])
    def test_of_a_killed_worker_is_free_at_once_and_not_before(self, boxes: Boxes, hours: int) -> None:
        """Its session's end is what counts, whatever the clock says of who comes next."""
        [order] = old_orders(1)
        lease = leased(boxes("box-a", RealClock(offset=hours * 3600)).acquire("sweeper", TTL))

        def claimable() -> bool:
            with lease.claim(order) as claimed:
                return claimed

        with holding(boxes.job(ttl=TTL)) as (process, _):
            assert not claimable()
            process.kill()
            process.wait()
            assert wait_until(claimable, MARGIN)
