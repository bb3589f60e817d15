"""What the tables refuse, whoever writes to them."""

from itertools import product

import pytest
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction

from shop.isbn import validate_isbn13
from shop.models import Book, ForbiddenMove, Order, StockMovement
from tests.fakes import WEDNESDAY, make_book, make_order

pytestmark = pytest.mark.django_db

STATUSES = [status.value for status in Order.Status]


@pytest.mark.parametrize("isbn", ["9780000000002", "9780306406157", "9791234567896"])
def test_an_isbn_with_the_right_check_digit_is_taken(isbn):
    """Both prefixes, and a check digit computed by hand elsewhere."""
    validate_isbn13(isbn)


@pytest.mark.parametrize(
    "isbn",
    [
        pytest.param("", id="empty"),
        pytest.param("978030640615", id="twelve digits"),
        pytest.param("97803064061570", id="fourteen digits"),
        pytest.param("978-0306406157", id="dashes"),
        pytest.param(" 978030640615", id="a space"),
        pytest.param("9780306406157\n", id="a newline after it"),
        pytest.param("978030640615\n", id="a newline in it"),
        pytest.param("978030640615X", id="a ten-digit ISBN's X"),
        pytest.param("+978030640615", id="a sign"),
        pytest.param("9770306406158", id="another prefix"),
        pytest.param("9780306406158", id="wrong check digit"),
        pytest.param("9870306406157", id="two digits swapped"),
        pytest.param("٩٧٨٠٣٠٦٤٠٦١٥٧", id="Arabic-Indic digits"),
        pytest.param("９７８０３０６４０６１５７", id="full-width digits"),
        pytest.param("978٠306406157", id="one digit of another script"),
        pytest.param("978030640615⁷", id="a superscript digit"),
    ],
)
def test_a_malformed_isbn_is_refused_with_a_sentence(isbn):
    """The validator says no and why; a number that merely looks right is no ISBN."""
    with pytest.raises(ValidationError) as refused:
        validate_isbn13(isbn)
    assert str(refused.value.messages[0]).endswith((".", "?"))


@pytest.mark.parametrize("isbn", ["978030640615X", "1234567890123", "٩٧٨٠٣٠٦٤٠٦١٥٧", "97803064\n6157"])
def test_the_database_too_refuses_what_is_not_thirteen_digits(isbn):
    """Past every form and validator, the constraint holds."""
    book = make_book()
    with pytest.raises(IntegrityError, match="book_isbn_thirteen_digits"):
        Book.objects.filter(pk=book.pk).update(isbn=isbn)


def test_the_database_refuses_negative_stock_even_through_update():
    """`update()` runs no validator; the constraint is the database's."""
    book = make_book(copies=1)
    with pytest.raises(IntegrityError, match="book_stock_not_negative"):
        Book.objects.filter(pk=book.pk).update(stock=-1)


def test_a_form_refuses_negative_stock_with_a_sentence():
    """`full_clean` says so before the database has to."""
    book = make_book()
    book.stock = -1
    with pytest.raises(ValidationError, match="stock"):
        book.full_clean()


def test_two_orders_never_share_a_key():
    """The idempotency key is what makes a retry one order."""
    book = make_book()
    make_order(book, key="once")
    with pytest.raises(IntegrityError, match="key"):
        make_order(book, key="once", buyer="Bea")


def test_an_order_leaves_the_shelf_once():
    """One dispatch movement an order, by a unique constraint."""
    book = make_book()
    order = make_order(book, "paid")
    leaves = {"book": book, "kind": StockMovement.Kind.DISPATCHED, "copies": 1, "order": order, "at": WEDNESDAY}
    StockMovement.objects.create(**leaves)
    with pytest.raises(IntegrityError, match="order_id"):
        StockMovement.objects.create(**leaves)


def test_a_movement_moves_at_least_one_copy():
    """Zero copies received is not a movement."""
    book = make_book()
    with pytest.raises(IntegrityError, match="movement_moves_something"):
        StockMovement.objects.create(book=book, kind="received", copies=0, at=WEDNESDAY)


def set_status(order: Order, status: str) -> None:
    """By plain update, with whatever times the row's other constraints ask for."""
    Order.objects.filter(pk=order.pk).update(
        status=status,
        settled_at=None if status == "pending" else WEDNESDAY,
        dispatched_at=WEDNESDAY if status == "dispatched" else None,
    )


# Whatever the unguarded writes do must get through: the bug has to be seen.
LET_THROUGH = {
    ("pending", "paid"),
    ("pending", "abandoned"),
    ("paid", "dispatched"),
    ("paid", "abandoned"),
    ("abandoned", "paid"),
} | {(status, status) for status in STATUSES}


@pytest.mark.parametrize(("source", "target"), sorted(LET_THROUGH))
def test_the_database_lets_through_what_the_settles_do(source, target):
    """All that Order.FOLLOWS allows, and what the unguarded forms do beyond it."""
    order = make_order(make_book(), source)
    set_status(order, target)
    order.refresh_from_db()
    assert order.status == target


@pytest.mark.parametrize(("source", "target"), sorted(set(product(STATUSES, STATUSES)) - LET_THROUGH))
def test_the_database_refuses_every_other_move(source, target):
    """No way back from dispatched or to pending, no parcel for an unpaid order; the sentence names the order."""
    order = make_order(make_book(), source)
    with (
        pytest.raises(IntegrityError, match=f"{order.reference} can't go from {source} to {target}"),
        transaction.atomic(),
    ):
        set_status(order, target)
    order.refresh_from_db()
    assert order.status == source


@pytest.mark.parametrize(("source", "target"), sorted(product(STATUSES, STATUSES)))
def test_code_allows_exactly_the_moves_that_follow(source, target):
    """`demand_move` is the table FOLLOWS, and its sentence says what would be allowed."""
    if (source, target) in {("pending", "paid"), ("pending", "abandoned"), ("paid", "dispatched")}:
        Order.demand_move(source, target)
    else:
        with pytest.raises(ForbiddenMove, match=f"from {source} to {target}: from {source} it may become"):
            Order.demand_move(source, target)


def test_a_form_refuses_a_move_that_may_not_follow():
    """An order saved through a form is compared with the row as it stands."""
    order = make_order(make_book(), "abandoned")
    order.status = Order.Status.PAID
    with pytest.raises(ValidationError, match="can't go from abandoned to paid"):
        order.full_clean()


def test_a_form_lets_an_order_stay_and_a_new_one_begin():
    """Saving an order unchanged is no move, and neither is the first save."""
    order = make_order(make_book(), "paid")
    order.full_clean()
    Order(reference="new", key="new", book=order.book, buyer="Ada", amount_minor=1, created_at=WEDNESDAY).full_clean()
