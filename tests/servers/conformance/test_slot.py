"""Two clocks apart under `slot`: it stays safe behind the fence, and the slow box is locked out."""

import uuid
from collections.abc import Callable
from datetime import timedelta

import pytest

from shop.models import Order, Settlement
from shop.provider.answers import Answer
from shop.settle import FORMS
from shop.shelf import totals
from sweeper.events import Event, Kind
from sweeper.journal import Memory, Run
from sweeper.locks import build
from sweeper.locks.live import LivePostgres
from sweeper.locks.ports import Ports
from sweeper.slots import slot_of
from sweeper.sweep import Rules, sweep
from tests.fakes import WEDNESDAY, ScriptedProvider, StandingClock
from tests.servers.conformance.processes import EVERY
from tests.servers.worker import old_orders

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.xdist_group("locks on postgres")]

SLOT = slot_of(WEDNESDAY, EVERY)


class Box:
    """A box on a clock of its own (`behind`: seconds), with one journal for all its runs."""

    def __init__(self, name: str, behind: float = 0.0, settle: str = "fenced+guarded") -> None:
        self.name, self.settle = name, settle
        self.clock, self.journal = StandingClock(WEDNESDAY - timedelta(seconds=behind)), Memory()

    def sweep(self, provider: ScriptedProvider | None = None) -> int:
        run = Run(uuid.uuid4(), self.name, uuid.uuid4().hex, "slot", self.settle, "lookup")
        ports = Ports(self.clock, self.name, str(run.run), EVERY, lambda: uuid.uuid4().hex, postgres=LivePostgres())
        return sweep(
            run,
            lock=build("slot", ports),
            form=FORMS[self.settle],
            provider=provider or ScriptedProvider(),
            clock=self.clock,
            journal=self.journal,
            rules=Rules(),
        )

    def told(self, kind: Kind) -> list[Event]:
        return [event for event in self.journal.events if event.kind is kind]


class Meanwhile(ScriptedProvider):
    """While it is asked for the first time, something else happens."""

    def __init__(self, happens: Callable[[], object]) -> None:
        super().__init__()
        self.happens = [happens]

    def lookup(self, key: str) -> Answer:
        if self.happens:
            self.happens.pop()()
        return super().lookup(key)


def pending() -> int:
    return Order.objects.filter(status=Order.Status.PENDING).count()


@pytest.mark.parametrize("settle", ["fenced", "fenced+guarded"])
def test_a_box_a_slot_behind_writes_nothing_until_its_clock_is_right(settle: str) -> None:
    """It is elected for a slot that nobody ran, with a number that the fence has passed; and then for none."""
    right, slow = Box("box-b", settle=settle), Box("box-a", behind=EVERY, settle=settle)
    assert right.sweep() == 0, "nothing to do yet, but the fence stands at its slot"
    old_orders(2)
    assert slow.sweep() == 0
    assert [event.token for event in slow.told(Kind.ACQUIRED)] == [SLOT - 1]
    assert [(event.token, event.data["highest"]) for event in slow.told(Kind.STALE)] == [(SLOT - 1, SLOT)]
    assert slow.told(Kind.ASKED) == slow.told(Kind.SETTLING) == []
    assert (pending(), Settlement.objects.count()) == (2, 0)
    for box in (slow, right):
        box.clock.sleep(EVERY)
    assert slow.sweep() == 0
    assert [event.data["holder"] for event in slow.told(Kind.REFUSED)] == ["box-b"], "its now is the other's past"
    assert pending() == 2
    slow.clock.sleep(EVERY)
    assert slow.sweep() == 2, "now its clock is right"
    assert (pending(), totals()) == (0, (0, 0))


@pytest.mark.parametrize("settle", ["fenced", "fenced+guarded"])
def test_a_box_a_slot_behind_does_not_disturb_the_run_that_is_at_work(settle: str) -> None:
    """It is elected while the other box asks about its first row, and refused by the fence before it has a list."""
    old_orders(2)
    right, slow = Box("box-b", settle=settle), Box("box-a", behind=EVERY, settle=settle)
    assert right.sweep(Meanwhile(slow.sweep)) == 2
    assert len(slow.told(Kind.STALE)) == 1
    assert (Settlement.objects.count(), totals()) == (2, (0, 0))


def test_without_the_fence_both_settle_every_row() -> None:
    """The same two runs: `slot` by itself keeps two clocks apart from nothing."""
    old_orders(2)
    right, slow = Box("box-b", settle="unguarded"), Box("box-a", behind=EVERY, settle="unguarded")
    assert right.sweep(Meanwhile(slow.sweep)) == 2
    assert Settlement.objects.count() == 4
    assert totals().phantom == 2
