"""The laboratory's database of the tests: one for each test worker, made anew, on the tests' own Postgres."""

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from django.conf import settings
from django.core.management import call_command
from psycopg import sql

from exercises.lab.database import Database
from exercises.scenarios.replay import TIDYING


@contextmanager
def lab_database(worker: str) -> Iterator[Database]:
    """Migrated, lent, and dropped afterwards."""
    described = {**settings.DATABASES["default"], "NAME": f"lab_{worker or 'alone'}"}
    name = sql.Identifier(described["NAME"])
    with psycopg.connect(settings.DATABASE_URL, autocommit=True) as server:
        server.execute(sql.SQL("drop database if exists {} with (force)").format(name))
        server.execute(sql.SQL("create database {}").format(name))
    try:
        with Database(described, TIDYING).lent() as database:
            call_command("migrate", verbosity=0)
            yield database
    finally:
        with psycopg.connect(settings.DATABASE_URL, autocommit=True) as server:
            server.execute(sql.SQL("drop database if exists {} with (force)").format(name))
