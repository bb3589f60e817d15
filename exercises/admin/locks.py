"""What each lock does under each fault: the lock table as it was seen, cell by cell, each with its latest proof."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.urls import reverse

from exercises.admin.promise import figures, with_figures
from exercises.admin.proof import TONES, ending
from exercises.models import Proof
from exercises.proof.cells import ABOUT, FAULTS, LET_IN, Cell, table
from shop.admin.page import Page, render
from sweeper.locks import LOCKS

PLAIN = "unguarded"
CELL = ("lock", "fault", "settle", "stop_on_lost_lease")
NOT_YET = "not played yet"


@dataclass(frozen=True)
class Mark:
    """One form of a cell. `word` and `tone`: what was seen; `ending`: how that compares; no `address`: not played."""

    form: str
    letters: str
    word: str = NOT_YET
    tone: str = ""
    ending: str = ""
    ending_tone: str = ""
    address: str = ""


@dataclass(frozen=True)
class Place:
    """Where a fault's row meets a lock's column; `first` is None where the fault is nothing to this lock."""

    lock: str
    first: Mark | None
    others: tuple[Mark, ...]


@dataclass(frozen=True)
class Row:
    fault: str
    about: str
    places: tuple[Place, ...]


def locks_view(request: HttpRequest) -> HttpResponse:
    """Every fault a row, every lock a column; unguarded in the foreground, the other forms as marks."""
    seen = latest()
    return render(
        request,
        "admin/exercises/locks.html",
        "What each lock does",
        locks=list(LOCKS),
        rows=list(_rows(seen)),
        forms=list(dict.fromkeys((_letters(cell), _form(cell)) for cell in table() if not _foremost(cell))),
        tally=tally(seen),
        last=max((proof.real_at for proof in seen.values()), default=None),
    )


def latest() -> dict[Cell, Any]:
    """The latest proof, skipped ones included, of each cell of the table that has any. One query."""
    newest = Proof.objects.order_by(*CELL, "-real_at", "-pk").distinct(*CELL).values("pk")
    proofs = with_figures(Proof.objects.filter(pk__in=newest)).order_by()
    found = {Cell(*(getattr(proof, name) for name in CELL)): proof for proof in proofs}
    return {cell: found[cell] for cell in table() if cell in found}


def tally(seen: Mapping[Cell, Any]) -> dict[str, int]:
    """How many cells the table has, how many were played, and how many of them agree, differ, were skipped."""
    ended = Counter(ending(proof) for proof in seen.values())
    return {"cells": sum(1 for _ in table()), "known": len(seen), **{name: ended[name] for name in TONES}}


def _rows(seen: Mapping[Cell, Any]) -> Iterator[Row]:
    cells = defaultdict(list)
    for cell in table():
        cells[cell.fault, cell.lock].append(cell)
    for fault in FAULTS:
        places = (_place(lock, cells[fault, lock], seen) for lock in LOCKS)
        yield Row(fault, ABOUT[fault], tuple(places))


def _place(lock: str, cells: list[Cell], seen: Mapping[Cell, Any]) -> Place:
    marks = [_mark(cell, seen.get(cell)) for cell in sorted(cells, key=_foremost, reverse=True)]
    return Place(lock, marks[0] if marks else None, tuple(marks[1:]))


def _mark(cell: Cell, proof: Any) -> Mark:
    if proof is None:
        return Mark(_form(cell), _letters(cell))
    word, tone = _in_a_word(proof)
    address = reverse("admin:exercises_proof_change", args=[proof.pk])
    ended = ending(proof)
    return Mark(_form(cell), _letters(cell), word, tone, ended, TONES[ended], address)


def _in_a_word(proof: Any) -> tuple[str, str]:
    """What was seen, and the tone in which to say it."""
    seen = figures(proof)
    if proof.skipped:
        return "skipped", ""
    if "error" in seen:
        return "error", "bad"
    if seen.get("phantom"):
        return "phantom", "bad"
    if "starts" in seen:
        return ("starts", "bad") if seen["starts"] else ("won’t start", "good")
    return ("let in", "warn") if seen.get("second") == LET_IN else ("refused", "good")


def _foremost(cell: Cell) -> bool:
    return cell.settle == PLAIN and not cell.stop


def _form(cell: Cell) -> str:
    """`guarded`, `fenced+guarded`; `stopping` for the shop that shipped, with stop-on-lost-lease."""
    return "stopping" if cell.stop else cell.settle


def _letters(cell: Cell) -> str:
    return "".join(word[0] for word in _form(cell).split("+"))


LOCKS_PAGE = Page("exercises/locks/", "exercises_locks", "What each lock does", ("exercises.view_proof",), locks_view)
PAGES = [LOCKS_PAGE]
