"""The laboratory's timeline on a terminal."""

from typing import Any

import pytest
from rich.console import Console

from exercises.scenarios import told
from tests.labruns import recorded


def lines(*asked: Any) -> list[list[str]]:
    """The cells of each line, the head first."""
    table = told.timeline(*asked)
    columns = [[str(column.header), *(str(cell) for cell in column.cells)] for column in table.columns]
    return [list(line) for line in zip(*columns, strict=True)]


@pytest.fixture
def pause() -> dict[str, Any]:
    return recorded("pause")


def test_without_steps_it_has_a_column_a_box_and_a_line_an_event(pause):
    events = pause["verdict"]["events"]
    head, *rest = lines(events)
    assert head == ["time", "box-a", "box-b"]
    assert len(rest) == len(events)


def test_with_steps_it_has_a_column_for_each_server_and_one_for_faults(pause):
    head, *rest = lines(pause["verdict"]["events"], pause["steps"])
    assert head == ["time", "box-a", "box-b", "Redis", "Postgres", "Provider", "fault"]
    assert [
        "21:52:00",
        "run 2, row 1: released it: one copy back into stock (AGAIN)",
        "",
        "",
        "COMMIT",
        "",
        "",
    ] in rest
    assert ["21:52:00", "run 1, row 1: asked the provider about it", "", "", "", "lookup row-1", ""] in rest
    assert ["21:50:00", "", "", "", "", "", "box-a stands still, past a deadline"] in rest


def test_every_step_and_every_event_is_there_once_and_in_order(pause):
    _, *rest = lines(pause["verdict"]["events"], pause["steps"])
    asked = ["".join(line[3:]) for line in rest if any(line[3:])]
    assert len(asked) == len(pause["steps"])
    assert asked[:4] == ["SET NX GET", "SET NX GET", "box-a stands still, past a deadline", "SELECT shop_order"]
    done = [line[1] or line[2] for line in rest if line[1] or line[2]]
    assert len(done) == len(pause["verdict"]["events"])
    waiting, going = asked.index("COMMIT"), asked.index("UPDATE shop_order goes on")
    assert waiting < going


def test_of_the_wednesday_s_statements_only_the_commits_are_told():
    run = recorded("wednesday")
    _, *rest = lines(run["verdict"]["events"], run["steps"])
    assert {line[4] for line in rest} == {"", "COMMIT"}
    assert sum(line[4] == "COMMIT" for line in rest) == 16
    assert ["21:52:20", "", "run 1, deleted the lock's key, which was another run's by then", "DEL", "", ""] in rest


def test_it_fits_a_narrow_terminal(pause):
    console = Console(width=80)
    with console.capture() as printed:
        console.print(told.timeline(pause["verdict"]["events"], pause["steps"]))
    assert max(len(line) for line in printed.get().splitlines()) <= 80
