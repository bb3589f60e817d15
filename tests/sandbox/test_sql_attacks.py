"""SQL that is up to something: what its student is told at the form, and what the server says behind it."""

from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.conf import LazySettings
from django.db import DatabaseError, connection, connections
from pytest_django import DjangoDbBlocker

from exercises.catalogue.slot import settle as slots
from exercises.catalogue.slot.answers import Answers, Step
from exercises.catalogue.slot.settle import ALIAS, GUEST
from exercises.handed.answers import NotAnswers, read
from exercises.handed.checks import Outcome, Result
from exercises.handed.exercise import exercise
from exercises.lab import connection as engine
from exercises.lab import guest as guests
from exercises.lab.database import Database
from exercises.lab.policies import FirstCome
from exercises.lab.scheduler import LabError, Scheduler
from exercises.scenarios.corner import START, furnished_with
from exercises.scenarios.room import laboratory
from grading.judge import decide
from grading.room import JudgesRoom
from shop.models import Order
from shop.permit import Permit
from tests.lab.conftest import database

__all__ = ["database"]
RIGHT = next(known.answers for known in exercise("slot").known() if known.name == "right")
ONE = "a step is one SELECT, INSERT, UPDATE or DELETE."
FUNCTIONS = "abs, bool_and, bool_or, count, max, min, sum are."
TYPES = (
    "bigint, bool, boolean, int, int2, int4, int8, integer, interval, numeric, smallint, text, timestamptz, uuid, "
    "varchar are."
)
PARAMETERS = ":order, :book, :now, :box, :run"
BACK = "update shop_book set stock = stock + 1 where id = :book"

