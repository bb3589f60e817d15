"""The shelf against the catalogue: every book, and for one book where a difference comes from."""

from typing import Any

from django.core.paginator import Paginator
from django.db.models import Count, Exists, OuterRef, Q, QuerySet, Sum
from django.db.models.functions import Abs
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404

from shop.admin.page import Page, asked, render
from shop.models import Book, Order, Refund, StockMovement, StrayCharge
from shop.shelf import shelf, totals
from shop.surplus import surplus

A_PAGE = 100  # books
AT_MOST = 50  # rows of each kind on a book's page; the rest is a link away


def shelf_view(request: HttpRequest) -> HttpResponse:
    """Every book with its figures, the ones that differ first. `?show=differs`, `?q=`, `?p=`."""
    query, differs = asked(request, "q"), asked(request, "show") == "differs"
    everything = shelf(Book.objects.select_related("publisher"))
    found = everything.filter(_matches(query)) if query else everything
    if differs:
        found = found.exclude(difference=0)
    page = Paginator(found.order_by(Abs("difference").desc(), "title", "pk"), A_PAGE).get_page(asked(request, "p"))
    return render(
        request,
        "admin/shop/shelf.html",
        "The shelf against the catalogue",
        page=page,
        pages=page.paginator.get_elided_page_range(page.number),
        query=query,
        differs=differs,
        totals=totals(),
        books=Book.objects.count(),
        differing=shelf().exclude(difference=0).count(),
        strays=_strays(),
    )


def book_view(request: HttpRequest, book: int) -> HttpResponse:
    """One book: the sum spelled out, the orders that make the difference, and everything that was written down."""
    row: Any = get_object_or_404(shelf(Book.objects.select_related("publisher")), pk=book)
    orders = surplus(Order.objects.filter(book=book)).prefetch_related("settlements")
    guilty = list(orders.exclude(surplus=0).order_by("created_at", "pk")[:AT_MOST])
    explained = sum(order.surplus for order in guilty)
    return render(
        request,
        "admin/shop/shelf_book.html",
        row.title,
        book=row,
        moved=_moved(row.movements.all()),
        guilty=guilty,
        explained=explained,
        unexplained=row.difference - explained,
        **_beside(row, orders),
    )


def _beside(book: Book, orders: QuerySet[Any]) -> dict[str, Any]:
    """The last of everything that was written down about this book."""
    return {
        "orders": orders.order_by("-created_at", "-pk")[:AT_MOST],
        "orders_in_all": book.orders.count(),
        "movements": book.movements.select_related("order").order_by("-at", "-pk")[:AT_MOST],
        "counts": book.counts.all()[:AT_MOST],
        "strays": StrayCharge.objects.filter(order__book=book).select_related("order")[:AT_MOST],
    }


def _strays() -> dict[str, int]:
    """Charges that no order keeps: how many, how much money, and how much of it has been given back (minor units)."""
    given_back = Refund.objects.filter(charge_key=OuterRef("key"), state=Refund.State.SENT)
    return StrayCharge.objects.aggregate(
        charges=Count("pk"),
        minor=Sum("amount_minor", default=0),
        back=Sum("amount_minor", filter=Exists(given_back), default=0),
    )


def _moved(movements: QuerySet[StockMovement]) -> dict[str, int]:
    """Copies received and dispatched."""
    of = {kind: Sum("copies", filter=Q(kind=kind), default=0) for kind in StockMovement.Kind.values}
    return movements.aggregate(**of)


def _matches(query: str) -> Q:
    return Q(title__icontains=query) | Q(author__icontains=query) | Q(isbn__icontains=query)


SHELF = Page(
    "shop/shelf/",
    "shop_shelf",
    "The shelf against the catalogue",
    (
        *("shop.view_book", "shop.view_order", "shop.view_stockmovement", "shop.view_stockcount"),
        "shop.view_straycharge",
    ),
    shelf_view,
)
BOOK = Page(
    "shop/shelf/<int:book>/",
    "shop_shelf_book",
    "One book's shelf, explained",
    (*SHELF.needs, "shop.view_settlement"),
    book_view,
)
PAGES = [SHELF, BOOK]
