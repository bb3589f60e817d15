"""Two clocks apart under `slot`: it stays safe, and the slow box is locked out."""

import uuid
from datetime import timedelta

import pytest

from shop.settle import FORMS
from sweeper.events import Kind
from sweeper.journal import Memory, Run
from sweeper.locks import build
from sweeper.locks.live import LivePostgres
from sweeper.locks.ports import Ports
from sweeper.sweep import Rules, sweep
from tests.fakes import WEDNESDAY, ScriptedProvider, StandingClock, make_book, make_order
from tests.servers.conformance.processes import EVERY

pytestmark = pytest.mark.django_db(transaction=True)


class Box:
    """A box that settles fenced and guarded, on a clock of its own."""

    def __init__(self, name: str, behind: float = 0.0) -> None:
        self.name, self.clock, self.journal = name, StandingClock(WEDNESDAY - timedelta(seconds=behind)), Memory()

    def sweep(self) -> int:
        run = Run(uuid.uuid4(), self.name, uuid.uuid4().hex, "slot", "fenced+guarded", "lookup")
        self.journal.begin(run, self.clock.now())
        ports = Ports(self.clock, self.name, str(run.run), EVERY, lambda: uuid.uuid4().hex, postgres=LivePostgres())
        return sweep(
            run,
            lock=build("slot", ports),
            form=FORMS["fenced+guarded"],
            provider=ScriptedProvider(),
            clock=self.clock,
            journal=self.journal,
            rules=Rules(),
        )

    def told(self, kind: Kind) -> int:
        return sum(event.kind is kind for event in self.journal.events)


def test_a_box_whose_clock_is_a_slot_behind_writes_nothing_until_it_is_right() -> None:
    """It is elected for a slot that nobody ran, with a number that the fence has passed; and then for none."""
    right, slow = Box("box-b"), Box("box-a", behind=EVERY)
    assert right.sweep() == 0, "nothing to do yet, but the fence stands at its slot"
    order = make_order(make_book(3), created_at=WEDNESDAY - timedelta(hours=1))
    assert slow.sweep() == 0
    assert (slow.told(Kind.ACQUIRED), slow.told(Kind.STALE), slow.told(Kind.ASKED)) == (1, 1, 0)
    slow.clock.sleep(EVERY)
    right.clock.sleep(EVERY)
    assert slow.sweep() == 0, "the slot that it takes the time to be is the other box's"
    assert slow.told(Kind.REFUSED) == 1
    order.refresh_from_db()
    assert order.status == "pending"
    slow.clock.sleep(EVERY)
    assert slow.sweep() == 1, "now its clock is right"
    order.refresh_from_db()
    assert order.status == "abandoned"