AT_THE_FORM = {
    # What owns the session.
    "set role": ("set role marlow", f"SET and RESET are not taken, nor SET ROLE: {ONE}"),
    "reset role": ("reset role", f"SET and RESET are not taken, nor SET ROLE: {ONE}"),
    "session authorization": (
        "set session authorization marlow",
        f"SET and RESET are not taken, nor SET ROLE: {ONE}",
    ),
    "its own timeouts": (
        "set local statement_timeout = 0",
        f"SET and RESET are not taken, nor SET ROLE: {ONE}",
    ),
    "timeouts by function": (
        "select set_config('statement_timeout', '0', false)",
        f"set_config() is not lent: {FUNCTIONS}",
    ),
    "a setting read": ("select current_setting('data_directory')", f"current_setting() is not lent: {FUNCTIONS}"),
    "show": ("show data_directory", f"SHOW is not taken: {ONE}"),
    # What owns the transaction.
    "commit": ("commit", "Transactions are the exercise’s: give a step another transaction’s number instead."),
    "savepoint": (
        "rollback to savepoint x",
        "Transactions are the exercise’s: give a step another transaction’s number instead.",
    ),
    "isolation": (
        "set transaction isolation level serializable",
        f"SET and RESET are not taken, nor SET ROLE: {ONE}",
    ),
    # The server's functions.
    "sleep": ("select pg_sleep(60)", f"pg_sleep() is not lent: {FUNCTIONS}"),
    "sleep by its schema": ("select pg_catalog.pg_sleep(60)", f"pg_catalog.pg_sleep() is not lent: {FUNCTIONS}"),
    "sleep in quotes": ('select "pg_sleep"(60)', f"pg_sleep() is not lent: {FUNCTIONS}"),
    "sleep in unicode": (r"""select U&"pg\005fsleep"(60)""", f"pg_sleep() is not lent: {FUNCTIONS}"),
    "sleep in a condition": (
        "update shop_book set stock = stock + 1 where id = :book and pg_sleep(60) is not null",
        f"pg_sleep() is not lent: {FUNCTIONS}",
    ),
    "terminate": (
        "select pg_terminate_backend(pid) from pg_stat_activity",
        "pg_stat_activity is not lent: shop_order and shop_book are.",
    ),
    "terminate by number": ("select pg_terminate_backend(1)", f"pg_terminate_backend() is not lent: {FUNCTIONS}"),
    "the platform's advisory lock": (
        "select pg_advisory_lock(7102818)",
        f"pg_advisory_lock() is not lent: {FUNCTIONS}",
    ),
    "large object": ("select lo_import('/etc/passwd')", f"lo_import() is not lent: {FUNCTIONS}"),
    "file": ("select pg_read_file('/etc/passwd')", f"pg_read_file() is not lent: {FUNCTIONS}"),
    "dblink": (
        "select * from dblink('dbname=marlow', 'select 1') as t(a int)",
        "A function in FROM is not taken: read from the tables that are lent.",
    ),
    "a query in a string": (
        "select query_to_xml('select * from auth_user', true, true, '')",
        f"query_to_xml() is not lent: {FUNCTIONS}",
    ),
    "the server's clock": (
        "select current_timestamp",
        "The server’s own clock and names are not lent: the parameters say when it is, and for whom.",
    ),
    # The catalogue, and tables that are not lent.
    "catalogue": ("select * from pg_roles", "pg_roles is not lent: shop_order and shop_book are."),
    "catalogue by schema": (
        "select * from pg_catalog.pg_authid",
        "pg_catalog.pg_authid is not lent: name a table without a schema.",
    ),
    "information schema": (
        "select * from information_schema.tables",
        "information_schema.tables is not lent: name a table without a schema.",
    ),
    "catalogue behind a name": (
        "select (with pg_roles as (select 1) select 1) from pg_roles",
        "pg_roles is no name for a part of a statement: take one without pg_ before it.",
    ),
    "catalogue by a cast": ("select 'pg_authid'::regclass", f"The type regclass is not lent: {TYPES}"),
    "what the oracle counts": (
        "delete from shop_settlement",
        "shop_settlement is not lent: shop_order and shop_book are.",
    ),
    "the shelf": (
        "insert into shop_stockmovement (book_id, kind, copies, at) values (:book, 'received', 1, :now)",
        "shop_stockmovement is not lent: shop_order and shop_book are.",
    ),
    "the shelf in a part": (
        "with more as (update shop_stockmovement set copies = copies + 1 returning 1) select * from more",
        "shop_stockmovement is not lent: shop_order and shop_book are.",
    ),
    "money": ("select * from shop_refund", "shop_refund is not lent: shop_order and shop_book are."),
    "a row of its own": (
        "insert into shop_book (title) values ('mine')",
        "Nothing is inserted into shop_book: its rows are there, to be updated.",
    ),
    "rows away": (
        "delete from shop_order where id = :order",
        "Nothing is deleted from shop_order: its rows are there, to be updated.",
    ),
    "another column": (
        "update shop_order set amount_minor = 0 where id = :order",
        "shop_order.amount_minor is not yours to write: status, settled_at, settled_by_box, settled_by_run are.",
    ),
    # Tricks of writing.
    "two statements": (f"{BACK}; {BACK}", f"There are 2 statements here: {ONE}"),
    "behind a comment": (f"{BACK} -- \n; drop table shop_order", f"There are 2 statements here: {ONE}"),
    "nothing but a comment": ("/* update shop_book */", f"This is empty: {ONE}"),
    "an open comment": (
        "select 1 /* /* */",
        'Postgres can’t read this: unterminated /* comment at or near "/* /* */".',
    ),
    "an open string": ("select 'a", 'Postgres can’t read this: unterminated quoted string at or near "\'a".'),
    "a parameter by number": ("select $1", f"$1 stands for nothing: write {PARAMETERS}."),
    "a parameter of others": ("select :password", f"There is no parameter :password: take {PARAMETERS}."),
    "nul": ("select 1\x00; drop table shop_order", "This has a NUL character in it: take it out."),
    # Other statements.
    "copy to a program": ("copy shop_order to program 'id'", f"COPY is not taken: {ONE}"),
    "copy from a file": ("copy shop_order from '/etc/passwd'", f"COPY is not taken: {ONE}"),
    "do": ("do $$ begin perform pg_sleep(60); end $$", f"DO is not taken: {ONE}"),
    "call": ("call anything()", f"CALL is not taken: {ONE}"),
    "prepare": ("prepare p as select 1", f"Prepare is not taken: {ONE}"),
    "execute": ("execute p", f"Execute is not taken: {ONE}"),
    "listen": ("listen verdicts", f"Listen is not taken: {ONE}"),
    "lock table": ("lock table shop_order", "LOCK is not taken: lock rows, with SELECT … FOR UPDATE."),
    "explain": ("explain analyze update shop_book set stock = 9", f"EXPLAIN is not taken: {ONE}"),
    "grant": ("grant all on shop_settlement to public", f"Grant is not taken: {ONE}"),
    "a function of its own": (
        "create function f() returns int language sql as 'select 1'",
        f"CreateFunction is not taken: {ONE}",
    ),
    "alter role": ("alter role current_user superuser", f"AlterRole is not taken: {ONE}"),
    "a table of its own": (
        "select * into temp mine from shop_order",
        "SELECT INTO makes a table, which no step may.",
    ),
    # Much of everything.
    "without end": (
        "with recursive t as (select 1 union all select 1 from t) select count(*) from t",
        "WITH RECURSIVE is not taken: no step of a settle needs to go round in circles.",
    ),
    "rows from nowhere": (
        "select generate_series(1, 1000000000)",
        f"generate_series() is not lent: {FUNCTIONS}",
    ),
    "many tables": (
        f"select 1 from {', '.join(f'shop_order o{number}' for number in range(7))}",
        "This names 7 tables: 6 are taken at the most.",
    ),
    "long texts": ("select repeat('x', 1000000000)", f"repeat() is not lent: {FUNCTIONS}"),
    "texts that double": ("select 'x' || 'x'", "The operator || is not lent: % * + - / < <= <> = > >= are."),
    "a pattern that backtracks": (
        "select 1 from shop_order where buyer ~ '(a*)*b'",
        "The operator ~ is not lent: % * + - / < <= <> = > >= are.",
    ),
    "many levels": (
        f"select {'1+' * 500}1",
        "This is nested too deeply: write it with fewer operators and SELECTs in each other.",
    ),
    "waiting for nobody": (
        "select 1 from shop_order for update nowait",
        "NOWAIT is an error where it meets a lock, and ends the run: take SKIP LOCKED, or wait.",
    ),
}


