"""Cells of the lock table as `manage.py prove` recorded them on real servers, and rows made from them."""

import copy
import json
import uuid
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from exercises.models import Proof
from exercises.proof.cells import Cell

RECORDED = json.loads((Path(__file__).parent / "admin" / "proved.json").read_text())
PLAYED = datetime(2026, 12, 1, 20, 0, tzinfo=UTC)
FIELDS = ("lock", "fault", "settle", "stop_on_lost_lease", "expected", "seen", "agrees", "skipped", "seconds")


def recorded(fault: str) -> dict[str, Any]:
    """`pause` of redis-naive (a phantom, and a foreign key deleted) or `kill` of redis-token; a copy to change."""
    return copy.deepcopy(next(cell for cell in RECORDED if cell["fault"] == fault))


def keep(cell: dict[str, Any], **values: Any) -> Proof:
    """A row from a cell, with some of its values changed."""
    made = {"batch": uuid.UUID(int=1), "real_at": PLAYED, **{name: cell[name] for name in FIELDS}, **values}
    return Proof.objects.create(**made)


def one() -> Proof:
    return keep(recorded("pause"))


def agreeing(cell: Cell, **values: Any) -> Proof:
    """A row for a cell of the table, seen as expected."""
    base = {"lock": cell.lock, "fault": cell.fault, "settle": cell.settle, "stop_on_lost_lease": cell.stop}
    seen = {**cell.expected, "events": []}
    return keep(
        {**base, "expected": cell.expected, "seen": seen, "agrees": True, "skipped": "", "seconds": 1.0}, **values
    )


def skipped() -> Proof:
    reason = "A host of its own needs root: run as root. " + "It says why at length. " * 10
    return keep(recorded("pause"), seen=None, agrees=None, skipped=reason, seconds=0.0)


def broken_off(error: Any = "Lost: box-b came to no “settling” within 10 s; see box-b.log.") -> Proof:
    return keep(recorded("pause"), seen={"error": error}, agrees=False)


def differing() -> Proof:
    """Nobody’s key was deleted, and the table says that one is."""
    cell = recorded("pause")
    cell["seen"]["foreign_deletes"] = 0
    return keep(cell, agrees=False)


def odd() -> Proof:
    """Events of another version, or of none."""
    cell = recorded("pause")
    cell["seen"]["events"][0]["kind"] = "exploded"
    cell["seen"]["events"].insert(3, None)
    return keep(cell)


def everything() -> list[Proof]:
    """One of every kind, the nonsensical included."""
    nothing = keep(recorded("pause"), expected={}, seen={})
    unknown = keep(
        recorded("pause"), lock="mutex", fault="flood", expected={"wet": [1]}, seen={"wet": {}, "events": 3}
    )
    scalar = keep(recorded("pause"), seen="nothing", agrees=False)
    known = [one(), keep(recorded("kill")), skipped(), broken_off(), broken_off(7), differing(), odd()]
    return [*known, nothing, unknown, scalar]
