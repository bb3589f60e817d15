"""A role for what strangers wrote: it logs in, owns nothing, and may do in one database what it was granted there.

It trusts no parser. What the server itself can refuse is refused by the server: every volatile function of its own
(sleeping, locking by name, ending sessions, files, large objects, settings), the catalogue's tables, temporary
tables, procedural languages, and every table that was not granted.
"""

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg import sql

STATEMENT_TIMEOUT = 5  # real seconds, of a statement that nobody blocks: far more than any needs
LOCK_TIMEOUT = 30  # likewise: in the laboratory a lock is waited for while others are played
IDLE_TIMEOUT = 60  # likewise, between two statements of a transaction
SESSIONS = 16  # at once
# Of every session that the role opens, set by the role and again by the session's own start.
SETTINGS = {
    "statement_timeout": f"{STATEMENT_TIMEOUT}s",
    "lock_timeout": f"{LOCK_TIMEOUT}s",
    "idle_in_transaction_session_timeout": f"{IDLE_TIMEOUT}s",
    "TimeZone": "UTC",
    "synchronous_commit": "off",
    "standard_conforming_strings": "on",
    "search_path": "public",
}
# What a session is made as good as new by: whatever it set is as it was, and it holds nothing by name.
TIDYING = "reset all; select pg_advisory_unlock_all()"

# Out: whether we are a superuser, whether we may make roles, the database's name and its number.
MAY = """
select rolsuper, rolsuper or rolcreaterole, current_database(), (select oid from pg_database
where datname = current_database()) from pg_roles where rolname = current_user
"""
# In: the role. Out: a row where it may do more than log in, belongs to another role, or owns something anywhere.
MORE = """
select true from pg_roles r where rolname = %s and (rolsuper or rolcreatedb or rolcreaterole or rolreplication
or rolbypassrls or exists (select from pg_auth_members where member = r.oid)
or exists (select from pg_shdepend where refobjid = r.oid and deptype = 'o'))
"""
# In: the role, twice. Out: whether it may make tables of its own, temporary or not.
MAKES = """
select has_database_privilege(%s, current_database(), 'temp') or has_schema_privilege(%s, 'public', 'create')
"""
# Out: functions of the server that do something, or tell of settings and of others, while everybody may call them;
# each as REVOKE has it. Those that a trigger calls ask nobody.
DOING = """
select format('pg_catalog.%I(%s)', proname, pg_get_function_identity_arguments(oid)) from pg_proc
where pronamespace = 'pg_catalog'::regnamespace and has_function_privilege('public', oid, 'execute')
    and prorettype <> 'trigger'::regtype
    and (provolatile = 'v' or proname in ('current_setting', 'pg_show_all_settings')
        or proname ~ '_to_xml|^pg_stat_get|^pg_ls')
"""
CLOSED = (
    "revoke select on all tables in schema pg_catalog, information_schema from public",
    "revoke usage on schema information_schema from public",
    "revoke usage on language plpgsql from public",
)


class NoGuest(Exception):
    """The role can't be had here. Says what to do."""


@dataclass(frozen=True)
class Guest:
    """`alias`: of Django's connections, on which it works; `grants`: each as GRANT has it before TO."""

    alias: str
    grants: tuple[str, ...]


def described(guest: Guest, owner: Mapping[str, Any]) -> dict[str, Any]:
    """How it logs in, as Django's DATABASES has it: to the owner's database, which it finds made ready. Its password
    is a new one every time. Raises NoGuest.
    """
    password = secrets.token_urlsafe(24)
    with psycopg.connect(**_address(owner), autocommit=True) as session:
        try:
            role = _admit(session, guest, password)
        except psycopg.errors.InsufficientPrivilege as refused:
            raise NoGuest(
                f"No role for what is handed in could be made ({refused.diag.message_primary}): let LAB_DATABASE_URL "
                "name a superuser, or one with CREATEROLE who owns the database."
            ) from refused
    options = {name: value for name, value in owner.get("OPTIONS", {}).items() if name != "options"}
    started = " ".join(f"-c {name}={value}" for name, value in SETTINGS.items())
    return {**owner, "USER": role, "PASSWORD": password, "OPTIONS": {**options, "options": started}}


def _address(owner: Mapping[str, Any]) -> dict[str, Any]:
    named = {"dbname": "NAME", "user": "USER", "password": "PASSWORD", "host": "HOST", "port": "PORT"}
    return {name: owner[key] for name, key in named.items() if owner.get(key)}


def _admit(session: psycopg.Connection[Any], guest: Guest, password: str) -> str:
    """The role, with this password and these grants and no others: `student_of_16384` after the database's number, so
    that two laboratories on one server never meet in one.
    """
    superuser, able, database, number = session.execute(MAY).fetchone() or (False, False, "", 0)
    if not able:
        raise NoGuest("No role for what is handed in can be made here: let LAB_DATABASE_URL’s user have CREATEROLE.")
    name = f"{guest.alias}_of_{number}"
    _make(session, name, password, superuser=superuser)
    _close(session, database, superuser=superuser)
    role = sql.Identifier(name)
    session.execute(sql.SQL("grant connect on database {} to {}").format(sql.Identifier(database), role))
    session.execute(sql.SQL("revoke all on all tables in schema public from {}").format(role))
    session.execute(sql.SQL("grant execute on function pg_catalog.pg_advisory_unlock_all() to {}").format(role))
    for grant in guest.grants:
        session.execute(sql.SQL("grant {} to {}").format(sql.SQL(grant), role))
    if session.execute(MORE, [name]).fetchone() or session.execute(MAKES, [name, name]).fetchone() != (False,):
        raise NoGuest(f"The role {name} may do more than it was granted: drop it, and let the laboratory make it.")
    return name


def _make(session: psycopg.Connection[Any], name: str, password: str, *, superuser: bool) -> None:
    role = sql.Identifier(name)
    # Hashed here: a password in a statement would stand in the server's log.
    secret = session.pgconn.encrypt_password(password.encode(), name.encode(), b"scram-sha-256").decode()
    able = sql.SQL("login nocreatedb nocreaterole connection limit {} password {}").format(SESSIONS, secret)
    if session.execute("select true from pg_roles where rolname = %s", [name]).fetchone():
        session.execute(sql.SQL("alter role {} {}").format(role, able))
    else:
        never = sql.SQL("nosuperuser noreplication nobypassrls noinherit")
        session.execute(sql.SQL("create role {} {} {}").format(role, never, able))
    for setting, value in SETTINGS.items():
        session.execute(sql.SQL("alter role {} set {} = {}").format(role, sql.Identifier(setting), value))
    if superuser:  # the laboratory sees a deadlock at once, and chooses the victim itself
        session.execute(sql.SQL("alter role {} set deadlock_timeout = '10min'").format(role))
    else:  # or its sessions could not be ended by us
        session.execute(sql.SQL("grant {} to current_user").format(role))


def _close(session: psycopg.Connection[Any], database: str, *, superuser: bool) -> None:
    """What everybody may do in a new database, and nobody needs in this one. Functions and the catalogue are a
    superuser's to close; without one only the reading of statements stands before them.
    """
    here = sql.Identifier(database)
    session.execute(sql.SQL("revoke connect, temporary on database {} from public").format(here))
    session.execute("revoke create on schema public from public")
    if not superuser:
        return
    open_ones = [function for (function,) in session.execute(DOING)]
    if open_ones:
        functions = sql.SQL(", ".join(open_ones))
        session.execute(sql.SQL("revoke execute on routine {} from public").format(functions))
    for closing in CLOSED:
        session.execute(closing)