@pytest.mark.parametrize(("statement", "says"), AT_THE_FORM.values(), ids=AT_THE_FORM)
def test_what_is_not_lent_is_refused_at_its_field(statement: str, says: str) -> None:
    step = {"statement": statement, "transaction": 1, "on_zero_rows": "go on"}
    with pytest.raises(NotAnswers) as refused:
        read(Answers, {**RIGHT, "settle": [RIGHT["settle"][0], step]})
    assert refused.value.problems == {"settle.1.statement": says}


# --- The wall that trusts no parser -------------------------------------------------------------------------------

PAST_THE_FORM = {
    "set role marlow": 'permission denied to set role "marlow"',
    "set session authorization marlow": 'permission denied to set session authorization "marlow"',
    "alter role current_user superuser": "permission denied to alter role",
    "create role other superuser": "permission denied to create role",
    "create database mine": "permission denied to create database",
    "select pg_sleep(60)": "permission denied for function pg_sleep",
    "select pg_terminate_backend(1)": "permission denied for function pg_terminate_backend",
    "select pg_cancel_backend(1)": "permission denied for function pg_cancel_backend",
    "select pg_advisory_lock(7102818)": "permission denied for function pg_advisory_lock",
    "select pg_try_advisory_xact_lock(1, 2)": "permission denied for function pg_try_advisory_xact_lock",
    "select set_config('statement_timeout', '0', false)": "permission denied for function set_config",
    "select current_setting('data_directory')": "permission denied for function current_setting",
    "select lo_create(0)": "permission denied for function lo_create",
    "select lo_import('/etc/passwd')": "permission denied for function lo_import",
    "select lo_from_bytea(0, 'x')": "permission denied for function lo_from_bytea",
    "select pg_read_file('/etc/passwd')": "permission denied for function pg_read_file",
    "select pg_ls_dir('/')": "permission denied for function pg_ls_dir",
    "select query_to_xml('select 1', true, true, '')": "permission denied for function query_to_xml",
    "select pg_notify('verdicts', 'passed')": "permission denied for function pg_notify",
    "select pg_export_snapshot()": "permission denied for function pg_export_snapshot",
    "select dblink('dbname=marlow', 'select 1')": "function dblink(unknown, unknown) does not exist",
    "create extension dblink": 'permission denied to create extension "dblink"',
    "select * from pg_roles": "permission denied for view pg_roles",
    "select * from pg_class": "permission denied for table pg_class",
    "select * from pg_stat_activity": "permission denied for view pg_stat_activity",
    "select * from information_schema.tables": "permission denied for schema information_schema",
    "select * from auth_user": "permission denied for table auth_user",
    "select * from grading_attempt": "permission denied for table grading_attempt",
    "select * from shop_settlement": "permission denied for table shop_settlement",
    "delete from shop_settlement": "permission denied for table shop_settlement",
    "update shop_stockmovement set copies = 9": "permission denied for table shop_stockmovement",
    "update shop_book set price_minor = 1": "permission denied for table shop_book",
    "update shop_order set key = 'mine'": "permission denied for table shop_order",
    "insert into shop_book (title) values ('mine')": "permission denied for table shop_book",
    "delete from shop_order": "permission denied for table shop_order",
    "truncate shop_order": "permission denied for table shop_order",
    "drop table shop_order": "must be owner of table shop_order",
    "alter table shop_book disable trigger all": "must be owner of table shop_book",
    "lock table shop_settlement": "LOCK TABLE can only be used in transaction blocks",
    "grant all on shop_settlement to public": "permission denied for table shop_settlement",
    "create table mine (id int)": "permission denied for schema public",
    "create schema mine": "permission denied for database",
    "create temp table mine (id int)": "permission denied to create temporary tables in database",
    "do $$ begin end $$": "permission denied for language plpgsql",
    "create function pg_temp.f() returns int language sql as 'select 1'": "permission denied to create temporary",
    "copy shop_order to program 'id'": "permission denied to COPY to or from an external program",
    "copy shop_order from '/etc/passwd'": "permission denied to COPY from a file",
    "set deadlock_timeout = 1": 'permission denied to set parameter "deadlock_timeout"',
    "alter system set fsync = on": 'permission denied to set parameter "fsync"',
    "load 'auto_explain'": 'access to library "auto_explain" is not allowed',
}


