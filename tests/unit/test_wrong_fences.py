"""Five wrong fences, each in the order of two boxes that it fails in, and the shop's own fence in that same order.

B has token 1 and is overtaken, A has token 2. Every form here writes to an order whatever its row says, so a row that
both settle gives back a copy no shelf holds. Who goes when is steered by row locks alone.
"""

from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

import pytest
from django.db import transaction
from django.db.models import QuerySet
from pytest_django import Settings

from exercises.wrong_fences import WRONG_FENCES
from marlow.clock import wait_until
from shop.fence import NotFenced, raise_fence
from shop.models import Fence, Order, Refund, Settlement
from shop.permit import Permit, SessionLost, StaleToken
from shop.settle import FORMS, Form, Result
from sweeper.checks import sweeper_settings
from tests.fakes import Boxes, make_book, make_order, make_permit, outcomes, wait_for_waiters, waiters

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "journal"])

FENCED = FORMS["fenced"]
every_wrong_fence = pytest.mark.parametrize("form", WRONG_FENCES.values(), ids=lambda form: form.name)
LOOKS_THAT_HOLD_NOTHING = ("wrong:plain-select", "wrong:sub-select", "wrong:key-share")


def permit_of(box: str, token: int | None) -> Permit:
    return make_permit(box, fence="shelf", token=token)


def pending() -> QuerySet[Order]:
    return Order.objects.filter(status=Order.Status.PENDING).order_by("id")


def lock(row: Order | Fence) -> None:
    """Until the end of the transaction or of the savepoint that this is called in."""
    type(row)._default_manager.select_for_update(no_key=True).get(pk=row.pk)


@dataclass
class Two:
    """Two boxes and one pending order, the only copy of its book; the form they both settle in."""

    form: Form
    order: Order
    stalled: Boxes  # B
    successor: Boxes  # A

    def lists(self, token: int) -> list[Order]:
        """What the box with this token reads, behind whatever fence its form raises first."""
        return self.form.read(permit_of("box-a" if token == 2 else "box-b", token), pending())

    def settles(self, orders: list[Order], token: int) -> list[Result]:
        return [self.form.release(order, permit_of("box-a" if token == 2 else "box-b", token)) for order in orders]

    def b_settles(self) -> Future[Any]:
        """B's write of the row on its list, under way."""
        return self.stalled.start(lambda: self.settles([self.order], 1))[0]

    def a_lists(self) -> Future[Any]:
        return self.successor.start(lambda: self.lists(2))[0]

    def a_settles(self, listed: list[Order]) -> None:
        [result] = self.successor.run(lambda: self.settles(listed, 2))
        assert not isinstance(result, Exception), result

    def copies_back(self) -> int:
        """How often the row was settled, which is how often its one copy went back."""
        self.order.book.refresh_from_db()
        assert self.order.book.stock == Settlement.objects.filter(order=self.order).count()
        return self.order.book.stock


# --- The three orders ---------------------------------------------------------------------------------------------
# Each returns what B's write came to, and how often the row was settled.

Seen = tuple[Any, int]


def b_stalls_until_a_has_its_list(two: Two) -> Seen:
    """B lists, A lists, B writes, A writes: nobody waits for anybody."""
    [listed] = two.stalled.run(lambda: two.lists(1))
    assert listed == [two.order]
    [listed] = two.successor.run(lambda: two.lists(2))
    [b] = outcomes([two.b_settles()])
    two.a_settles(listed)
    return b, two.copies_back()


def b_looks_while_a_raises(two: Two) -> Seen:
    """A's raise is under way and not committed; B looks; A commits and lists; B writes; A writes.

    The fence's row is held until A waits to raise it and B has looked or waits behind A; the order's row is held
    until A has its list.
    """
    two.stalled.run(lambda: two.lists(1))
    with transaction.atomic():
        lock(two.order)
        with transaction.atomic():
            lock(Fence.objects.get())
            raising = two.a_lists()
            wait_for_waiters(1)
            writing = two.b_settles()
            wait_for_waiters(2)
            transaction.set_rollback(True)  # to the savepoint: lets go of the fence and keeps the order
        [listed] = outcomes([raising])
        assert listed == [two.order]
    [b] = outcomes([writing])
    two.a_settles(listed)
    return b, two.copies_back()


def a_lists_between_b_s_look_and_its_commit(two: Two) -> Seen:
    """B looks, and waits for the order's row; A raises and lists, as far as it can; B writes; A writes."""
    two.stalled.run(lambda: two.lists(1))
    with transaction.atomic():
        lock(two.order)
        writing = two.b_settles()
        wait_for_waiters(1)
        listing = two.a_lists()
        assert wait_until(lambda: listing.done() or waiters() == 2, 10)
    [b, listed] = outcomes([writing, listing])
    two.a_settles(listed)
    return b, two.copies_back()


def play(order_of_events: Any, form: Form) -> Seen:
    with Boxes(1) as stalled, Boxes(1) as successor:
        return order_of_events(Two(form, make_order(make_book()), stalled, successor))


def goes_through(seen: Seen) -> bool:
    """B's write is done and A's is done: the row was settled twice."""
    return seen == ([Result.DONE], 2)


def is_refused(seen: Seen) -> bool:
    """B is told that it was overtaken, and only A settled the row."""
    b, settled = seen
    return isinstance(b, StaleToken) and (b.token, b.highest, settled) == (1, 2, 1)


