"""Clearing a shop for a scenario, and marking it as a stage so that no real shop is ever cleared."""

from datetime import datetime

from django.db import connection, transaction

from exercises.models import Performance
from exercises.scenarios import wednesday
from shop.models import Book, Order
from sweeper.models import SweepRun

TABLES = [
    *("exercises_performance", "sweeper_event", "sweeper_sweeprun", "sweeper_jobrun"),
    *("shop_straycharge", "shop_refund", "shop_settlement", "shop_stockmovement", "shop_stockcount"),
    *("shop_order", "shop_book", "shop_publisher", "shop_fence"),
]


class NotAStage(Exception):
    """This database holds a shop that no scenario set up; it is left alone."""


def reset(start: datetime, *, lock: str, settle: str, question: str, real: datetime) -> Performance:
    """Clear the shop (users stay), furnish it, and open a performance; all in one commit.

    Raises NotAStage when there are books or orders here that no scenario put here.
    """
    with transaction.atomic():
        if not Performance.objects.exists() and (Book.objects.exists() or SweepRun.objects.exists()):
            raise NotAStage(
                "This database has a shop that no scenario set up, so it was left as it is: "
                "name an empty database in DATABASE_URL, or leave DATABASE_URL out for an embedded one."
            )
        with connection.cursor() as cursor:
            cursor.execute(f"truncate {', '.join(TABLES)} restart identity")
        stage = wednesday.furnish(wednesday.START)
        if start == wednesday.START:
            wednesday.seed_rows(stage)
        return Performance.objects.create(
            scenario=wednesday.NAME, lock=lock, settle=settle, question=question, began_at=start, real_at=real
        )


def standing() -> wednesday.Stage:
    """The stage that `reset` left, read back."""
    return wednesday.Stage(list(Book.objects.order_by("isbn")))


def pending_rows() -> int:
    return Order.objects.filter(status=Order.Status.PENDING).count()