@pytest.fixture(autouse=True)
def forgotten(database: Database) -> Iterator[None]:
    """A test that makes the role anew gives it another password."""
    yield
    database._logins.clear()


@pytest.fixture
def student(database: Database) -> Iterator[Any]:
    with database.receiving(GUEST), furnished_with(2):
        yield connections[ALIAS]


@pytest.mark.parametrize(("statement", "says"), PAST_THE_FORM.items(), ids=PAST_THE_FORM)
def test_what_gets_past_the_form_is_refused_by_the_server(student: Any, statement: str, says: str) -> None:
    with student.cursor() as cursor, pytest.raises(DatabaseError) as refused:
        cursor.execute(statement)
    assert str(refused.value).startswith(says)


def test_the_role_may_do_what_was_granted(student: Any) -> None:
    with student.cursor() as cursor:
        cursor.execute("update shop_order set status = 'abandoned', settled_at = now() where id = 1")
        cursor.execute("select id, status from shop_order order by id")
        assert cursor.fetchall() == [(1, "abandoned"), (2, "pending")]


def test_the_role_may_log_in_to_no_other_database_of_the_laboratorys(student: Any, database: Database) -> None:
    with connection.cursor() as cursor:
        cursor.execute("select has_database_privilege('public', current_database(), 'connect')")
        assert cursor.fetchone() == (False,)
        cursor.execute("select rolsuper, rolcreaterole, rolcreatedb, rolbypassrls, rolinherit from pg_roles "
                       "where rolname = %s", [student.settings_dict["USER"]])  # fmt: skip
        assert cursor.fetchone() == (False,) * 5


def test_on_the_laboratorys_own_server_it_may_log_in_to_no_other_at_all(
    tmp_path: Path, settings: LazySettings, django_db_blocker: DjangoDbBlocker
) -> None:
    settings.LAB_DATABASE_URL, settings.STATE_DIR = "", tmp_path
    with django_db_blocker.unblock(), laboratory() as own, own.receiving(GUEST), connection.cursor() as cursor:
        cursor.execute(
            "select datname from pg_database where has_database_privilege(%s, oid, 'connect') and datallowconn",
            [own.guests[ALIAS]["USER"]],
        )
        assert cursor.fetchall() == [("marlow",)]


