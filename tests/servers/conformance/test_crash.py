"""A holder that is killed, and one that is forked."""

from collections.abc import Callable

import pytest

from marlow.clock import monotonic, wait_until
from sweeper.locks.base import Lease, Refusal, Release, Released
from tests.servers.conformance.boxes import TTL, Boxes
from tests.servers.conformance.processes import holding
from tests.servers.conformance.strategies import Strategy, excluding, leased
from tests.servers.fork import in_a_fork
from tests.servers.worker import old_orders

SHORT = 2.0  # a ttl in real seconds that is waited for
TICK = 10.0  # real seconds that a server, or a busy machine, may take to notice; far less than TTL


@excluding
def test_a_killed_holder_s_lock_is_free_when_it_was_promised(strategy: Strategy, boxes: Boxes, database: str) -> None:
    """At once where it lived in the holder's session, else when its ttl is over: no later than that and a tick."""
    old_orders(1)
    other, taken = boxes("box-a"), list[Lease]()
    ttl, promised = (SHORT, SHORT) if strategy.outlives_holder else (TTL, 0.0)
    with holding(boxes.job(ttl=ttl)) as (process, asked):
        process.kill()
        process.wait()
        assert wait_until(told_yes(lambda: other.acquire("sweeper", TTL), taken), promised + TICK)
    assert monotonic() - asked >= promised, "and no sooner"
    taken[0].release()


def told_yes(ask: Callable[[], Lease | Refusal], taken: list[Lease]) -> Callable[[], bool]:
    """For `wait_until`: ask once more, and keep the lease."""

    def told() -> bool:
        answer = ask()
        if isinstance(answer, Lease):
            taken.append(answer)
        return bool(taken)

    return told


@excluding
@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")  # the fork is what is tested
def test_a_fork_of_the_holder_neither_holds_the_lock_nor_lets_it_go(strategy: Strategy, boxes: Boxes) -> None:
    """The child of a worker has a copy of everything, the connection included; the lease is its parent's."""
    lease = leased(boxes().acquire("sweeper", TTL))
    assert in_a_fork(lambda: not lease.still_held() and lease.release() == Release(Released.NOT_OURS))
    assert in_a_fork(lambda: lease.renew(TTL) is False), "nor asks for more time"
    assert isinstance(boxes("box-a").acquire("sweeper", TTL), Refusal), "and it is still there"
    assert lease.still_held()
    released = lease.release().released
    assert released is (Released.UNKNOWN if strategy.name == "redis-naive" else Released.OURS)
