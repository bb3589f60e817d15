"""The lock table in virtual time: each cell of the live table comes out in the laboratory as on real servers."""

import json
import re
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from exercises.lab.database import Database
from exercises.proof.cells import Cell, table
from exercises.proof.director import FIRST, SECOND
from exercises.scenarios import oracles
from exercises.scenarios.matrix import PLAYS, WITHOUT, cells, play
from exercises.scenarios.scene import Scene
from shop.models import Order
from sweeper.events import Kind

DOCUMENT = Path(__file__).parents[2] / "docs/lab.md"
ENDED_BY_POSTGRES = ("server-restart", "connection-ended")  # the faults of which a run may die


@pytest.mark.parametrize("cell", [pytest.param(cell, id=cell.name) for cell in cells()])
def test_a_lock_does_under_a_fault_what_the_table_says(database: Database, cell: Cell) -> None:
    """And no run died of anything but what struck it."""
    seen = play(database, cell)
    assert {name: seen.get(name) for name in cell.expected} == cell.expected, seen.get("error", seen)
    assert cell.agrees(seen)
    assert oracles.died(seen["died"], struck=cell.fault in ENDED_BY_POSTGRES) == ()


def one(name: str) -> Cell:
    return next(cell for cell in table() if cell.name == name)


def moments(seen: dict[str, Any], *kinds: Kind) -> list[tuple[str, str]]:
    """Which box noted which of these, in the order in which they did."""
    return [(event["box"], event["kind"]) for event in seen["events"] if event["kind"] in kinds]


class TestTheCells:
    def test_are_those_of_the_live_table_but_for_those_that_say_why(self) -> None:
        """And none says so that the laboratory plays, or that the live table has not."""
        names = {(cell.fault, cell.lock) for cell in table()} - {(cell.fault, cell.lock) for cell in cells()}
        assert names == set(WITHOUT)
        assert set(cells()) <= set(table())

    def test_that_are_left_out_are_named_in_the_document(self) -> None:
        """With the reason that the command prints."""
        named = re.findall(r"^\* `([a-z-]+)` of ([a-z-]+): (.*)\.$", DOCUMENT.read_text(), re.MULTILINE)
        assert {(fault, lock): reason for fault, lock, reason in named} == WITHOUT

    def test_have_a_play_for_every_fault(self) -> None:
        """And none that no cell asks for."""
        assert set(PLAYS) == {cell.fault for cell in cells()}


