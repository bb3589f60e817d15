"""Cells of the lock table as `manage.py prove` recorded them on real servers, and rows made from them."""

import copy
import json
import uuid
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from exercises.models import Proof

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