def test_a_password_of_before_opens_nothing(database: Database) -> None:
    """Each laboratory makes a new one, for whoever came before may have kept theirs."""
    before = guests.described(GUEST, database.described)
    guests.described(GUEST, database.described)
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        psycopg.connect(**guests._address(before))


@pytest.mark.parametrize(
    ("change", "back"),
    [
        ("alter role {} superuser", "alter role {} nosuperuser"),
        ("alter role {} bypassrls", "alter role {} nobypassrls"),
        ("grant pg_read_all_data to {}", "revoke pg_read_all_data from {}"),
        ("create table theirs (); alter table theirs owner to {}", "drop table theirs"),
        ("grant create on schema public to {}", "revoke create on schema public from {}"),
    ],
)
def test_a_role_that_may_do_more_is_not_used(database: Database, change: str, back: str) -> None:
    """Somebody who may write to the cluster may have changed it since."""
    role = guests.described(GUEST, database.described)["USER"]
    with connection.cursor() as cursor:
        cursor.execute(change.format(role))
        try:
            with pytest.raises(guests.NoGuest, match="may do more than it was granted"):
                guests.described(GUEST, database.described)
        finally:
            cursor.execute(back.format(role))


def test_a_grant_of_before_is_taken_back(database: Database) -> None:
    role = guests.described(GUEST, database.described)["USER"]
    with connection.cursor() as cursor:
        cursor.execute(f"grant update on shop_settlement, shop_order to {role}")
        guests.described(GUEST, database.described)
        cursor.execute("select has_table_privilege(%s, 'shop_settlement', 'update')", [role])
        assert cursor.fetchone() == (False,)
        cursor.execute("select has_column_privilege(%s, 'shop_order', 'key', 'update')", [role])
        assert cursor.fetchone() == (False,)


def test_what_a_session_set_is_as_it_was_in_the_next_run(database: Database) -> None:
    seen = []

    def run() -> None:
        with connections[ALIAS].cursor() as cursor:
            cursor.execute("show statement_timeout")
            seen.append(cursor.fetchone()[0])
            cursor.execute("set statement_timeout = 0")

    with database.receiving(GUEST):
        for _ in range(2):
            scheduler = Scheduler(FirstCome(), START)
            database.session(scheduler.start("box-a", "box-a/1", run).name)
            scheduler.run()
            database.tidy()
    assert seen == ["5s", "5s"]


def test_a_session_that_ended_hands_its_backend_to_no_other_user(database: Database) -> None:
    """Backends are kept for whoever connects next: the laboratory's own would be a superuser's."""
    who = []

    def run() -> None:
        for alias in (ALIAS, "default"):
            with connections[alias].cursor() as cursor:
                cursor.execute("select session_user")
                who.append(cursor.fetchone()[0])

    with database.receiving(GUEST):
        for _ in range(3):
            scheduler = Scheduler(FirstCome(), START)
            database.session(scheduler.start("box-a", "box-a/1", run).name)
            scheduler.run()
            for name in ("box-a/1", f"box-a/1 {ALIAS}"):
                database.lose(name)
            database.tidy()
        role = database.guests[ALIAS]["USER"]
    assert who == [role, connection.settings_dict["USER"]] * 3


def test_what_takes_its_own_time_off_is_ended_by_the_laboratory(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No role can be forbidden to set its own timeouts: the laboratory has a clock of its own."""
    monkeypatch.setattr(engine, "PATIENCE", 0.3)

    def run() -> None:
        with connections[ALIAS].cursor() as cursor:
            cursor.execute("set statement_timeout = 0")
            cursor.execute("with recursive t as (select 1 union all select 1 from t) select count(*) from t")

    with database.receiving(GUEST):
        scheduler = Scheduler(FirstCome(), START)
        fibre = scheduler.start("box-a", "box-a/1", run)
        database.session(fibre.name)
        scheduler.run()
        database.tidy()
        assert isinstance(fibre.error, LabError)
        with connections[ALIAS].cursor() as cursor:
            cursor.execute("select 1")
            assert cursor.fetchone() == (1,)


# --- What a student sees ------------------------------------------------------------------------------------------


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
