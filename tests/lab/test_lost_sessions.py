"""A session that is lost: its backend is made as good as new and kept, and nobody can tell it from one that ended."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from itertools import pairwise

import pytest
from django.db import InterfaceError, OperationalError, connection, transaction

from exercises.lab.database import Database
from exercises.lab.explore import every_order
from exercises.lab.scheduler import Option, Policy, Scheduler, Taken, at
from exercises.lab.steps import EVERYTHING, Mode, Step, Touch
from exercises.scenarios.replay import TIDYING
from shop.models import Publisher

START = datetime(2026, 1, 1, tzinfo=UTC)
LOCK = 7
Told = tuple[tuple[tuple[str, str], ...], tuple[str, ...], str]


def ask(sql: str) -> object:
    with connection.cursor() as cursor:
        cursor.execute(sql)
        return cursor.fetchone()[0]


def set_up() -> None:
    Publisher.objects.all().delete()
    Publisher.objects.create(pk=1, name="1")


def count_one_up() -> None:
    """Once more where the session was lost on the way."""
    try:
        _count()
    except (OperationalError, InterfaceError) as lost:
        connection.close()
        _count()
        raise RuntimeError("at the second try") from lost


def _count() -> None:
    with transaction.atomic():
        row = Publisher.objects.select_for_update().get(pk=1)
        Publisher.objects.filter(pk=1).update(name=str(int(row.name) + 1))


def rename() -> None:
    with transaction.atomic():
        Publisher.objects.filter(pk=1).update(name="10")


def lose_a(database: Database) -> None:
    at(Step("a is lost", frozenset({Touch(EVERYTHING, Mode.COMMIT)})))
    database.lose("a")


def play(database: Database, policy: Policy, work: dict[str, Callable[[], object]]) -> tuple[Sequence[Taken], Told]:
    """What was done, by whom, what each died of, and what was counted."""
    set_up()
    scheduler = Scheduler(policy, START)
    for name, does in work.items():
        database.session(scheduler.start(name, name, does).name)
    try:
        scheduler.run()
    finally:
        database.tidy()
    errors = [f"{fibre.name}: {reason(fibre.error)}" for fibre in scheduler.fibres if fibre.error]
    steps = tuple((step.option.who, step.option.step.label) for step in scheduler.taken)
    return scheduler.taken, (steps, tuple(errors), Publisher.objects.get(pk=1).name)


def reason(error: BaseException) -> str:
    """With what it came of, but for Postgres' own context, which names a row by its place."""
    cause = "" if error.__cause__ is None else f" of {type(error.__cause__).__name__}: {error.__cause__}"
    return f"{error}{cause}".partition("\n")[0]


def every_end(database: Database) -> list[Told]:
    told: list[Told] = []

    def one(policy: Policy) -> Sequence[Taken]:
        work = {"a": count_one_up, "b": rename, "fault": lambda: lose_a(database)}
        taken, end = play(database, policy, work)
        told.append(end)
        return taken

    for _ in every_order(one):
        pass
    return told


def test_it_comes_to_the_same_as_by_force_in_every_order(database: Database) -> None:
    """Steps, errors to the letter, and what was counted: wherever it strikes, a blocked statement included."""
    kept = every_end(database)
    with Database(database.described, TIDYING, by_force=True).lent() as forced:
        ended = every_end(forced)
    assert kept == ended
    struck_while_blocked = ("fault", "a is lost"), ("a", "SELECT shop_publisher goes on")
    assert any(struck_while_blocked in pairwise(steps) for steps, _, _ in kept)
    assert {errors for _, errors, _ in kept} > {()}, "somewhere it struck, and somewhere too late"


@pytest.mark.parametrize("open_transaction", [False, True])
def test_what_the_session_had_is_gone_at_once(database: Database, open_transaction: bool) -> None:
    """Its lock, its mark, its writes, what it prepared and what it made for itself; it is another backend then."""
    seen: dict[str, object] = {}

    def holder() -> None:
        seen["pid"] = ask("select pg_backend_pid()")
        ask(f"select pg_try_advisory_lock({LOCK})")
        ask("select set_config('marlow.run', 'mine', false)")
        with connection.cursor() as cursor:
            cursor.execute("create temp table mine (id int); prepare theirs as select 1; listen news")
        if open_transaction:
            transaction.set_autocommit(False)
            Publisher.objects.filter(pk=1).update(name="never")
        at(Step("waits"))
        with pytest.raises(OperationalError):
            ask("select 1")
        connection.close()
        seen["next"] = ask("select pg_backend_pid()")

    def other() -> None:
        at(Step("its turn"))
        database.lose("holder")
        seen["free"] = ask(f"select pg_try_advisory_lock({LOCK})")
        seen["name"] = Publisher.objects.get(pk=1).name
        seen["locks"] = ask(f"select count(*) from pg_locks where pid = {seen['pid']} and locktype <> 'virtualxid'")

    class HolderFirst:
        """Until it waits; then the other one, to its end."""

        def choose(self, options: Sequence[Option]) -> int:
            return len(options) - 1 if options[0].step.label == "waits" else 0

    _, (_, errors, _) = play(database, HolderFirst(), {"holder": holder, "other": other})
    assert errors == ()
    assert (seen["free"], seen["name"], seen["locks"]) == (True, "1", 0)
    assert seen["next"] != seen["pid"]
    heirs = (database.session(f"heir {number}") for number in range(10))
    wrapper = next(heir for heir in heirs if seen["pid"] in heir.had)
    with wrapper.cursor() as cursor:
        cursor.execute("select current_setting('marlow.run', true), to_regclass('pg_temp.mine')")
        assert cursor.fetchone() in (("", None), (None, None))
        cursor.execute("select (select count(*) from pg_prepared_statements), count(*) from pg_listening_channels()")
        assert cursor.fetchone() == (0, 0)
        cursor.execute("select current_setting('deadlock_timeout')")
        assert cursor.fetchone() == ("10min",), "as it was opened"
    database.tidy()
