"""The database that LAB_DATABASE_URL names: one laboratory at a time, and a sentence where there is none."""

import pytest
from django.conf import LazySettings
from django.core.management import CommandError, call_command

from exercises.lab.database import Database
from exercises.scenarios.room import _claimed, laboratory
from marlow.servers.launcher import ServerError


def test_a_second_laboratory_is_refused(database: Database, settings: LazySettings) -> None:
    """Two would clear it under each other, and find what is not there."""
    settings.LAB_DATABASE_URL = settings.DATABASE_URL
    with _claimed(settings.LAB_DATABASE_URL) as mine:
        assert mine
        with pytest.raises(ServerError, match="Another"), laboratory():
            pass


@pytest.mark.parametrize("url", ["postgres://x:y@127.0.0.1:1/z", "notaurl", "postgres://x:y@127.0.0.1:99999999/z"])
def test_a_database_out_of_reach_is_told(settings: LazySettings, url: str) -> None:
    settings.LAB_DATABASE_URL = url
    with pytest.raises(ServerError, match="LAB_DATABASE_URL's database can't be reached"), laboratory():
        pass


def test_workers_cut_short_start_none() -> None:
    """`--worker 2` was taken for --workers, by whoever merges as well: a laboratory in each laboratory."""
    with pytest.raises(CommandError, match="unrecognized arguments"):
        call_command("lab", "explore", "--worker", "2")
