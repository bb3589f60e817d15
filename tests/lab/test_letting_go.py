"""Who waits in the database is asked only after what may have freed it: and whatever frees it is such a thing."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime

import pytest
from django.db import DatabaseError, connection, transaction

from exercises.lab.database import Database
from exercises.lab.scheduler import Option, Scheduler, Taken, at
from exercises.lab.statements import read
from exercises.lab.steps import Step
from shop.models import Publisher

START = datetime(2026, 1, 1, tzinfo=UTC)
HELD = Publisher.objects.filter(pk=1)


def lock() -> None:
    list(HELD.select_for_update())


def nothing(name: str) -> None:
    """A step that lets go of nothing, so that nobody is asked after it."""
    at(Step(name, frees=False))


def commit() -> None:
    with transaction.atomic():
        HELD.update(name="a")
        nothing("holds")


def rollback_of_a_lock() -> None:
    with suppress(ZeroDivisionError), transaction.atomic():
        lock()
        nothing("holds")
        raise ZeroDivisionError


def back_to_a_savepoint() -> None:
    with transaction.atomic():
        with suppress(ZeroDivisionError), transaction.atomic():
            lock()
            nothing("holds")
            raise ZeroDivisionError
        nothing("after")


def failure() -> None:
    """The server lets go at once, before the client rolls back."""
    with transaction.atomic():
        lock()
        nothing("holds")
        with pytest.raises(DatabaseError), connection.cursor() as cursor:
            cursor.execute("select 1 / 0 from shop_publisher")
        nothing("after")
        transaction.set_rollback(True)


def end_of_the_session() -> None:
    transaction.set_autocommit(False)
    lock()
    nothing("holds")
    connection.close()


WAYS = [commit, rollback_of_a_lock, back_to_a_savepoint, failure, end_of_the_session]


class BehindTheHolder:
    """The first one, until it holds; then the others, the last one first, until they wait; then it to its end."""

    def choose(self, options: Sequence[Option]) -> int:
        return -1 % len(options) if options[0].step.label == "holds" else 0


def played(database: Database, work: dict[str, Callable[[], object]]) -> list[Taken]:
    Publisher.objects.all().delete()
    Publisher.objects.create(pk=1, name="1")
    scheduler = Scheduler(BehindTheHolder(), START)
    for name, does in work.items():
        database.session(scheduler.start(name, name, does).name)
    try:
        scheduler.run()
    finally:
        database.tidy()
    assert [fibre.error for fibre in scheduler.fibres if fibre.error] == []
    return scheduler.taken


@pytest.mark.parametrize("way", WAYS)
def test_whoever_is_freed_can_go_on_in_the_very_next_step(database: Database, way: Callable[[], None]) -> None:
    def holder() -> None:
        way()
        nothing("after")

    taken = played(database, {"a": holder, "b": lambda: HELD.update(name="b")})
    assert not any("goes on" in option.step.label for option in first(taken, "holds").options)
    assert [option.who for option in first(taken, "after").options] == ["a", "b"]


def test_one_that_goes_on_may_free_the_next(database: Database) -> None:
    """By its own COMMIT, which the server does with it, however long that takes: all can go on then."""

    def holder() -> None:
        commit()
        nothing("after")

    def takes_a_while() -> None:
        with connection.cursor() as cursor:
            cursor.execute("update shop_publisher set name = 'b' where id = 1 returning pg_sleep(0.02)")

    taken = played(database, {"a": holder, "b": takes_a_while, "c": takes_a_while, "d": takes_a_while})
    assert [option.who for option in first(taken, "after").options] == ["a", "b", "c", "d"]


def test_nobody_is_asked_after_a_step_that_lets_go_of_nothing(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once when it is seen to wait, and no more until the COMMIT, after which it does not wait."""

    def holder() -> None:
        with transaction.atomic():
            HELD.update(name="a")
            nothing("holds")
            for number in range(20):
                HELD.update(name=f"a {number}")

    database.session("a")
    monitor = database.monitor
    assert monitor is not None
    asked: list[int] = []
    blockers = monitor.blockers
    monkeypatch.setattr(monitor, "blockers", lambda pid: asked.append(pid) or blockers(pid))
    scheduled = played(database, {"a": holder, "b": lambda: HELD.update(name="b")})
    waits = asked.count(database.session("b").connection.pgconn.backend_pid)
    assert len(scheduled) > 20
    assert 1 <= waits < 10


@pytest.mark.parametrize(
    ("sql", "frees"),
    [
        ('SELECT 1 FROM "shop_book" WHERE "shop_book"."id" = %s FOR UPDATE', False),
        ('UPDATE "shop_book" SET "stock" = 1', False),
        ("select pg_try_advisory_lock(1)", False),
        ("select pg_advisory_unlock(1)", True),
        ("select pg_terminate_backend(pid) from pg_stat_activity", True),
        ("select whatever(1)", True),
        ("ROLLBACK TO SAVEPOINT s1", True),
        ('DELETE FROM "shop_book"; commit', True),
    ],
)
def test_what_is_not_understood_may_free_somebody(sql: str, frees: bool) -> None:
    assert read(sql, (1,)).frees is frees


def first(taken: Sequence[Taken], label: str) -> Taken:
    return next(step for step in taken if step.option.step.label == label)
