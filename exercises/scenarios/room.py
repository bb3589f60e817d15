"""The laboratory's own Postgres: the one that LAB_DATABASE_URL names, or an embedded one beside the demo's."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit, urlunsplit

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
            with _reached(postgres.url()) as session:  # a server of our own: a guest logs in to nothing else on it
                session.execute("revoke connect on database postgres, template1 from public")
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
    with ExitStack() as claims, _opened(_claim(claims), given=True) as database:
        yield database


class KeptLaboratory:
    """The same, opened by whoever works first and kept open from one piece of work to the next: called, it lends the
    database for one. What went wrong in one has another opened for the next.
    """

    def __init__(self) -> None:
        self._claims = ExitStack()
        self._database: Database | None = None

    @contextmanager
    def __call__(self) -> Iterator[Database]:
        fresh = self._database is None
        database = self._database or Database(described(_claim(self._claims)), TIDYING)
        try:
            with database.lent(keep=True):
                if fresh:
                    _prepare(given=True)
                yield database
            self._database = database
        except BaseException:
            self._database = None
            database.close()
            self._claims.close()
            raise


def _claim(claims: ExitStack) -> str:
    """The address of the first of the numbered databases that nobody has; ours for as long as the claims are open."""
    if not settings.LAB_DATABASE_URL:
        raise ServerError("Set LAB_DATABASE_URL: workers that explore together need one server for their databases.")
    at = urlsplit(settings.LAB_DATABASE_URL)
    for number in count(1):
        url = str(urlunsplit(at._replace(path=f"{at.path}_{number}")))
        make_database(settings.LAB_DATABASE_URL, url)
        with ExitStack() as claim:
            if claim.enter_context(_claimed(url)):
                claims.push(claim.pop_all())
                return url
    raise AssertionError("numbers do not end")


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
        _prepare(given=given)
        yield database


def _prepare(*, given: bool) -> None:
    """Tables, and a mark on one that was given: from now on it is the laboratory's, which may clear what is left."""
    marked = not given or demand_stage("LAB_DATABASE_URL")
    call_command("migrate", verbosity=0)
    if not marked:
        Performance.objects.create(scenario="laboratory", began_at=real_now(), real_at=real_now())


def described(url: str) -> dict[str, Any]:
    """An address as Django's DATABASES has it."""
    at, default = urlsplit(url), settings.DATABASES["default"]
    return {
        **default,
        "OPTIONS": {**default.get("OPTIONS", {}), **dict(parse_qsl(at.query))},
        "NAME": unquote(at.path.removeprefix("/")),
        "USER": unquote(at.username or ""),
        "PASSWORD": unquote(at.password or ""),
        "HOST": at.hostname or "",
        "PORT": str(at.port or ""),
    }
