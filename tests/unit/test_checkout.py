"""From the button to the parcel, with a provider that follows a script."""

from functools import partial

import pytest

from shop.checkout import CheckoutError, KeyTaken, NotPaid, SoldOut, checkout, dispatch, hold, uuid_ids
from shop.models import Order, Refund, Settlement, StockMovement
from shop.provider.answers import Answer, Verdict
from shop.settle import FORMS, complete_guarded, release_guarded
from shop.shelf import totals
from tests.fakes import (
    NO,
    UNKNOWN,
    WEDNESDAY,
    YES,
    Boxes,
    ScriptedProvider,
    StandingClock,
    make_book,
    make_order,
    make_permit,
    numbered,
)

pytestmark = pytest.mark.django_db
real_commits = pytest.mark.django_db(transaction=True, databases=["default", "journal"])
checkout_forms = pytest.mark.parametrize("form", [FORMS["guarded"], FORMS["unguarded"]], ids=lambda form: form.name)


def buy(book, *script, buyer="Ada", **fields) -> Order:
    known = {"provider": ScriptedProvider(*script), "clock": StandingClock(), "ids": uuid_ids}
    return checkout(book, buyer, **{**known, **fields})


def stock_of(book) -> int:
    book.refresh_from_db()
    return book.stock


# --- Hold ---------------------------------------------------------------------------------------------------------


def test_a_hold_takes_a_copy_and_asks_for_the_price():
    """Stock falls by one; the order is pending, with its key, its amount (pence) and its virtual time."""
    book = make_book(copies=2, price_minor=850)
    order = hold(book, "Ada", StandingClock(), key="k1", reference="M-1")
    assert stock_of(book) == 1
    assert (order.status, order.key, order.reference) == ("pending", "k1", "M-1")
    assert (order.amount_minor, order.created_at, order.settled_at) == (850, WEDNESDAY, None)


def test_without_a_copy_there_is_no_hold_and_no_order():
    """Sold out is a sentence with the title, and leaves no row."""
    book = make_book(title="The Tin Ferry")
    with pytest.raises(SoldOut, match="The Tin Ferry is sold out"):
        hold(book, "Ada", StandingClock(), key="k1", reference="M-1")
    assert stock_of(book) == 0
    assert not Order.objects.exists()


def test_the_same_key_again_holds_nothing_more():
    """A client's retry gets its first order, even when that took the last copy."""
    book = make_book(copies=1)
    first = hold(book, "Ada", StandingClock(), key="k1", reference="M-1")
    assert hold(book, "Ada", StandingClock(), key="k1", reference="M-2") == first
    assert stock_of(book) == 0


def test_a_key_is_for_one_book_and_one_buyer():
    """The same key for something else is an error that names the first order, and holds nothing."""
    book, other = make_book(copies=2), make_book(copies=1, number=1)
    hold(book, "Ada", StandingClock(), key="k1", reference="M-1")
    for wrong in ((other, "Ada"), (book, "Bea")):
        with pytest.raises(KeyTaken, match="belongs to order M-1"):
            hold(*wrong, StandingClock(), key="k1", reference="M-2")
    assert (stock_of(book), stock_of(other)) == (1, 1)


@real_commits
def test_of_two_buyers_of_the_last_copy_one_wins():
    """Both waited for the book's row; one has the copy, the other is told it is sold out."""
    book = make_book(copies=1)
    with Boxes() as boxes:
        results = boxes.run_behind(book, partial(buy, book, buyer="Ada"), partial(buy, book, buyer="Bea"))
    assert sorted(type(result).__name__ for result in results) == ["Order", "SoldOut"]
    assert (stock_of(book), Order.objects.count()) == (0, 1)


@real_commits
@pytest.mark.parametrize("copies", [1, 2])
def test_the_same_key_at_the_same_moment_is_one_order(copies):
    """Two requests of one impatient buyer, with a copy to spare or without: one order, one copy held."""
    book = make_book(copies=copies)
    with Boxes() as boxes:
        first, second = boxes.run_behind(
            book,
            lambda: hold(book, "Ada", StandingClock(), key="k1", reference="M-1"),
            lambda: hold(book, "Ada", StandingClock(), key="k1", reference="M-2"),
        )
    assert first == second
    assert (stock_of(book), Order.objects.count()) == (copies - 1, 1)


# --- Charge and settle --------------------------------------------------------------------------------------------


@checkout_forms
def test_money_that_landed_makes_the_order_paid(form):
    """yes: paid, settled by the web box in the form asked for; the copy stays out of stock."""
    book = make_book(copies=1)
    order = buy(book, YES, form=form)
    assert (order.status, order.settled_by_box, order.settled_by_run, stock_of(book)) == ("paid", "web", None, 0)
    assert Settlement.objects.get(order=order).form == form.name


@checkout_forms
def test_a_decline_releases_at_once(form):
    """no: abandoned, and the copy is for sale again."""
    book = make_book(copies=1)
    order = buy(book, NO, form=form)
    assert (order.status, stock_of(book)) == ("abandoned", 1)


@checkout_forms
def test_no_answer_leaves_the_order_pending_and_its_copy_held(form):
    """A timeout is never a no."""
    book = make_book(copies=1)
    order = buy(book, UNKNOWN, form=form)
    assert (order.status, stock_of(book)) == ("pending", 0)
    assert not Settlement.objects.exists()


def test_sold_out_charges_nothing():
    """The provider is not asked for a copy that could not be held."""
    provider = ScriptedProvider()
    with pytest.raises(SoldOut):
        buy(make_book(), provider=provider)
    assert not provider.asked


