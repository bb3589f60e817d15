"""The laboratory's own Postgres: the one that LAB_DATABASE_URL names, or an embedded one beside the demo's."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit, urlunsplit

import psycopg
from django.conf import settings
from django.core.management import call_command
from psycopg import sql

from exercises.lab.database import Database
from exercises.models import Performance
from exercises.scenarios.replay import TIDYING
from exercises.stage import demand_stage
from marlow.clock import real_now
from marlow.servers.launcher import ServerError
from marlow.servers.postgres import EmbeddedPostgres
from marlow.turns import alone

MINE = 0x6C6162  # the advisory lock on a database that a laboratory is in


@contextmanager
def laboratory() -> Iterator[Database]:
    """Open, migrated and lent; whatever a scenario left there before is cleared by the next one.

    Raises ServerError where it can't be started or somebody else is in it, NotAStage where the database that
    LAB_DATABASE_URL names holds a shop that no scenario set up.
    """
    if settings.LAB_DATABASE_URL:
        with _claimed(settings.LAB_DATABASE_URL) as mine:
            if not mine:
                raise ServerError(
                    "Another `manage.py lab` is in LAB_DATABASE_URL's database: end it, or name another."
                )
            with _opened(settings.LAB_DATABASE_URL, given=True) as database:
                yield database
        return
    folder = Path(settings.STATE_DIR) / "lab"
    with alone(folder, "manage.py lab"):
        postgres = EmbeddedPostgres(folder / "postgres").start()
        try:
            with _opened(postgres.url(), given=False) as database:
                yield database
        finally:
            postgres.stop()


@contextmanager
def own_laboratory() -> Iterator[Database]:
    """One of the databases `…_1`, `…_2`, … beside the one that LAB_DATABASE_URL names, made where there are too few,
    for one of several processes that explore at once. Postgres says whose it is, by a lock that ends with a process.

    Raises ServerError where LAB_DATABASE_URL is not set: an embedded one would be one process's alone.
    """
    if not settings.LAB_DATABASE_URL:
        raise ServerError("Set LAB_DATABASE_URL: workers that explore together need one server for their databases.")
    at = urlsplit(settings.LAB_DATABASE_URL)
    for number in count(1):
        url = urlunsplit(at._replace(path=f"{at.path}_{number}"))
        make_database(settings.LAB_DATABASE_URL, url)
        with _claimed(url) as mine:
            if mine:
                with _opened(url, given=True) as database:
                    yield database
                return


def make_database(beside: str, url: str) -> None:
    """The database of this address, by way of another one, where it is missing."""
    name = sql.Identifier(unquote(urlsplit(url).path.removeprefix("/")))
    # Two that make it at once: one is refused by the name's unique index.
    there = psycopg.errors.DuplicateDatabase, psycopg.errors.UniqueViolation
    with _reached(beside) as server, suppress(*there):
        server.execute(sql.SQL("create database {}").format(name))


@contextmanager
def _claimed(url: str) -> Iterator[bool]:
    """Whether this process has the database to itself; two that clear it under each other find what is not there."""
    with _reached(url) as session:
        yield session.execute("select pg_try_advisory_lock(%s)", [MINE]).fetchone() == (True,)


def _reached(url: str) -> psycopg.Connection:
    """Raises ServerError."""
    try:
        return psycopg.connect(url, autocommit=True)
    except psycopg.Error as error:
        why = str(error).strip().splitlines()[0]
        raise ServerError(
            f"LAB_DATABASE_URL's database can't be reached ({why}): start it, or unset LAB_DATABASE_URL."
        ) from error


@contextmanager
def _opened(url: str, *, given: bool) -> Iterator[Database]:
    with Database(described(url), TIDYING).lent() as database:
        marked = not given or demand_stage("LAB_DATABASE_URL")
        call_command("migrate", verbosity=0)
        if not marked:
            _mark()
        yield database


def _mark() -> None:
    """This database is the laboratory's from now on, and may be cleared by it: what is left lying is its own."""
    Performance.objects.create(scenario="laboratory", began_at=real_now(), real_at=real_now())


def described(url: str) -> dict[str, Any]:
    """An address as Django's DATABASES has it."""
    at = urlsplit(url)
    return {
        **settings.DATABASES["default"],
        "NAME": unquote(at.path.removeprefix("/")),
        "USER": unquote(at.username or ""),
        "PASSWORD": unquote(at.password or ""),
        "HOST": at.hostname or "",
        "PORT": str(at.port or ""),
    }
