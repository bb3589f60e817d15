"""Names that try to be something else: a key, a path, a command, a statement, or another name."""

import pytest

from marlow.clock import StandingClock
from sweeper.locks import slot
from sweeper.locks.base import Lease, Refusal
from sweeper.locks.ports import LockUnavailable
from sweeper.models import JobRun
from tests.fakes import WEDNESDAY
from tests.servers.conformance.boxes import TTL, Boxes
from tests.servers.conformance.processes import EVERY
from tests.servers.conformance.stands import Stand
from tests.servers.conformance.strategies import Strategy, every, leased, refuses, strategies

NUL, LONG_ENOUGH, LONG, LONG_TOO = "a\0b", "x" * 80, "x" * 300, "x" * 299 + "y"
HOSTILE = [
    *("x'; drop table sweeper_jobrun; --", "%s", "%(name)s", "a\\'b", "sweeper\r\nFLUSHALL\r\n", "*", "lock:sweeper"),
    *("../sweeper", ".", "..", "", "a/b", "a%2Fb", "=sweeper", "sweeper ", "Sweeper"),
    *("e\N{COMBINING ACUTE ACCENT}", "\N{LATIN SMALL LETTER E WITH ACUTE}", "\N{OPEN BOOK}", "plumless", "buckeroo"),
    *(NUL, LONG_ENOUGH, LONG, LONG_TOO),
]
# What a text of at most eighty characters in Postgres can't hold: refused with an error, and never granted.
UNWRITABLE = {"slot": {NUL, LONG, LONG_TOO}}


@every
def test_a_hostile_name_is_a_name_and_no_other_s(strategy: Strategy, boxes: Boxes, stand: Stand) -> None:
    """Each excludes itself and none of the others, and a lock of a decent name is held through all of it."""
    clock = StandingClock(WEDNESDAY)
    one, other = boxes("box-b", clock), boxes("box-a", clock)
    bystander = leased(boxes("box-c", clock).acquire("sweeper", TTL))
    held = stand.holds()
    names = writable(strategy)
    for number, name in enumerate(names, start=1):
        clock.sleep(EVERY)  # slots are elected once
        lease = leased(one.acquire(name, TTL))
        assert isinstance(other.acquire(name, TTL), Refusal) == refuses(strategy), repr(name)
        for another in names[number:]:
            demand_lease(other.acquire(another, TTL), name, another).release()
        assert lease.still_held(), repr(name)
        lease.release()
    if strategy.excludes:
        assert stand.holds() == held
        assert bystander.release().deleted


def demand_lease(answer: Lease | Refusal, held: str, name: str) -> Lease:
    assert isinstance(answer, Lease), f"{held!r} is held, and {name!r} can't be taken"
    return answer


def writable(strategy: Strategy) -> list[str]:
    return [name for name in HOSTILE if name not in UNWRITABLE.get(strategy.name, ())]


@strategies(lambda strategy: strategy.name in UNWRITABLE)
def test_a_name_that_can_t_be_written_is_an_error(strategy: Strategy, boxes: Boxes, stand: Stand) -> None:
    """Which says what to do. Nothing is written in its place, such as its first eighty characters."""
    for name in UNWRITABLE[strategy.name]:
        with pytest.raises(LockUnavailable, match="at most 80 characters and without a NUL"):
            boxes().acquire(name, TTL)
    assert stand.holds() == []


def test_a_slot_s_name_may_be_as_long_as_its_column() -> None:
    """And is measured before it is sent there."""
    assert JobRun._meta.get_field("job_name").max_length == slot.LONGEST
