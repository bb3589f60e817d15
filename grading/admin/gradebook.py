"""The gradebook: students by exercise, for the classes that a person teaches."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest, HttpResponse

from grading import sight
from grading.admin.chosen import chosen
from grading.admin.filing import NEEDS
from grading.admin.filing import PAGES as FILING
from grading.admin.words import title_of
from grading.distribution import spreads
from grading.gradebook import Book, Cell, Row, Stage, gradebook
from shop.admin.page import Page, asked, render

STATES = {
    **{stage.value: stage.value for stage in Stage},
    "late": "late",
    "released": "released",
    "hidden": "not released",
}
TONES = {Stage.WAITS: "warn", Stage.OPEN: "warn"}


@dataclass(frozen=True)
class Wanted:
    """What is looked for; empty: everything."""

    student: str
    exercise: str
    state: str

    def __bool__(self) -> bool:
        return bool(self.student or self.exercise or self.state)

    def falls_on(self, cell: Cell) -> bool:
        return self.state in ("", cell.stage.value) or {
            "late": cell.graded and cell.attempt is not None and cell.attempt.late > 0,
            "released": cell.released,
            "hidden": not cell.released,
        }.get(self.state, False)


def gradebook_view(request: HttpRequest) -> HttpResponse:
    classes = list(sight.taught(request.user))
    if not classes:
        return render(request, "admin/grading/gradebook.html", BOOK.title)
    number = asked(request, "class")
    of = chosen(sight.taught(request.user), number) if number else classes[0]
    book = gradebook(of, by=request.user)
    wanted = Wanted(*(asked(request, name) for name in ("student", "exercise", "state")))
    columns = [one for one in book.assignments if wanted.exercise in ("", one.exercise)]
    return render(
        request,
        "admin/grading/gradebook.html",
        f"{BOOK.title}: {of}",
        book=book,
        classes=classes,
        wanted=wanted,
        states=STATES,
        exercises=[(one.exercise, title_of(one.exercise)) for one in book.assignments],
        columns=[{"assignment": one, "title": title_of(one.exercise)} for one in columns],
        lines=[_line(row, found) for row, found in _found(book, wanted)],
        spreads=[{"spread": one, "title": title_of(one.assignment.exercise)} for one in spreads(book)],
    )


def _found(book: Book, wanted: Wanted) -> Sequence[tuple[Row, Sequence[Cell | None]]]:
    """The students that are looked for, with None for a cell that is not."""
    rows = []
    for row in book.rows:
        there = [cell for cell in row.cells if wanted.exercise in ("", cell.assignment.exercise)]
        cells = [cell if wanted.falls_on(cell) else None for cell in there]
        if wanted.student.casefold() in _named(row.student).casefold() and (any(cells) or not wanted.state):
            rows.append((row, cells))
    return rows


def _named(student: Any) -> str:
    return f"{student.get_username()} {student.get_full_name()}"


def _line(row: Row, cells: Sequence[Cell | None]) -> dict[str, Any]:
    shown = [None if cell is None else {"cell": cell, "tone": TONES.get(cell.stage, "")} for cell in cells]
    return {"row": row, "cells": shown}


BOOK = Page("grading/gradebook/", "grading_gradebook", "Gradebook", NEEDS, gradebook_view)
PAGES = [BOOK, *FILING]
