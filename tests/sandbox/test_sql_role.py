"""SQL that is up to something, past the form: the database's own role for it, a wall that trusts no parser."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.conf import LazySettings
from django.db import DatabaseError, connection, connections
from pytest_django import DjangoDbBlocker

from exercises.catalogue.slot.settle import ALIAS, GUEST
from exercises.lab import connection as engine
from exercises.lab import guest as guests
from exercises.lab.database import Database
from exercises.lab.fibre import Fibre
from exercises.lab.policies import FirstCome
from exercises.lab.scheduler import LabError, Scheduler
from exercises.scenarios.corner import START, furnished_with
from exercises.scenarios.room import laboratory
from tests.lab.conftest import database

__all__ = ["database"]
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


def test_the_role_may_log_in_to_no_other_database_of_the_laboratorys(student: Any) -> None:
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


def played(database: Database, run: Callable[[], None]) -> Fibre:
    """In a session of the student's."""
    scheduler = Scheduler(FirstCome(), START)
    fibre = scheduler.start("box-a", "box-a/1", run)
    database.session(fibre.name)
    scheduler.run()
    return fibre


def test_what_a_session_set_is_as_it_was_in_the_next_run(database: Database) -> None:
    seen = []

    def run() -> None:
        with connections[ALIAS].cursor() as cursor:
            cursor.execute("show statement_timeout")
            seen.append(cursor.fetchone()[0])
            cursor.execute("set statement_timeout = 0")

    with database.receiving(GUEST):
        for _ in range(2):
            played(database, run)
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
            played(database, run)
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
        fibre = played(database, run)
        database.tidy()
        assert isinstance(fibre.error, LabError)
        with connections[ALIAS].cursor() as cursor:
            cursor.execute("select 1")
            assert cursor.fetchone() == (1,)
