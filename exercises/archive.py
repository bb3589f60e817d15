"""Where what was played is kept, so that the admin shows it: the shop's own database, or else the demo's.

python -m exercises.archive    keeps a laboratory run, JSON on stdin
"""

import contextlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import django
from django.conf import settings

from marlow.servers.postgres import EmbeddedPostgres
from marlow.turns import alone

FIELDS = ("scenario", "lock", "settle", "question", "schedule", "again", "wrong", "verdict", "steps", "report")


@contextlib.contextmanager
def where_to_keep() -> Iterator[tuple[str, bool]]:
    """The URL of the database that the admin reads, and whether it is the demo's and was only started for this.

    Raises ServerError where that can't be started.
    """
    demo = Path(settings.STATE_DIR) / "demo"
    if "DATABASE_URL" in settings.GIVEN_SERVERS or (demo / "addresses.json").exists():
        yield settings.DATABASE_URL, False
        return
    with alone(demo, "manage.py up"):
        postgres = EmbeddedPostgres(demo / "postgres").start()
        try:
            yield postgres.url(), True
        finally:
            postgres.stop()


def write(run: dict[str, Any]) -> int:
    """The new row's number. Raises what Django raises where the database can't be reached or has no such table."""
    from exercises.models import LabRun
    from marlow.clock import real_now

    return LabRun.objects.create(real_at=real_now(), **{name: run[name] for name in FIELDS}).pk


def main() -> None:
    """Prints the new row's number; ends with a sentence on stderr where the run could not be kept."""
    django.setup()
    from django.core.management import call_command
    from django.db import OperationalError, ProgrammingError

    try:
        if sys.argv[1:] == ["--migrate"]:
            call_command("migrate", verbosity=0)
        print(write(json.load(sys.stdin)))
    except ProgrammingError as missing:
        sys.exit(f"The shop's database has no place for it ({first_line(missing)}): run manage.py migrate there.")
    except OperationalError as away:
        sys.exit(f"The shop's database can't be reached ({first_line(away)}): start it, or set DATABASE_URL.")


def first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]


if __name__ == "__main__":
    main()
