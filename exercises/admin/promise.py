"""What a cell of the lock table promises, and what was seen of it: in sentences, words and short."""

from collections.abc import Mapping
from dataclasses import dataclass
from inspect import getdoc
from typing import Any

from django.db.models import QuerySet
from django.db.models.fields.json import KeyTransform

from exercises.models import Proof
from exercises.proof.cells import REFUSED
from exercises.proof.screen import SHORT, in_short
from sweeper.locks import LOCKS

WORDS = {
    "second": "the second box, before the first one’s run ended",
    "phantom": "phantom copies",
    "lost": "lost copies",
    "double_settles": "orders settled twice",
    "foreign_deletes": "keys deleted that were another run’s",
    "stale": "writes refused by the fence",
    "settled": "settlements written",
    "starts": "a box behind the pooler starts",
    "left_behind": "locks left behind",
}
FIGURES = (*SHORT, "error")  # of what was seen: all that a list shows of it
NOTHING = "–"


@dataclass(frozen=True)
class Line:
    """One figure: what the table says, and what was seen. `differs` is None where there is nothing to compare."""

    name: str
    expected: str
    seen: str
    differs: bool | None


def lines(expected: Mapping[str, Any], seen: Any) -> list[Line]:
    """A line for each figure of the table; of a cell that was skipped, or ended in an error, only what it says."""
    played = isinstance(seen, dict) and "error" not in seen
    return [
        Line(
            WORDS.get(name, name.replace("_", " ")),
            _word(value),
            _word(seen.get(name)) if played else NOTHING,
            seen.get(name) != value if played else None,
        )
        for name, value in sorted(expected.items(), key=lambda figure: _place(figure[0]))
    ]


def by_the_table(expected: Mapping[str, Any]) -> str:
    """What the table says of a cell, as one sentence."""
    if "starts" in expected:
        return "By the table a box refuses to start there, and one that starts all the same leaves its lock behind."
    if expected.get("second") == REFUSED:
        return "By the table the second box is refused until the first one’s run has ended."
    met = "By the table the second box is let in while the first one’s run has not ended"
    deletes = "; and the first one deletes a key that is no longer its own" if expected.get("foreign_deletes") else ""
    if expected.get("phantom"):
        return f"{met}, both write, and a copy comes back that no shelf holds{deletes}."
    if expected.get("stale"):
        return f"{met}, and the fence refuses the first one’s late write{deletes}."
    return f"{met}, and no copy comes back twice{deletes}."


def promised(lock: str) -> str:
    """What the lock itself promises, in the first sentence of its own description; empty for one we don't have."""
    described = getdoc(LOCKS[lock]) if lock in LOCKS else None
    first = " ".join((described or "").split("\n\n")[0].split())
    return first.partition(". ")[0].rstrip(".") + "." if first else ""


def with_figures(proofs: QuerySet[Proof]) -> QuerySet[Proof]:
    """Each with `seen_second`, `seen_error` and so on, and without the events that make what was seen so long."""
    return proofs.defer("seen").annotate(**{f"seen_{name}": KeyTransform(name, "seen") for name in FIGURES})


def figures(proof: Any) -> dict[str, Any]:
    """What `with_figures` read: those that are there, as far as they can be told in short."""
    read = {name: getattr(proof, f"seen_{name}") for name in FIGURES}
    return {name: value for name, value in read.items() if isinstance(value, str | int)}


def shortly(values: Mapping[str, Any]) -> str:
    """As the terminal says it: `let in, phantom 1, twice 1`."""
    return in_short({name: value for name, value in values.items() if isinstance(value, str | int)}) or "nothing"


def _place(name: str) -> int:
    """Postgres keeps an object's keys in an order of its own; figures are told in ours."""
    return list(WORDS).index(name) if name in WORDS else len(WORDS)


def _word(value: Any) -> str:
    if value is None:
        return NOTHING
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)
