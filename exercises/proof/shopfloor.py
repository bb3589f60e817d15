"""The shop of a cell: one book, one copy, held by one order that nobody came back for."""

import uuid
from datetime import datetime, timedelta

from django.db import connections

from exercises.stage import TABLES
from marlow.clock import real_now
from shop.isbn import check_digit
from shop.models import Book, Order, Publisher, StockMovement

TWELVE = "978000000001"


def furnish() -> Order:
    """Clear the lane's shop and set it up anew. Returns the pending order, old enough to be swept."""
    with connections["default"].cursor() as cursor:
        cursor.execute(f"truncate {', '.join(TABLES)} restart identity")
    return put_up(real_now(), f"proof-{uuid.uuid4().hex}")


def put_up(now: datetime, key: str) -> Order:
    """In an empty shop. Returns the pending order, with this key, old enough at that moment to be swept."""
    book = Book.objects.create(
        isbn=TWELVE + check_digit(TWELVE),
        title="The Lighthouse Ledger",
        author="Edith Marchmont",
        publisher=Publisher.objects.create(name="Lantern House"),
        price_minor=1299,
        stock=0,
    )
    StockMovement.objects.create(book=book, kind=StockMovement.Kind.RECEIVED, copies=1, at=now - timedelta(days=1))
    return Order.objects.create(
        reference="P-01",
        key=key,
        book=book,
        buyer="R. Patel",
        amount_minor=book.price_minor,
        status=Order.Status.PENDING,
        created_at=now - timedelta(minutes=10),
    )
