"""docs/lab.md: its example runs, its schedule replays, its menu is the menu."""

import re
from inspect import signature
from pathlib import Path
from typing import Any

import pytest
from django.db import connection

from exercises.lab import fixture
from exercises.lab.database import Database
from exercises.lab.fixture import Claim, Room
from exercises.scenarios.exploration import replay
from exercises.scenarios.faults import Kind

TEXT = (Path(__file__).parents[2] / "docs/lab.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", TEXT, re.DOTALL)


@pytest.fixture
def example() -> dict[str, Any]:
    """The test of the document, as Python has it."""
    names: dict[str, Any] = {}
    exec(blocks("python")[1], names)
    return names


def test_the_example_of_the_fixture_fails_as_printed_there(example: dict[str, Any], trial: Room) -> None:
    """Sentence, order and text; of the mark only that there is one."""
    with pytest.raises(pytest.fail.Exception) as failed:
        example["test_nobody_loses_a_count"](trial)
    (printed,) = blocks("text")
    said, again = str(failed.value).split("\nagain:")
    assert re.sub("~[0-9a-f]{8}$", "~…", said) == printed.rstrip("\n")
    assert "--lab-replay" in again


def test_the_plugin_is_the_one_that_is_named_there() -> None:
    names: dict[str, Any] = {}
    exec(blocks("python")[0], names)
    assert names["pytest_plugins"] == [fixture.__name__]


def test_every_claim_is_listed_and_its_options_exist() -> None:
    """The verbs are those of the fixture, and what the text says may be given may be given."""
    listed = re.findall(r"^\| `trial\(…\)\.(\w+)\(.*?\)` \|", TEXT, re.MULTILINE)
    claims = {name: claim for name, claim in vars(Claim).items() if callable(claim) and not name.startswith("_")}
    assert listed == list(claims)
    assert all({"reduced", "twice"} <= set(signature(claim).parameters) for claim in claims.values())
    assert {"isolation", "may_raise", "replay"} <= set(signature(Room.__call__).parameters)


def test_the_example_without_pytest_finds_the_same(
    example: dict[str, Any], database: Database, capsys: pytest.CaptureFixture[str]
) -> None:
    """As printed there, with the database that it asks for."""
    with connection.cursor() as cursor:
        cursor.execute("delete from shop_order; delete from shop_book")
    exec(blocks("python")[2], {**example, "database": database})
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
