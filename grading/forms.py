"""The form in which an exercise is handed in: made from its answers’ type, filled, read, and told what is wrong.

It works without JavaScript: rows of a list are added and taken away by buttons that show the form again.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from exercises.handed.answers import Answers
from grading.entries import LIST_ROWS, MOST_ROWS, Drawer, Entry, Group, Node, Rows, Values, as_text, everywhere

PREFIX = "answers."  # of the inputs' names, so that no field is taken for a button
ABSENT = object()  # a field that was left empty is not handed in: its default stands, or it is missing
WHOLE = re.compile(r"[+-]?[0-9]{1,18}")


@dataclass
class Form:
    """`loose`: what is wrong, and no field's fault alone."""

    nodes: list[Node]
    loose: list[str] = field(default_factory=list)

    def answers(self) -> dict[str, Any]:
        """What it says, to be read by the exercise's own type. Never raises: a text that is no number stays one, and
        the type says so.
        """
        return _parts(self.nodes)

    def tell(self, problems: Mapping[str, str]) -> None:
        """Each to its field, or to the innermost thing that holds it."""
        places = {node.path: node for node in everywhere(self.nodes)}
        for path, sentence in problems.items():
            place = next((places[near] for near in _nearest(path) if near in places), None)
            if place is None or place.problem:
                self.loose.append(sentence)
            else:
                place.problem = sentence

    @property
    def problems(self) -> list[Node]:
        return [node for node in everywhere(self.nodes) if node.problem]

    @property
    def code(self) -> bool:
        """Whether there is a program in it, which deserves an editor."""
        return any(node.kind == "code" for node in everywhere(self.nodes))


def blank(answers: type[Answers]) -> Form:
    return Form(Drawer({}).parts(answers))


def filled(answers: type[Answers], stored: Any) -> Form:
    """With answers as they were handed in; what does not fit any more is left out."""
    return Form(Drawer(dict(_flat(stored))).parts(answers)) if isinstance(stored, dict) else blank(answers)


def handed(answers: type[Answers], posted: Mapping[str, Any]) -> Form:
    """What a browser sent, without the rows in which nothing was written."""
    return Form(Drawer(_values(posted), compact=True).parts(answers))


def with_row(answers: type[Answers], posted: Mapping[str, Any], path: str) -> Form:
    """The same form with one more row of this list."""
    values = dict(_values(posted))
    rows = f"{path}.{LIST_ROWS}"
    if re.fullmatch("[0-9]{1,4}", values.get(rows, "")):
        values[rows] = str(min(int(values[rows]) + 1, MOST_ROWS))
    form = Form(Drawer(values).parts(answers))
    last = next(
        (node.rows[-1:] for node in everywhere(form.nodes) if node.path == path and isinstance(node, Rows)), []
    )
    for entry in [node for node in everywhere(last) if isinstance(node, Entry)][:1]:
        entry.focus = True
    return form


def without_row(answers: type[Answers], posted: Mapping[str, Any], path: str) -> Form:
    """The same form without this row, `steps.1`; those below it move up."""
    form = Form(Drawer(_values(posted)).parts(answers))
    rest = dict(_texts(form.nodes, leave_out=path))
    return Form(Drawer(rest).parts(answers))


def _values(posted: Mapping[str, Any]) -> Values:
    """Line ends as programs have them; a browser sends CRLF."""
    ours = {name.removeprefix(PREFIX): str(posted[name]) for name in posted if name.startswith(PREFIX)}
    values = {name: text.replace("\r\n", "\n") for name, text in ours.items()}
    return values or {LIST_ROWS: ""}  # a form that came with nothing in it is none that nobody has seen


def _texts(nodes: list[Node], leave_out: str, path: str = "") -> Iterator[tuple[str, str]]:
    """As a browser would send it again; `path` is where a row stands by then."""
    for node in nodes:
        name = node.path.rpartition(".")[2]
        where = f"{path}.{name}" if path else name
        if isinstance(node, Entry):
            if node.kind != "tick" or node.text:
                yield where, node.text
        elif isinstance(node, Group):
            yield from _texts(node.parts, leave_out, where)
        else:
            rows = [row for row in node.rows if row.path != leave_out]
            yield f"{where}.{LIST_ROWS}", str(len(rows))
            for number, row in enumerate(rows):
                yield from _row_texts(row, leave_out, f"{where}.{number}")


def _row_texts(row: Node, leave_out: str, where: str) -> Iterator[tuple[str, str]]:
    if isinstance(row, Group):
        yield from _texts(row.parts, leave_out, where)
    elif isinstance(row, Entry):
        yield where, row.text


def _flat(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Answers as a form's values; what has no input of its own stands there as JSON, too."""
    if isinstance(value, dict | list):
        parts = value.items() if isinstance(value, dict) else enumerate(value)
        if path:
            yield path, json.dumps(value, ensure_ascii=False)
        if isinstance(value, list):
            yield f"{path}.{LIST_ROWS}", str(len(value))
        for name, part in parts:
            yield from _flat(part, f"{path}.{name}" if path else str(name))
    elif value is not None and value is not False:
        yield path, as_text(value)


def _nearest(path: str) -> Iterator[str]:
    """The path itself, and what holds it, from the inside out."""
    while path:
        yield path
        path = path.rpartition(".")[0]


def _parts(nodes: list[Node]) -> dict[str, Any]:
    said = {node.path.rpartition(".")[2]: _value(node) for node in nodes}
    return {name: value for name, value in said.items() if value is not ABSENT}


def _value(node: Node) -> Any:
    if isinstance(node, Entry):
        return _said(node)
    if not node.needed and node.empty:
        return ABSENT
    if isinstance(node, Group):
        return _parts(node.parts)
    return [_value(row) for row in node.rows if not row.empty]


def _said(entry: Entry) -> Any:
    if entry.kind == "tick":
        return bool(entry.text)
    if not entry.text:
        return "" if entry.untouched and entry.kind in ("line", "text", "code") else ABSENT
    if entry.choices:
        return dict(entry.choices).get(entry.text, entry.text)
    text = entry.text.strip()
    if entry.kind == "whole":
        return int(text) if WHOLE.fullmatch(text) else entry.text
    if entry.kind in ("number", "json"):
        return _json(text, entry.text)
    return entry.text


def _json(text: str, otherwise: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return otherwise
