"""Money without an order: found, written down once, given back once."""

from datetime import datetime, timedelta

import pytest

from shop.models import Refund, StrayCharge
from shop.provider.answers import LandedCharge
from shop.settle import FORMS
from sweeper.reconcile import Reconciled, reconcile
from tests.fakes import UNKNOWN, WEDNESDAY, Boxes, ScriptedProvider, StandingClock, make_book, make_order, make_permit

pytestmark = pytest.mark.django_db(transaction=True)


class Till(ScriptedProvider):
    """A provider whose list says what has been refunded."""

    def charges_since(self, since: datetime) -> list[LandedCharge] | None:
        back = {key.removeprefix("refund-") for key in self.refunds}
        return [LandedCharge(key, amount, WEDNESDAY, key in back) for key, amount in self.charges.items()]


def test_a_charge_that_landed_after_its_order_was_released_is_found_and_refunded() -> None:
    """The late landing: nobody's question ever hears of it again, the list of charges does."""
    book = make_book(3)
    order = make_order(book)
    FORMS["guarded"].release(order, make_permit())
    till = Till()
    till.charges[order.key] = order.amount_minor
    assert reconcile(till, StandingClock(), "box-a") == Reconciled(looked=True, stray=1)
    stray, refund = StrayCharge.objects.get(), Refund.objects.get()
    assert (stray.key, stray.order_id, stray.found_by_box) == (order.key, order.pk, "box-a")
    assert (refund.state, till.refunds) == ("sent", {refund.key: order.amount_minor})
    book.refresh_from_db()
    assert book.stock == 4, "the copy went back with the release, and not again"


def test_a_charge_nobody_has_an_order_for_is_refunded_too() -> None:
    """The order's row was never written; the money moved all the same."""
    till = Till()
    till.charges["unheard-of"] = 999
    reconcile(till, StandingClock(), "box-a")
    assert (StrayCharge.objects.get().order, Refund.objects.get().amount_minor) == (None, 999)


@pytest.mark.parametrize("status", ["pending", "paid", "dispatched"])
def test_a_charge_whose_order_keeps_it_is_left_alone(status: str) -> None:
    """A pending one is the sweeper's to complete."""
    order = make_order(make_book(), status)
    till = Till()
    till.charges[order.key] = order.amount_minor
    assert reconcile(till, StandingClock(), "box-a").stray == 0
    assert not StrayCharge.objects.exists()
    assert till.refunds == {}


def test_both_boxes_at_once_find_it_once_and_move_the_money_once() -> None:
    """Unique rows and the refund's own key are the arbiters; no lock is held."""
    order = make_order(make_book(), "abandoned")
    till = Till()
    till.charges[order.key] = order.amount_minor
    with Boxes(2) as boxes:
        boxes.run(*(lambda box=box: reconcile(till, StandingClock(), box) for box in ("box-a", "box-b")))  # type: ignore[misc]
    assert (StrayCharge.objects.count(), Refund.objects.count(), len(till.refunds)) == (1, 1, 1)
    assert reconcile(till, StandingClock(), "box-b").stray == 0


def test_a_refund_without_an_answer_stays_due_and_is_sent_again_under_the_same_key() -> None:
    """Due is written first, sent after; an unknown answer is asked again, and the key moves the money once."""
    order = make_order(make_book(), "abandoned")
    till = Till(UNKNOWN)
    till.charges[order.key] = order.amount_minor
    reconcile(till, StandingClock(), "box-a")
    assert Refund.objects.get().state == "due"
    reconcile(till, StandingClock(), "box-a")
    assert Refund.objects.get().state == "sent"
    assert till.asked["refund"] == [f"refund-{order.key}"] * 2


def test_a_provider_that_does_not_answer_is_no_proof_of_anything() -> None:
    """Nothing was looked at, and the result says so; refunds that are due are still sent."""
    till = Till()
    till.charges_since = lambda since: None  # type: ignore[method-assign]
    assert reconcile(till, StandingClock(), "box-a") == Reconciled(looked=False, stray=0)


def test_it_looks_seven_days_back() -> None:
    """By the shop's clock."""
    asked: list[datetime] = []
    till = Till()
    till.charges_since = lambda since: asked.append(since) or []  # type: ignore[func-returns-value, method-assign]
    reconcile(till, StandingClock(), "box-a")
    assert asked == [WEDNESDAY - timedelta(days=7)]
