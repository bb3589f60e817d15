"""Whatever guarded writers do, in whatever order and at whatever moment: the shelf and the catalogue agree."""

import random
from functools import partial
from itertools import count

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from shop.checkout import NotPaid, SoldOut, dispatch, hold, uuid_ids
from shop.fence import raise_fence
from shop.models import Book, Fence, Order, Refund, Settlement, StockMovement
from shop.permit import StaleToken
from shop.refunds import send_due
from shop.settle import FORMS, Form, release_unguarded
from shop.shelf import receive, shelf, totals
from tests.fakes import Boxes, ScriptedProvider, StandingClock, make_book, make_order, make_permit

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "journal"])

BOXES = 3
CLOCK = StandingClock()
TOKENS = count(1)

# One operation: what, on which book, and on which of the book's orders (counted round, oldest first).
operations = st.tuples(
    st.sampled_from(["hold", "retry", "complete", "release", "refund", "dispatch", "receive", "send refunds"]),
    st.integers(0, 1),
    st.integers(0, 3),
    st.sampled_from(["guarded", "fenced+guarded"]),
)
# A round is one operation a box, at once; a history is rounds one after another.
histories = st.lists(st.lists(operations, min_size=1, max_size=BOXES), min_size=1, max_size=10)

# What a writer may be told instead: there was no copy, it was not paid, another run overtook this one.
REFUSALS = (SoldOut, NotPaid, StaleToken)


def settle(form: Form, what: str, order: Order) -> None:
    """As a run would: with a token of its own where the form is fenced, raised before the write."""
    permit = make_permit()
    if form.fenced:
        token = next(TOKENS)
        raise_fence("shelf", token)
        permit = make_permit(fence="shelf", token=token)
    if what == "refund":
        form.refund(order, permit, order.amount_minor, "can't be completed")
    else:
        getattr(form, what)(order, permit)


def act(what: str, book: Book, turn: int, form: str) -> None:
    """Do one operation on this box's own session; a refusal is an answer."""
    orders = list(Order.objects.filter(book=book).order_by("id"))
    order = orders[turn % len(orders)] if orders else None
    try:
        if what == "hold":
            hold(book, "Ada", CLOCK, key=uuid_ids(), reference=uuid_ids()[:20])
        elif what == "retry":  # boxes that retry at once send one key between them
            hold(book, "Ada", CLOCK, key=f"{book.pk}-{turn}", reference=uuid_ids()[:20])
        elif what == "receive":
            receive(book, turn + 1, CLOCK)
        elif what == "send refunds":
            send_due(ScriptedProvider(), CLOCK)
        elif order is not None and what == "dispatch":
            dispatch(order, CLOCK, by="Jo")
        elif order is not None:
            settle(FORMS[form], what, order)
    except REFUSALS:
        pass


def clear_the_shop() -> None:
    for table in (Settlement, Refund, StockMovement, Order, Book, Fence):
        table.objects.all().delete()


def play(boxes: Boxes, history: list[list[tuple[str, int, int, str]]]) -> None:
    """Two books of two copies, then the rounds; after each the books must agree."""
    clear_the_shop()
    books = [make_book(copies=2, number=number) for number in range(2)]
    for together in history:
        calls = [partial(act, what, books[book], turn, form) for what, book, turn, form in together]
        assert boxes.run(*calls) == [None] * len(calls)
        demand_agreement()


def demand_agreement() -> None:
    """stock + held + owed = on the shelf for every book; nothing negative, no order settled twice."""
    assert [(line.title, line.difference) for line in shelf().exclude(difference=0)] == []
    assert totals() == (0, 0)
    assert not Book.objects.filter(stock__lt=0).exists()
    assert all(order.settlements.count() <= 1 for order in Order.objects.prefetch_related("settlements"))
    assert all(refund.order.status == "abandoned" for refund in Refund.objects.select_related("order"))


def test_after_any_guarded_history_the_shelf_and_the_catalogue_agree():
    """Holds, retries, settles, dispatches, receipts and refunds, by three boxes, several at once."""
    with Boxes(BOXES) as boxes:
        # No shrinking: a race does not come out the same way twice, and minutes would go by.
        @settings(max_examples=30, deadline=None, database=None, phases=[Phase.generate])
        @given(histories)
        def any_history(history):
            play(boxes, history)

        any_history()


@pytest.mark.parametrize("form", ["guarded", "fenced+guarded"])
def test_boxes_that_all_settle_the_same_rows_leave_no_phantom(form):
    """The crowd the evening was: every box takes all rows, each in an order of its own, and settles as it likes."""
    book = make_book(copies=8)
    orders = [hold(book, "Ada", CLOCK, key=uuid_ids(), reference=uuid_ids()[:20]) for _ in range(8)]

    def sweep(seed: int) -> None:
        dice = random.Random(seed)
        for order in dice.sample(orders, len(orders)):
            try:
                settle(FORMS[form], dice.choice(["complete", "release", "refund"]), order)
            except StaleToken:
                continue

    with Boxes(BOXES) as boxes:
        assert boxes.run(*(partial(sweep, seed) for seed in range(BOXES))) == [None] * BOXES
    demand_agreement()
    if form == "guarded":
        assert Settlement.objects.count() == len(orders)


def test_the_agreement_is_broken_by_one_unguarded_release_too_many():
    """The check is able to fail: it is asked about the bug and says so."""
    book = make_book()
    order = make_order(book, "abandoned")
    release_unguarded(order, make_permit())
    with pytest.raises(AssertionError, match="Book 0"):
        demand_agreement()
