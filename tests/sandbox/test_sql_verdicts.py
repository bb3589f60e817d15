"""SQL that is up to something, judged: what its student reads where the server refuses it or time is over."""

from contextlib import nullcontext

import psycopg
import pytest
from django.db import connection

from exercises.catalogue.slot import settle as slots
from exercises.catalogue.slot.answers import Answers, Step
from exercises.handed.answers import read
from exercises.handed.checks import Outcome, Result
from exercises.handed.exercise import exercise
from exercises.lab import guest as guests
from exercises.lab.database import Database
from grading.judge import decide
from grading.room import JudgesRoom
from shop.models import Order
from shop.permit import Permit
from tests.lab.conftest import database
from tests.sandbox.test_sql_role import forgotten

__all__ = ["database", "forgotten"]
RIGHT = next(known.answers for known in exercise("slot").known() if known.name == "right")


def verdict(database: Database, statement: str) -> dict[str, Result]:
    """Of a settle of this one statement, unread."""
    step = Step.model_construct(statement=statement, transaction=1, on_zero_rows="go on")
    answers = Answers.model_construct(**{**read(Answers, RIGHT).__dict__, "settle": [step]})
    room = JudgesRoom(lambda: nullcontext(database))
    return {check.name: decide(check, answers, room) for check in exercise("slot").checks[2:]}


@pytest.mark.parametrize(
    ("statement", "says"),
    [
        ("select pg_sleep(60)", "permission denied for function pg_sleep"),
        ("delete from shop_settlement", "permission denied for table shop_settlement"),
        ("set role marlow", 'permission denied to set role "marlow"'),
        ("select pg_terminate_backend(1)", "permission denied for function pg_terminate_backend"),
    ],
)
def test_what_the_server_refuses_is_the_answers_failure(
    database: Database, monkeypatch: pytest.MonkeyPatch, statement: str, says: str
) -> None:
    monkeypatch.setattr(slots, "taken", lambda statement, lent: statement)
    results = verdict(database, statement)
    assert {result.outcome for result in results.values()} == {Outcome.FAILED}
    assert results["puts-back"].sentence == f"Step 1 failed. Postgres says: {says}."
    assert results["bears"].sentence == (
        f"With nobody killed, in one order of one box: a run died of the settle (1). "
        f"Step 1 failed. Postgres says: {says}."
    )


@pytest.mark.parametrize(
    ("setting", "says"),
    [
        ("statement_timeout", "canceling statement due to statement timeout"),
        ("lock_timeout", "canceling statement due to lock timeout"),
    ],
)
def test_a_time_out_decides_nothing(
    database: Database, monkeypatch: pytest.MonkeyPatch, setting: str, says: str
) -> None:
    """A slow machine is no answer's fault. Here somebody else sits on the book."""
    monkeypatch.setitem(guests.SETTINGS, setting, "100ms")
    monkeypatch.setattr(database, "_logins", {})
    release = slots.Settle.release
    with psycopg.connect(**guests._address(database.described)) as other:

        def waiting(settle: slots.Settle, order: Order, permit: Permit) -> object:
            other.execute("select from shop_book where id = 1 for update")
            return release(settle, order, permit)

        monkeypatch.setattr(slots.Settle, "release", waiting)
        result = verdict_alone(database)
    assert (result.outcome, result.points) == (Outcome.UNDECIDED, 0)
    assert result.sentence == f"Step 2 could not be carried out to its end: {says}."


def verdict_alone(database: Database) -> Result:
    room = JudgesRoom(lambda: nullcontext(database))
    return decide(exercise("slot").checks[2], read(Answers, RIGHT), room)


def test_a_laboratory_that_makes_no_role_decides_nothing(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    with connection.cursor() as cursor:
        cursor.execute("drop role if exists poor")
        cursor.execute("create role poor login password 'poor'")
        cursor.execute("select current_database()")
        cursor.execute(f"grant connect on database {cursor.fetchone()[0]} to poor")
        cursor.execute("grant select on pg_roles, pg_database to poor")
    monkeypatch.setattr(database, "_logins", {})
    monkeypatch.setattr(database, "described", {**database.described, "USER": "poor", "PASSWORD": "poor"})
    try:
        result = verdict_alone(database)
    finally:
        with connection.cursor() as cursor:
            cursor.execute("drop owned by poor")
            cursor.execute("drop role poor")
    assert result.outcome is Outcome.UNDECIDED
    assert result.sentence == (
        "No role for what is handed in can be made here: let LAB_DATABASE_URL’s user have CREATEROLE."
    )
