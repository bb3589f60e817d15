"""docs/lab.md: its example runs, its schedule replays, its menu is the menu."""

import re
from pathlib import Path

import pytest
from django.db import connection

from exercises.lab.database import Database
from exercises.scenarios.exploration import replay
from exercises.scenarios.faults import Kind

TEXT = (Path(__file__).parents[2] / "docs/lab.md").read_text()


def test_the_example_finds_the_count_that_is_lost(database: Database, capsys: pytest.CaptureFixture[str]) -> None:
    """As printed there, with the database that it asks for."""
    with connection.cursor() as cursor:
        cursor.execute("delete from shop_order; delete from shop_book")
    (example,) = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    exec(example, {"database": database})
    said = capsys.readouterr().out
    assert "counted to 2, and not to 3" in said
    assert "UPDATE shop_publisher" in said
    assert "replay: " in said


def test_the_schedule_replays(database: Database) -> None:
    """And fails, as the document says."""
    (schedule,) = re.findall(r"manage.py replay '(.*?)'", TEXT)
    assert replay(database, schedule).wrong


def test_the_menu_is_complete() -> None:
    """Every fault there is, and no other."""
    assert re.findall(r"^\| `([a-z-]+)` \|", TEXT, re.MULTILINE) == [str(kind) for kind in Kind]
