"""A trial of anybody's functions: what may be tried, and how chance is found out."""

from collections.abc import Callable
from itertools import count

import pytest
from django.db import connection

from exercises.lab.database import Database
from exercises.lab.trial import Errors, NoTrial, Trial, Unsteady

TABLE = "drop table if exists trial_row; create table trial_row (id int primary key, worth int not null)"
READ = 'select "trial_row"."worth" from "trial_row" where "trial_row"."id" = %s'
WRITE = 'update "trial_row" set "worth" = "worth" + 1 where "trial_row"."id" = %s'


@pytest.fixture(autouse=True)
def table(database: Database) -> None:
    ask(TABLE)


def ask(sql: str, *values: object) -> None:
    with connection.cursor() as cursor:
        cursor.execute(sql, values)


def set_up() -> None:
    ask("delete from trial_row; insert into trial_row values (1, 0), (2, 0)")


def write_one() -> None:
    ask(READ, 1)
    ask(WRITE, 1)


def nothing_is_wrong(errors: Errors) -> None:
    return None


def trial(database: Database, work: Callable[[], object]) -> Trial:
    return Trial(database, set_up, {"a": work, "b": work}, nothing_is_wrong)


def test_what_reads_no_chance_is_the_same_twice(database: Database) -> None:
    """And is told as if it had been played once."""
    once, twice = (trial(database, write_one).explore(twice=which) for which in (False, True))
    assert twice.exhausted
    assert twice.schedules == once.schedules > 1


def test_another_statement_is_named_with_its_step(database: Database) -> None:
    """The first that differed, with who was about to ask it."""
    coin = count()

    def tosses() -> None:
        ask(WRITE, 1)
        ask(READ if next(coin) % 2 else WRITE, 2)

    alone = Trial(database, set_up, {"a": tosses}, nothing_is_wrong)
    with pytest.raises(Unsteady, match=r"step 1, first: a: UPDATE .*\. Then: a: SELECT .* chance"):
        alone.explore(twice=True)
    assert alone.explore().exhausted, "played once, it looks like one order"


def test_another_row_is_named_too(database: Database) -> None:
    """The same statement, and other ids each time."""
    ids = count(1)
    with pytest.raises(Unsteady, match=r"step 0, first: a: UPDATE .*id=1.* Then: a: UPDATE .*id=3"):
        trial(database, lambda: ask(WRITE, next(ids))).explore(twice=True)


def test_a_step_more_is_named(database: Database) -> None:
    played = count()

    def once_more() -> None:
        for _ in range(1 + next(played) % 2):
            ask(WRITE, 1)

    with pytest.raises(Unsteady, match=r"step 1, first: nothing more\. Then: a: UPDATE"):
        Trial(database, set_up, {"a": once_more}, nothing_is_wrong).explore(twice=True)


def test_another_end_of_the_same_steps_is_told(database: Database) -> None:
    """Whether by what is wrong or by what was raised."""
    judged, raised = count(), count()

    def sometimes(errors: Errors) -> str | None:
        return "wrong" if next(judged) % 2 else None

    def breaks() -> None:
        ask(WRITE, 1)
        if next(raised) % 2:
            raise KeyError

    with pytest.raises(Unsteady, match=r"two ends\. First: well\. Then: wrong\. "):
        Trial(database, set_up, {"a": write_one}, sometimes).explore(twice=True)
    with pytest.raises(Unsteady, match=r"two ends\. First: well\. Then: well; a raised KeyError\. "):
        Trial(database, set_up, {"a": breaks}, nothing_is_wrong).explore(twice=True)


@pytest.mark.parametrize("name", ["", "a,b", "a=b", "a~b", " a"])
def test_a_name_that_no_schedule_could_carry_is_refused(database: Database, name: str) -> None:
    with pytest.raises(NoTrial, match="can't stand in a schedule's text"):
        Trial(database, set_up, {name: write_one}, nothing_is_wrong)


def test_nothing_holds_in_no_order(database: Database) -> None:
    with pytest.raises(NoTrial, match="at least one"):
        Trial(database, set_up, {}, nothing_is_wrong)


def test_functions_that_ask_nothing_are_told_too(database: Database) -> None:
    """Where what is wrong with them is that they did nothing."""
    result = Trial(database, set_up, {"a": lambda: None}, lambda errors: "nothing was done").explore()
    assert "nothing was done" in result.told
    assert "replay: ~" in result.told


def test_none_of_the_orders_is_no_trial(database: Database) -> None:
    """It would hold whatever the code does."""
    with pytest.raises(NoTrial, match="nothing is tried"):
        trial(database, write_one).explore(most=0)