def test_a_fence_that_rises_with_writes_lets_a_stalled_run_write() -> None:
    """late-fence: A has its list and has written nothing, so 1 is still the highest token seen."""
    assert goes_through(play(b_stalls_until_a_has_its_list, WRONG_FENCES["wrong:late-fence"]))


@pytest.mark.parametrize("name", ["fenced", *sorted(set(WRONG_FENCES) - {"wrong:late-fence"})])
def test_a_fence_raised_before_the_list_refuses_the_stalled_run(name: str) -> None:
    """The same steps. The other wrong fences pass this test too, which is why people ship them."""
    assert is_refused(play(b_stalls_until_a_has_its_list, {**FORMS, **WRONG_FENCES}[name]))


@pytest.mark.parametrize("name", LOOKS_THAT_HOLD_NOTHING)
def test_a_look_that_is_no_update_does_not_see_the_raise_under_way(name: str) -> None:
    """plain-select, sub-select, key-share: each reads 1 while 2 is about to be committed, and writes long after."""
    assert goes_through(play(b_looks_while_a_raises, WRONG_FENCES[name]))


def test_the_shop_s_look_waits_for_the_raise_under_way_and_is_refused() -> None:
    """The same steps: B's look is an update, stands behind A's in the queue for the row, and then finds 2."""
    assert is_refused(play(b_looks_while_a_raises, FENCED))


@every_wrong_fence
def test_a_list_read_between_look_and_commit_has_the_row_on_it(form: Form) -> None:
    """All five, and for one-statement the only order: its raise waits for B and its list does not."""
    assert goes_through(play(a_lists_between_b_s_look_and_its_commit, form))


def test_the_shop_s_raise_waits_for_the_write_under_way_and_lists_after_it() -> None:
    """The same steps: B was first and may write; A's list is read behind it, and row 13 is not on it."""
    assert play(a_lists_between_b_s_look_and_its_commit, FENCED) == ([Result.DONE], 1)


# --- In calm weather they are what they pretend to be ---------------------------------------------------------------


@every_wrong_fence
def test_alone_each_write_does_what_the_fenced_one_does(form: Form) -> None:
    """Complete, release, refund: status, stock, the money due, and a Settlement that names the form."""
    paid, released, refunded = (make_order(make_book(number=number)) for number in range(3))
    permit = permit_of("box-a", 2)
    assert form.read(permit, pending()) == [paid, released, refunded]
    assert form.complete(paid, permit) is Result.DONE
    assert form.release(released, permit) is Result.DONE
    assert form.refund(refunded, permit, 999, "999 landed") is Result.DONE
    assert list(Order.objects.order_by("id").values_list("status", "book__stock", "settled_by_box")) == [
        ("paid", 0, "box-a"),
        ("abandoned", 1, "box-a"),
        ("abandoned", 1, "box-a"),
    ]
    assert set(Settlement.objects.values_list("outcome", "form", "copies_back")) == {
        ("completed", form.name, 0),
        ("released", form.name, 1),
        ("refunded", form.name, 1),
    }
    assert Refund.objects.get().amount_minor == 999
    assert Fence.objects.get().token == 2


@every_wrong_fence
def test_an_overtaken_write_is_refused_once_its_successor_has_written(form: Form) -> None:
    """Every one of the three writes, with both numbers, and nothing is left behind."""
    order, other = make_order(make_book()), make_order(make_book(number=1))
    form.read(permit_of("box-b", 1), pending())
    form.read(permit_of("box-a", 2), pending())
    form.complete(other, permit_of("box-a", 2))
    for write in (form.release, form.complete, lambda *about: form.refund(*about, 1299, "")):
        with pytest.raises(StaleToken, match="stands at 2; a write with token 1"):
            write(order, permit_of("box-b", 1))
    order.refresh_from_db()
    assert (order.status, Settlement.objects.filter(order=order).count()) == ("pending", 0)
    assert not Refund.objects.exists()


def test_a_token_raises_the_fence_in_one_statement_once() -> None:
    """one-statement refuses an overtaken list like the shop's own raise, an empty one too."""
    form = WRONG_FENCES["wrong:one-statement"]
    raise_fence("shelf", 2)
    with pytest.raises(StaleToken, match="stands at 2"):
        form.read(permit_of("box-b", 1), pending())


@every_wrong_fence
def test_without_a_token_or_outside_its_session_nothing_is_written(form: Form) -> None:
    """NotFenced and SessionLost, as from the forms they are taken for."""
    order = make_order(make_book())
    with pytest.raises(NotFenced):
        form.release(order, permit_of("box-a", None))
    form.read(permit_of("box-a", 1), pending())
    with pytest.raises(SessionLost):
        form.release(order, make_permit(fence="shelf", token=1, session="run-1"))
    assert not Settlement.objects.exists()


@every_wrong_fence
def test_no_setting_reaches_a_wrong_fence(settings: Settings, form: Form) -> None:
    """Not among the shop's forms, and the system check refuses its name under a lock that mints tokens.

    That shop and sweeper import nothing of exercises is held by import-linter.
    """
    assert form.name not in FORMS
    settings.SWEEPER_LOCK, settings.SWEEPER_SETTLE = "slot", form.name
    [message] = sweeper_settings()
    assert message.id == "sweeper.E002"


def test_a_name_of_theirs_fits_where_a_settlement_keeps_it() -> None:
    """And says what it is."""
    longest = Settlement._meta.get_field("form").max_length or 0
    assert all(name == form.name and len(name) <= longest for name, form in WRONG_FENCES.items())
    assert all(name.startswith("wrong:") and form.fenced for name, form in WRONG_FENCES.items())
