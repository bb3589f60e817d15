"""The shelf against the catalogue."""

from datetime import timedelta

import pytest

from shop.checkout import checkout, dispatch, uuid_ids
from shop.models import Book, StockCount, StockMovement
from shop.settle import release_guarded, release_unguarded
from shop.shelf import Totals, receive, shelf, totals
from tests.fakes import UNKNOWN, WEDNESDAY, ScriptedProvider, StandingClock, make_book, make_order, make_permit

pytestmark = pytest.mark.django_db


def buy(book, *script):
    return checkout(book, "Ada", provider=ScriptedProvider(*script), clock=StandingClock(), ids=uuid_ids)


def count(book, copies, minutes=0):
    at = WEDNESDAY + timedelta(minutes=minutes)
    return StockCount.objects.create(book=book, copies=copies, counted_by="Jo", at=at)


def test_every_copy_is_in_stock_held_owed_or_gone():
    """Five arrived: one held, one owed, one dispatched, two in stock; four stand on the shelf."""
    book = make_book(copies=5)
    buy(book, UNKNOWN)
    buy(book)
    dispatch(buy(book), StandingClock(), by="Jo")
    line = shelf().get()
    assert (line.stock, line.held, line.owed) == (2, 1, 1)
    assert (line.promised, line.on_shelf, line.difference) == (4, 4, 0)


def test_a_book_nobody_touched_has_zeros_and_no_count():
    """No orders, no movements, no count: zeros, not nulls; the count is unknown, not zero."""
    make_book()
    line = shelf().get()
    assert (line.held, line.owed, line.promised, line.on_shelf, line.difference) == (0, 0, 0, 0, 0)
    assert (line.counted, line.counted_at) == (None, None)


def test_a_settled_order_is_neither_held_nor_owed():
    """Abandoned and dispatched orders promise nothing."""
    book = make_book()
    for status in ("abandoned", "dispatched"):
        make_order(book, status)
    line = shelf().get()
    assert (line.held, line.owed) == (0, 0)


def test_a_copy_released_twice_is_phantom():
    """What the unguarded form leaves behind: one more promised than the shelf holds."""
    book = make_book(copies=1)
    order = buy(book, UNKNOWN)
    for _ in range(2):
        release_unguarded(order, make_permit())
    line = shelf().get()
    assert (line.promised, line.on_shelf, line.difference) == (2, 1, 1)
    assert totals() == Totals(phantom=1, lost=0)


def test_friday_the_phantoms_were_sold_and_the_shelf_is_bare():
    """Two copies held, each released twice; two sold and sent. Two promised, none on the shelf, none counted."""
    book = make_book(copies=2)
    for order in [buy(book, UNKNOWN), buy(book, UNKNOWN)]:
        release_unguarded(order, make_permit("box-a"))
        release_unguarded(order, make_permit("box-b"))
    for order in [buy(book), buy(book)]:
        dispatch(order, StandingClock(), by="Jo")
    count(book, 0)
    line = shelf().get()
    assert (line.stock, line.on_shelf, line.difference, line.counted) == (2, 0, 2, 0)


def test_the_same_friday_guarded_has_no_phantom():
    """Each copy went back once, both were sold, and the catalogue says none."""
    book = make_book(copies=2)
    for order in [buy(book, UNKNOWN), buy(book, UNKNOWN)]:
        release_guarded(order, make_permit("box-a"))
        release_guarded(order, make_permit("box-b"))
    for order in [buy(book), buy(book)]:
        dispatch(order, StandingClock(), by="Jo")
    line = shelf().get()
    assert (line.stock, line.on_shelf, line.difference) == (0, 0, 0)


def test_a_copy_nobody_promises_is_lost():
    """On the shelf and not in the catalogue: a negative difference."""
    book = make_book(copies=3)
    Book.objects.filter(pk=book.pk).update(stock=1)
    assert shelf().get().difference == -2
    assert totals() == Totals(phantom=0, lost=2)


def test_phantom_and_lost_are_summed_apart():
    """One book's phantom is not made up for by another's lost copy; without books both are 0."""
    assert totals() == Totals(phantom=0, lost=0)
    for number, stock in enumerate((4, 5, 0, 2)):
        book = make_book(copies=2, number=number)
        Book.objects.filter(pk=book.pk).update(stock=stock)
    assert totals() == Totals(phantom=5, lost=2)
    assert totals(Book.objects.filter(title="Book 1")) == Totals(phantom=3, lost=0)


def test_the_last_count_is_the_one_that_counts():
    """By its time, and by its row where two have the same time."""
    book = make_book()
    count(book, 3, minutes=10)
    count(book, 7, minutes=5)
    assert (shelf().get().counted, shelf().get().counted_at) == (3, WEDNESDAY + timedelta(minutes=10))
    count(book, 4, minutes=10)
    assert shelf().get().counted == 4


def test_many_orders_movements_and_counts_do_not_multiply_one_another():
    """Three of each on one book, as a join would count nine or twenty-seven."""
    book = make_book()
    for number in range(3):
        make_order(book, "pending")
        make_order(book, "paid")
        receive(book, 4, StandingClock())
        count(book, number, minutes=number)
    line = shelf().get()
    assert (line.held, line.owed, line.on_shelf, line.counted) == (3, 3, 12, 2)


@pytest.mark.parametrize("books", [1, 12])
def test_the_figures_of_any_number_of_books_are_one_query(books, django_assert_num_queries):
    """And the totals are one more."""
    for number in range(books):
        buy(make_book(copies=2, number=number))
    with django_assert_num_queries(1):
        assert len(shelf()) == books
    with django_assert_num_queries(1):
        totals()


def test_differences_are_filtered_and_sorted_by_the_database():
    """Most phantom first, those that agree left out; a narrower set of books stays narrow."""
    for number, stock in enumerate((2, 5, 1, 3)):
        book = make_book(copies=2, number=number)
        Book.objects.filter(pk=book.pk).update(stock=stock)
    differing = shelf().exclude(difference=0).order_by("-difference")
    assert [(line.title, line.difference) for line in differing] == [("Book 1", 3), ("Book 3", 1), ("Book 2", -1)]
    assert [line.title for line in shelf(Book.objects.filter(title="Book 2"))] == ["Book 2"]


def test_copies_that_arrive_are_on_the_shelf_and_in_stock():
    """Both in one commit, so the books agree at every moment."""
    book = make_book()
    receive(book, 6, StandingClock())
    line = shelf().get()
    assert (line.stock, line.on_shelf, line.difference) == (6, 6, 0)
    assert StockMovement.objects.get().at == WEDNESDAY