class TestThePlay:
    def test_is_the_same_to_the_letter_when_played_again(self, database: Database) -> None:
        """The figures, and the journal."""
        cell = one("pause/zookeeper/fenced")
        assert play(database, cell) == play(database, cell)

    def test_leaves_nothing_behind(self, database: Database) -> None:
        """For the next one, or for an exploration."""
        play(database, one("calm/none/unguarded"))
        assert not Order.objects.exists()

    def test_has_the_second_box_let_in_and_about_to_write_before_the_first_goes_on(self, database: Database) -> None:
        """The first to write is the one that stood still: what the fence refuses, and nothing else."""
        seen = play(database, one("pause/redis-token/unguarded"))
        assert moments(seen, Kind.ACQUIRED, Kind.ANSWERED, Kind.SETTLED) == [
            (FIRST, Kind.ACQUIRED),
            (FIRST, Kind.ANSWERED),
            (SECOND, Kind.ACQUIRED),
            (SECOND, Kind.ANSWERED),
            (FIRST, Kind.SETTLED),
            (SECOND, Kind.SETTLED),
        ]

    @pytest.mark.parametrize("fault", ["kill", "power-loss"])
    def test_ends_the_first_box_before_its_write(self, database: Database, fault: str) -> None:
        """Nothing is heard of it after it was answered."""
        seen = play(database, one(f"{fault}/redis-token/unguarded"))
        assert [kind for box, kind in moments(seen, *Kind) if box == FIRST][-1] == Kind.ANSWERED
        assert seen["settled"] == 1

    @pytest.mark.parametrize(
        ("lock", "killed", "without_power"),
        [
            ("none", 0, 0),
            ("slot", 1, 1),
            ("redis-token", 1.5, 1.5),
            ("redlock", 1.5, 1.5),
            ("etcd", 1, 1),
            ("zookeeper", 1.5, 1.5),
            ("postgres-advisory", 0, 6),
            ("skip-locked", 0, 6),
        ],
    )
    def test_says_how_long_a_dead_holder_stopped_the_work(
        self, database: Database, lock: str, killed: float, without_power: float
    ) -> None:
        """A lease or slot of one second, knocked at every half; Postgres misses a box after six."""
        assert play(database, one(f"kill/{lock}/unguarded"))["waited"] == killed
        assert play(database, one(f"power-loss/{lock}/unguarded"))["waited"] == without_power

    def test_that_comes_to_no_end_is_told_as_one_and_does_not_agree(
        self, database: Database, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """It is in the table, and the next cell is played all the same."""

        def wait_for_what_never_comes(scene: Scene) -> None:
            scene.demand(scene.gate(FIRST, Kind.OWED))

        monkeypatch.setitem(PLAYS, "calm", wait_for_what_never_comes)
        cell = one("calm/none/unguarded")
        seen = play(database, cell)
        assert seen == {"error": "LabError: box-b ended its run and came to no “owed”."}
        assert not cell.agrees(seen)

    def test_that_finds_nothing_to_strike_says_so(self, database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
        """A fault that did not happen proves nothing."""
        monkeypatch.setitem(PLAYS, "calm", PLAYS["three-clocks-step"])
        assert "nothing that clock@box-b" in play(database, one("calm/none/unguarded"))["error"]


class TestTheCommand:
    @pytest.fixture(autouse=True)
    def in_this_database(self, database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("marlow.management.commands.lab.laboratory", lambda: nullcontext(database))
        monkeypatch.setenv("COLUMNS", "120")

    def test_prints_the_cells_and_the_wednesday(self, capsys: pytest.CaptureFixture[str]) -> None:
        """Of the lock and form that were asked for."""
        with pytest.raises(SystemExit) as left:
            call_command("lab", "matrix", "--lock", "slot", "--settle", "unguarded", "--settle", "fenced")
        said = capsys.readouterr().out
        assert left.value.code == 0
        lines = [line.split() for line in said.splitlines()]
        assert lines.count(["overrun", "phantom"]) == lines.count(["overrun", "stale"]) == 1
        assert "8 cells: 0 differ from the table" in said
        assert "The Wednesday" in said
        assert len([line for line in lines if line[:3] == ["│", "slot", "│"]]) == 2

    def test_has_every_cell_in_json_as_prove_has(self, capsys: pytest.CaptureFixture[str]) -> None:
        """On the last line of stdout."""
        with pytest.raises(SystemExit):
            call_command("lab", "matrix", "--fault", "pause", "--lock", "etcd", "--json")
        printed = json.loads(capsys.readouterr().out.splitlines()[-1])
        assert [(cell["settle"], cell["stop_on_lost_lease"]) for cell in printed] == [
            ("unguarded", False),
            ("guarded", False),
            ("fenced", False),
            ("fenced+guarded", False),
            ("unguarded", True),
        ]
        assert [cell["seen"]["phantom"] for cell in printed] == [1, 0, 0, 0, 1]
        assert all(cell["agrees"] and cell["expected"]["second"] == "let in" for cell in printed)

    def test_ends_with_status_1_where_a_cell_differs(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """And names the cell, what was expected and what was seen."""
        monkeypatch.setitem(PLAYS, "pause", PLAYS["calm"])
        with pytest.raises(SystemExit) as left:
            call_command("lab", "matrix", "--fault", "pause", "--lock", "etcd", "--settle", "fenced")
        said = capsys.readouterr().out
        assert left.value.code == 1
        assert "1 cell: 1 differ from the table" in said
        assert "pause/etcd, fenced: expected let in, stale 1; seen refused" in said
        assert "DIFFERS" in said

    @pytest.mark.parametrize("fault", [fault for fault, _ in WITHOUT if fault != "connection-ended"])
    def test_says_why_a_fault_is_not_here(self, fault: str) -> None:
        """Instead of an empty table."""
        with pytest.raises(CommandError, match=r"no such cell: .*the laboratory"):
            call_command("lab", "matrix", "--fault", fault)

    def test_says_which_cell_is_left_out(self, capsys: pytest.CaptureFixture[str]) -> None:
        """Beside those that are there."""
        with pytest.raises(SystemExit):
            call_command("lab", "matrix", "--fault", "connection-ended")
        said = capsys.readouterr().out
        assert "2 cells: 0 differ" in said
        assert f"Not here: connection-ended of redis-token: {WITHOUT['connection-ended', 'redis-token']}." in said

    def test_refuses_what_the_table_has_not(self) -> None:
        """By saying what to leave out."""
        with pytest.raises(CommandError, match="leave out one of --lock, --fault and --settle"):
            call_command("lab", "matrix", "--fault", "kill", "--settle", "fenced")
