"""The laboratory's own Postgres: the one that LAB_DATABASE_URL names, or an embedded one beside the demo's."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from django.conf import settings
from django.core.management import call_command

from exercises.lab.database import Database
from exercises.scenarios.replay import TIDYING
from exercises.stage import demand_stage
from marlow.servers.postgres import EmbeddedPostgres
from marlow.turns import alone


@contextmanager
def laboratory() -> Iterator[Database]:
    """Open, migrated and lent; whatever a scenario left there before is cleared by the next one.

    Raises ServerError where it can't be started or somebody else is in it, NotAStage where the database that
    LAB_DATABASE_URL names holds a shop that no scenario set up.
    """
    if settings.LAB_DATABASE_URL:
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
def _opened(url: str, *, given: bool) -> Iterator[Database]:
    with Database(described(url), TIDYING).lent() as database:
        if given:
            demand_stage()
        call_command("migrate", verbosity=0)
        yield database


def described(url: str) -> dict[str, Any]:
    """An address as Django's DATABASES has it."""
    at = urlsplit(url)
    return {
        **settings.DATABASES["default"],
        "NAME": at.path.removeprefix("/"),
        "USER": unquote(at.username or ""),
        "PASSWORD": unquote(at.password or ""),
        "HOST": at.hostname or "",
        "PORT": str(at.port or ""),
    }