@real_commits
def test_the_charge_runs_in_no_transaction_and_after_the_hold_was_committed():
    """Ten seconds of waiting lock nothing, and every other session sees the pending row meanwhile."""
    book = make_book(copies=1)
    with Boxes(1) as boxes:
        seen = []
        look = lambda: list(Order.objects.values_list("status", flat=True))  # noqa: E731
        provider = ScriptedProvider(meanwhile=lambda: seen.extend(boxes.run(look)))
        buy(book, provider=provider)
    assert seen == [["pending"]]
    assert not provider.asked_inside_transaction


def test_a_retry_under_the_first_key_charges_nothing_more():
    """The buyer pressed twice: the first order comes back as it stands, and the provider is asked once."""
    book, provider = make_book(copies=2), ScriptedProvider(UNKNOWN)
    first = buy(book, provider=provider, key="k1")
    again = buy(book, provider=provider, key="k1")
    assert (again, again.status, stock_of(book)) == (first, "pending", 1)
    assert provider.asked["charge"] == ["k1"]


def test_each_checkout_takes_fresh_ids():
    """Without a key of the buyer's, each order gets one of its own."""
    book, ids = make_book(copies=2), numbered()
    first, second = buy(book, ids=ids), buy(book, ids=ids)
    assert first.key != second.key
    assert len(uuid_ids()) <= 80


def test_money_that_lands_after_the_sweeper_abandoned_the_order_is_due_back():
    """The row was released while the charge was under way: one copy back, the money due, no second copy."""
    book = make_book(copies=1)
    provider = ScriptedProvider(meanwhile=lambda: release_guarded(Order.objects.get(), make_permit()))
    order = buy(book, provider=provider)
    assert (order.status, order.settled_by_box, stock_of(book)) == ("abandoned", "box-a", 1)
    refund = Refund.objects.get(order=order)
    assert (refund.amount_minor, refund.state) == (1299, "due")
    assert totals() == (0, 0)


def test_an_order_the_sweeper_completed_meanwhile_keeps_its_money():
    """Untouched because it is paid already: nothing is due back."""
    book = make_book(copies=1)
    provider = ScriptedProvider(meanwhile=lambda: complete_guarded(Order.objects.get(), make_permit()))
    order = buy(book, provider=provider)
    assert (order.status, order.settled_by_box) == ("paid", "box-a")
    assert not Refund.objects.exists()


@checkout_forms
def test_another_amount_than_asked_is_refunded_and_the_copy_released(form):
    """The provider says yes to 12 pence: that is what is due back, and the order is abandoned."""
    book = make_book(copies=1)
    order = buy(book, Answer(Verdict.YES, 12), form=form)
    assert (order.status, stock_of(book)) == ("abandoned", 1)
    refund = Refund.objects.get(order=order)
    assert (refund.amount_minor, refund.why) == (12, "12 landed, 1299 was asked")


@pytest.mark.parametrize("name", ["fenced", "fenced+guarded"])
def test_a_fenced_checkout_is_refused_before_anything_is_held_or_charged(name):
    """A checkout has no token; it says so while nothing has happened yet."""
    book, provider = make_book(copies=1), ScriptedProvider()
    with pytest.raises(CheckoutError, match="choose guarded"):
        buy(book, provider=provider, form=FORMS[name])
    assert (stock_of(book), dict(provider.asked)) == (1, {})


# --- Dispatch -----------------------------------------------------------------------------------------------------


def test_a_paid_order_leaves_the_shelf():
    """dispatched, with one movement out, by whom and when; stock does not change again."""
    book = make_book(copies=1)
    order = buy(book)
    dispatch(order, StandingClock(), by="Jo")
    order.refresh_from_db()
    assert (order.status, order.dispatched_at, order.dispatched_by) == ("dispatched", WEDNESDAY, "Jo")
    assert (order.movement.kind, order.movement.copies, stock_of(book)) == ("dispatched", 1, 0)
    assert totals() == (0, 0)


@pytest.mark.parametrize("status", ["pending", "abandoned", "dispatched"])
def test_only_a_paid_order_is_dispatched(status):
    """The error says what the order is; no copy leaves."""
    order = make_order(make_book(), status)
    with pytest.raises(NotPaid, match=f"{order.reference} is {status}: only a paid order"):
        dispatch(order, StandingClock(), by="Jo")
    assert not StockMovement.objects.filter(order=order).exists()


@real_commits
def test_of_two_who_dispatch_one_order_one_packs_it():
    """Both waited for the order's row: one parcel, one movement."""
    order = make_order(make_book(copies=1), "paid")
    with Boxes() as boxes:
        pack = partial(dispatch, order, StandingClock(), by="Jo")
        results = boxes.run_behind(order, pack, pack)
    assert sorted(type(result) for result in results if result is not None) == [NotPaid]
    assert StockMovement.objects.filter(order=order).count() == 1


@pytest.mark.parametrize("key", ["", "a b", "kéy", "a/b", "x" * 81, "nul\0"])
def test_a_key_the_provider_would_not_take_holds_nothing(key: str) -> None:
    """A copy held under it could never be asked about."""
    book = make_book(1)
    with pytest.raises(CheckoutError, match="letters, digits"):
        hold(book, "Ada", StandingClock(), key, "W-1")
    book.refresh_from_db()
    assert book.stock == 1


@pytest.mark.parametrize("buyer", ["", "x" * 121, "nul\0"])
def test_a_buyer_without_a_printable_name_holds_nothing(buyer: str) -> None:
    """The database would refuse it later, with worse words."""
    with pytest.raises(CheckoutError, match="printable"):
        hold(make_book(1), buyer, StandingClock(), "key-1", "W-1")
