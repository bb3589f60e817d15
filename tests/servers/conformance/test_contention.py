"""Calm weather: eight processes that contend for one lock, and an arbiter that is not the lock.

Six hundred acquisitions for each lock over Redis and Postgres, two hundred where each is a round of consensus.
"""

from collections.abc import Iterator

import pytest

from sweeper.locks import LOCKS
from tests.servers.conformance.arbiter import Arbiter, Seen
from tests.servers.conformance.boxes import Boxes
from tests.servers.conformance.processes import BOXES, contended
from tests.servers.conformance.strategies import INSTEAD, Strategy, excluding, strategies
from tests.servers.worker import old_orders

MANY, PAUSE = 600, 0.02
# Each question is a round of consensus, and two boxes that ask ZooKeeper at once may both be refused.
FEWER, LONGER = 200, 0.1
CONSENSUS = {"etcd", "zookeeper"}
SLOTS = ROWS = 100


@pytest.fixture
def arbiter(database: str) -> Iterator[Arbiter]:
    with Arbiter(database) as arbiter:
        arbiter.begin()
        yield arbiter
        arbiter.end()


@excluding
def test_no_two_of_eight_processes_are_in_at_once(strategy: Strategy, boxes: Boxes, arbiter: Arbiter) -> None:
    """However often they are told no, each has all its turns, and nobody ever met another."""
    turns, pause = (FEWER, LONGER) if strategy.server in CONSENSUS else (MANY, PAUSE)
    refused = contended(boxes.job(times=turns, pause=pause))
    assert arbiter.seen() == {"sweeper": Seen(entries=turns, most=1, inside=0)}
    assert refused > turns // 20, "they did contend"


@strategies(lambda strategy: INSTEAD.get(strategy.name) == "slots")
def test_each_slot_has_one_elected_run(boxes: Boxes, arbiter: Arbiter) -> None:
    """Eight ask for each of a hundred at once; seven of them are told no."""
    refused = contended(boxes.job(over="slots", times=SLOTS))
    assert arbiter.seen() == {f"slot {number}": Seen(1, 1, 0) for number in range(SLOTS)}
    assert refused == (BOXES - 1) * SLOTS


@strategies(lambda strategy: INSTEAD.get(strategy.name) == "rows")
def test_no_row_is_worked_on_by_two(boxes: Boxes, arbiter: Arbiter) -> None:
    """Eight come to each of a hundred at once, with a settle that does not look; one of them has it."""
    orders = old_orders(ROWS)
    refused = contended(boxes.job(over="rows"))
    assert arbiter.seen() == {order.reference: Seen(1, 1, 0) for order in orders}
    assert refused == (BOXES - 1) * ROWS


@strategies(lambda strategy: INSTEAD.get(strategy.name) == "")
@pytest.mark.parametrize("over", ["", "slots", "rows"])
def test_without_a_lock_the_arbiter_sees_them_meet(boxes: Boxes, arbiter: Arbiter, over: str) -> None:
    """So that it is known to be able to."""
    places = {"": 1, "slots": 5, "rows": 5}[over]
    if over == "rows":
        old_orders(places)
    turns = places if over else 80
    assert contended(boxes.job(over=over, times=turns)) == 0
    seen = arbiter.seen()
    assert len(seen) == places
    assert sum(each.entries for each in seen.values()) == (BOXES * places if over else turns)
    assert max(each.most for each in seen.values()) > 1


def test_what_excludes_nobody_says_what_it_does_instead() -> None:
    """A strategy that is new among them is first asked for it here."""
    assert set(INSTEAD) == {name for name, strategy in LOCKS.items() if not strategy.excludes}
