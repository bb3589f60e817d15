"""The lock table: each cell of it is played on real servers, and must come out as the lesson has it."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from exercises.proof.cells import FAULTS, TABLE, Cell, table
from exercises.proof.plays import PLAYS
from shop.settle import FORMS
from sweeper.locks import LOCKS

ROOT = Path(__file__).resolve().parents[2]
GIVEN = ("DATABASE_URL", "CELERY_BROKER_URL", "LOCK_REDIS_URL", "MARLOW_STATE_DIR")
# What `make test` plays: each lock under the table's own columns, unguarded; all the rest with ALL=1 and in CI.
QUICK = {"calm", "overrun", "pause", "kill"}


def parameter(cell: Cell) -> Any:
    quick = cell.fault in QUICK and cell.settle == "unguarded" and not cell.stop
    return pytest.param(cell, id=cell.name, marks=[] if quick else [pytest.mark.slow])


def prove(folder: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "manage.py", "prove", *words],
        env={
            **{name: value for name, value in os.environ.items() if name not in GIVEN},
            "MARLOW_STATE_DIR": str(folder),
        },
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def proved(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """What one `manage.py prove` said of the cells that were chosen; they are played side by side."""
    calls = [getattr(item, "callspec", None) for item in request.session.items]
    cells = [call.params["cell"] for call in calls if call is not None and "cell" in call.params]
    chosen = [word for cell in cells for word in ("--cell", cell.name)]
    played = prove(tmp_path_factory.mktemp("prove"), "--json", *chosen)
    assert played.stdout, played.stderr
    said = json.loads(played.stdout.splitlines()[-1])
    assert played.returncode == any(each["agrees"] is False for each in said)
    return {cell.name: each for cell, each in zip(sorted_as_played(cells), said, strict=True)}


def sorted_as_played(cells: list[Cell]) -> list[Cell]:
    return [cell for cell in table() if cell in cells]


@pytest.mark.live
@pytest.mark.timeout(900)
@pytest.mark.parametrize("cell", [parameter(cell) for cell in table()])
def test_a_lock_does_under_a_fault_what_the_table_says(cell: Cell, proved: dict[str, dict[str, Any]]) -> None:
    """Seen on real servers, by two real processes."""
    said = proved[cell.name]
    if said["skipped"]:
        pytest.skip(said["skipped"])
    seen = {name: said["seen"].get(name) for name in cell.expected}
    assert seen == cell.expected, said["seen"].get("error", said["seen"])
    assert said["agrees"]
    assert said["seen"]["events"], "the cell has no story to show"


class TestTheTable:
    def test_has_every_lock_in_each_of_the_lesson_s_columns(self) -> None:
        """Fits, outlives, paused, killed, without power."""
        for fault in ("calm", "overrun", "pause", "kill", "power-loss"):
            assert set(TABLE[fault]) == set(LOCKS), fault

    def test_has_a_play_for_every_fault(self) -> None:
        """And none that no cell asks for."""
        assert set(PLAYS) == set(FAULTS)

    def test_has_every_cell_once(self) -> None:
        """Under a name of its own."""
        names = [cell.name for cell in table()]
        assert len(names) == len(set(names))

    def test_promises_no_phantom_to_guarded_and_fenced_writes(self) -> None:
        """Whatever the lock; that is what they are for."""
        protected = [cell for cell in table() if cell.settle != "unguarded"]
        assert {cell.settle for cell in protected} == set(FORMS) - {"unguarded"}
        assert {cell.expected["phantom"] for cell in protected} == {0}

    def test_sees_a_difference(self) -> None:
        """Another figure than the expected one does not agree, and one that is missing does not either."""
        cell = next(table())
        assert cell.agrees(dict(cell.expected))
        assert not cell.agrees({**cell.expected, "phantom": 7})
        assert not cell.agrees({"error": "a box was lost"})


class TestTheCommand:
    @pytest.mark.parametrize(
        ("words", "says"),
        [
            (("--lock", "none", "--fault", "leader-loss"), "leave out one of"),
            (
                ("--lock", "redis-token", "--fault", "kill", "--settle", "fenced"),
                "It has kill/redis-token/unguarded.",
            ),
            (("--cell", "calm/none/unguarded", "--cell", "calm/nobody/guarded"), "no cell 'calm/nobody/guarded'"),
            (("--cell", ""), "no cell '': a name is fault/lock/settle"),
        ],
    )
    def test_refuses_what_the_table_has_not(self, tmp_path: Path, words: tuple[str, ...], says: str) -> None:
        """Nothing is started for a cell that does not exist."""
        refused = prove(tmp_path, *words)
        assert refused.returncode == 1
        assert says in refused.stderr
        assert not (tmp_path / "prove").exists()
