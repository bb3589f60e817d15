"""A settle with nobody beside it: what it does to one row, and what it leaves as it is."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

from django.db import connection

from exercises.catalogue.slot.settle import Settle
from exercises.handed.checks import TheirsFailed
from exercises.lab.database import Database
from exercises.scenarios.corner import START, furnished_with
from marlow.clock import StandingClock
from shop.models import Book, Order
from shop.permit import Permit

PENDING, PAID, ABANDONED, OTHER = 1, 2, 3, 4  # the rows
STOCK = 3  # copies of their book that are for sale beforehand
# In: when they were settled, twice; the stock. One row is paid, one abandoned; another book has two for sale.
FURNISH = """
update shop_order set status = 'paid', settled_at = %s where id = 2;
update shop_order set status = 'abandoned', settled_at = %s where id = 3;
update shop_book set stock = %s where id = 1;
insert into shop_book (id, isbn, title, author, publisher_id, price_minor, stock)
    overriding system value values (2, '9780000000002', 'Another', 'Nobody', 1, 999, 2)
"""
State = dict[str, int | str]  # of orders and books, by what they are called here


def wrong(database: Database, settle: Settle) -> str:
    """What is wrong with a settle that is `ready`, in a sentence that names the row; nothing where all is well.
    Raises CouldNotDecide.
    """
    try:
        with _furnished():
            return _released(settle) or _untouched(settle)
    except TheirsFailed as failed:
        settle.failed.clear()
        return str(failed)


def _released(settle: Settle) -> str:
    expected = {**_state(), f"order {PENDING}": "abandoned", "stock of book 1": STOCK + 1}
    _release(settle, PENDING)
    return _differs("A pending row was released", expected)


def _untouched(settle: Settle) -> str:
    """Of rows that somebody else has settled, and of the same row once more."""
    for row, what in ((PENDING, "released already"), (ABANDONED, "abandoned"), (PAID, "paid")):
        expected = _state()
        _release(settle, row)
        if found := _differs(f"A row that was {what} was released", expected):
            return found
    return ""


def _release(settle: Settle, row: int) -> None:
    settle.release(Order.objects.get(pk=row), Permit(StandingClock(START), "box-a"))


def _differs(what: str, expected: State) -> str:
    found = _state()
    for name, value in expected.items():
        if found[name] != value:
            return f"{what} with nobody else about, and then {name} is {found[name]}, where it should be {value}."
    return ""


def _state() -> State:
    orders = {f"order {order.pk}": order.status for order in Order.objects.order_by("pk")}
    return {**orders, **{f"stock of book {book.pk}": book.stock for book in Book.objects.order_by("pk")}}


@contextmanager
def _furnished() -> Iterator[None]:
    with furnished_with(OTHER):
        with connection.cursor() as cursor:
            cursor.execute(FURNISH, [START, START - timedelta(minutes=1), STOCK])
        try:
            yield
        finally:
            Book.objects.filter(pk=2).delete()
