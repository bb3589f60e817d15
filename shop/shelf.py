"""The shelf against the catalogue.

What the catalogue promises of a book is its stock, the copies held by pending orders, and the copies owed to paid
ones. What the shelf holds is what came onto it less what left. The two are equal, or copies are phantom or lost.
"""

from typing import TYPE_CHECKING, NamedTuple, TypedDict

from django.db import transaction
from django.db.models import Case, Count, F, IntegerField, OuterRef, Q, QuerySet, Subquery, Sum, When
from django.db.models.functions import Coalesce

from marlow.clock import Clock
from shop.models import Book, Order, StockCount, StockMovement

if TYPE_CHECKING:
    from datetime import datetime

    from django_stubs_ext import WithAnnotations


class Figures(TypedDict):
    """What `shelf` adds to a Book, in copies. `counted` and `counted_at` are None where nobody ever counted."""

    held: int
    owed: int
    promised: int
    on_shelf: int
    difference: int
    counted: "int | None"
    counted_at: "datetime | None"


if TYPE_CHECKING:
    ShelvedBook = WithAnnotations[Book, Figures]


def shelf(books: QuerySet[Book] | None = None) -> "QuerySet[ShelvedBook]":
    """Books with their Figures: one query however many, each figure filterable and sortable by its name.

    held: pending orders. owed: paid, not yet dispatched. promised: stock + held + owed. on_shelf: received less
    dispatched. difference: promised less on_shelf, positive for phantom copies, negative for lost ones. counted and
    counted_at: the last person's count of the shelf.
    """
    counts = StockCount.objects.filter(book=OuterRef("pk")).order_by("-at", "-id")
    return (Book.objects.all() if books is None else books).annotate(
        held=_orders(Order.Status.PENDING),
        owed=_orders(Order.Status.PAID),
        on_shelf=_on_shelf(),
        promised=F("stock") + F("held") + F("owed"),
        difference=F("promised") - F("on_shelf"),
        counted=Subquery(counts.values("copies")[:1]),
        counted_at=Subquery(counts.values("at")[:1]),
    )


class Totals(NamedTuple):
    """Over all books, in copies: promised but on no shelf, and on the shelf but promised to nobody."""

    phantom: int
    lost: int


def totals(books: QuerySet[Book] | None = None) -> Totals:
    """Phantom and lost copies, summed apart: a copy too many of one book makes up for no other's. One query."""
    sums = shelf(books).aggregate(
        phantom=Coalesce(Sum("difference", filter=Q(difference__gt=0)), 0),
        lost=Coalesce(Sum("difference", filter=Q(difference__lt=0)), 0),
    )
    return Totals(phantom=sums["phantom"], lost=-sums["lost"])


def receive(book: Book, copies: int, clock: Clock) -> None:
    """Copies arrive (one or more): onto the shelf and into stock, in one commit."""
    with transaction.atomic():
        Book.objects.filter(pk=book.pk).update(stock=F("stock") + copies)
        StockMovement.objects.create(book=book, kind=StockMovement.Kind.RECEIVED, copies=copies, at=clock.now())


def _orders(status: Order.Status) -> Coalesce:
    """select count(*) from shop_order where book_id = book and status = :status; a book without any has 0."""
    of_book = Order.objects.filter(book=OuterRef("pk"), status=status).order_by().values("book")
    return Coalesce(Subquery(of_book.annotate(copies=Count("pk")).values("copies")), 0)


def _on_shelf() -> Coalesce:
    """select sum(copies, dispatched ones negative) from shop_stockmovement where book_id = book; 0 without any."""
    signed = Case(
        When(kind=StockMovement.Kind.RECEIVED, then=F("copies")),
        default=-F("copies"),
        output_field=IntegerField(),
    )
    of_book = StockMovement.objects.filter(book=OuterRef("pk")).order_by().values("book")
    return Coalesce(Subquery(of_book.annotate(on_shelf=Sum(signed)).values("on_shelf")), 0)
