"""What a statement touches is enough: reduced or not, the same ends, whatever a function of somebody's asks.

Each of these was left out once: the two were taken not to depend on each other.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any

import pytest
from django.db import DatabaseError, connection, transaction
from django.db.models import Case, Value, When

from exercises.lab.database import Database
from exercises.lab.trial import Trial
from shop.models import Publisher

FIRST = Publisher.objects.filter(pk=1)
seen: dict[str, object] = {}
Work = Callable[[], object]


def set_up() -> None:
    seen.clear()
    Publisher.objects.all().delete()
    Publisher.objects.bulk_create(Publisher(pk=number, name=str(number)) for number in (1, 2))


def asked(sql: str, name: str = "") -> None:
    with connection.cursor() as cursor:
        cursor.execute(sql)
        if name:
            seen[name] = cursor.fetchone()


def in_one(*works: Work) -> None:
    with transaction.atomic():
        for work in works:
            work()


def renamed(number: int) -> None:
    Publisher.objects.filter(pk=number).update(name="x")


def noted(count: Callable[[], Any]) -> None:
    seen["found"] = count()


def lock() -> None:
    list(FIRST.select_for_update(no_key=True))


def skipped() -> int:
    return len(FIRST.select_for_update(no_key=True, skip_locked=True))


def failing() -> None:
    with suppress(DatabaseError), connection.cursor() as cursor:
        cursor.execute("select 1 / 0 from shop_book")


def by_a_case() -> list[str]:
    the_second_first = Case(When(pk=1, then=Value(1)), default=Value(0))
    return [publisher.name for publisher in Publisher.objects.filter(id__gt=0).order_by(the_second_first)]


def inserted(name: str) -> None:
    Publisher.objects.create(name=name, pk=len(name) + 2)


PAIRS: dict[str, tuple[Work, Work]] = {
    "the COMMIT of a lock alone, and skip locked": (partial(in_one, lock), partial(in_one, partial(noted, skipped))),
    "the COMMIT of an advisory lock, and try": (
        partial(in_one, partial(asked, "select pg_advisory_xact_lock(5)")),
        partial(in_one, partial(asked, "select pg_try_advisory_xact_lock(5)", "got")),
    ),
    "all but one row": (
        partial(noted, Publisher.objects.exclude(pk=1).filter(name="x").count),
        partial(renamed, 2),
    ),
    "a row by its name": (partial(noted, Publisher.objects.filter(name="x").count), partial(renamed, 1)),
    "a row that gets that name": (
        partial(noted, Publisher.objects.filter(name="x").count),
        lambda: Publisher.objects.filter(name="2").update(name="x"),
    ),
    "a key in the order alone": (partial(noted, by_a_case), partial(renamed, 2)),
    "a write within a WITH": (
        partial(asked, "with a as (update shop_publisher set name = 'x' where id = 2 returning id) select from a"),
        partial(noted, Publisher.objects.filter(name="x").count),
    ),
    "a second table behind a comma": (
        partial(asked, "select count(*) from shop_book b right join (select 1) a on true, shop_publisher p", "count"),
        partial(inserted, "x"),
    ),
    "a table with its schema": (
        partial(asked, "select count(*) from public.shop_publisher where name = 'x'", "count"),
        partial(renamed, 1),
    ),
    "the locks of a transaction whose next statement fails": (
        partial(in_one, lock, failing),
        partial(in_one, partial(noted, skipped)),
    ),
    "a level that a statement chose": (
        partial(
            in_one,
            partial(asked, "set transaction isolation level repeatable read"),
            partial(asked, "select count(*) from shop_book"),
            partial(noted, Publisher.objects.filter(name="x").count),
        ),
        partial(renamed, 1),
    ),
}


@pytest.mark.parametrize("pair", PAIRS)
def test_two_that_can_tell_each_other_apart_are_tried_both_ways_round(database: Database, pair: str) -> None:
    trial = Trial(database, set_up, dict(zip("ab", PAIRS[pair], strict=True)), told)
    reduced, whole = trial.explore(), trial.explore(reduced=False)
    assert len(whole.ends) > 1, "they are worth telling apart"
    assert reduced.ends == whole.ends


def told(errors: Mapping[str, BaseException]) -> str:
    raised = sorted((name, type(error).__name__) for name, error in errors.items())
    return f"{sorted(seen.items())} {raised}"


def test_keys_are_looked_up_once_the_tables_are_there(database: Database) -> None:
    """In a laboratory that is new the migrations come behind the first connection."""
    database.session("a")
    assert database.monitor is not None
    assert "shop_book" in database.monitor.keyed
    assert "shop_settlement" not in database.monitor.keyed
    assert database.monitor.parents["shop_settlement"] == {"shop_order"}
