"""Clearing a shop for a scenario, and marking it as a stage so that no real shop is ever cleared."""

from datetime import datetime

from django.apps import apps
from django.contrib.auth import get_user_model
from django.db import connection, transaction

from exercises.models import Performance
from exercises.scenarios import wednesday
from shop.models import Book, Order, Publisher
from sweeper.models import SweepRun

TABLES = [
    *("exercises_performance", "sweeper_event", "sweeper_sweeprun", "sweeper_jobrun"),
    *("shop_straycharge", "shop_refund", "shop_settlement", "shop_stockmovement", "shop_stockcount"),
    *("shop_order", "shop_book", "shop_publisher", "shop_fence"),
]


class NotAStage(Exception):
    """This database holds what no scenario put there; it is left alone."""


def demand_stage(setting: str = "DATABASE_URL") -> bool:
    """Raise NotAStage for a database with a shop that no scenario set up; nothing has been touched then.

    `setting`: the one that named it. True if a scenario was played here before, False for an empty database, with or
    without Marlow's tables.
    """
    with connection.cursor() as cursor:
        there = set(connection.introspection.table_names(cursor))
    if Performance._meta.db_table in there and Performance.objects.exists():
        return True
    if there - {"django_migrations"} and _anything(there):
        raise NotAStage(
            "This database is in use and no scenario set it up, so it was left as it was: "
            f"name an empty database in {setting}, or leave {setting} out for an embedded one."
        )
    return False


def _anything(there: set[str]) -> bool:
    """Whether somebody's data is here: a table that is not ours, or a shop, a run or a user in one that is."""
    ours = {model._meta.db_table for model in apps.get_models(include_auto_created=True)} | {"django_migrations"}
    counted = (Publisher, Book, Order, SweepRun, get_user_model())
    return bool(there - ours) or any(
        model._meta.db_table in there and model._default_manager.exists() for model in counted
    )


def reset(start: datetime, *, lock: str, settle: str, question: str, real: datetime) -> Performance:
    """Clear the shop (users stay), furnish it, and open a performance; all in one commit. `demand_stage` first."""
    with transaction.atomic():
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
