"""What a form asks for, worked out from a pydantic type: one entry a field, groups of them, and rows of those."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import date, time, timedelta
from decimal import Decimal
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from exercises.handed.answers import Code

MOST_ROWS = 60  # of one list in the form; longer answers come by file
AT_FIRST = 3  # empty rows that a list starts with
FEW = 6  # choices that are shown side by side, where one of them must be taken
ONE_LINE = 200  # characters; a longer text gets a field of several lines
LIST_ROWS = "rows"  # `steps.rows`: how many rows of `steps` the form had
KINDS = {str: "line", int: "whole", float: "number", Decimal: "number", bool: "tick"}
PLAIN = (date, time, timedelta)  # written in words of their own

Values = Mapping[str, str]  # what the form says, by the inputs' names: `steps.0.statement`


@dataclass
class Place:
    """Where something of the answer stands in the form: `steps.0.statement`; its element's id is made of that."""

    path: str
    label: str
    help: str

    @property
    def id(self) -> str:
        return "id_" + self.path.replace(".", "-")


@dataclass
class Entry(Place):
    """One input. `text` is what stands in it, `untouched` what stood there at first."""

    kind: str  # choice, pick, tick, whole, number, line, text, code; json for whatever has no input of its own
    needed: bool
    untouched: str = ""
    text: str = ""
    choices: list[tuple[str, Any]] = field(default_factory=list)
    language: str = ""
    least: Any = None
    most: Any = None
    problem: str = ""
    focus: bool = False

    @property
    def empty(self) -> bool:
        return self.text == self.untouched


@dataclass
class Group(Place):
    """A part of the answer, with fields of its own."""

    parts: list["Node"]
    needed: bool = True
    problem: str = ""
    kind: str = "group"

    @property
    def empty(self) -> bool:
        return all(part.empty for part in self.parts)


@dataclass
class Rows(Place):
    """A list: each of its rows an entry or a group."""

    rows: list["Node"]
    needed: bool = True
    full: bool = False
    problem: str = ""
    kind: str = "rows"

    @property
    def empty(self) -> bool:
        return all(row.empty for row in self.rows)


Node = Entry | Group | Rows


@dataclass(frozen=True)
class Asked:
    """One field of a type: where its value stands in the form that came (`source`), and where in the next one."""

    type: Any
    path: str
    source: str
    label: str = ""
    help: str = ""
    default: Any = PydanticUndefined
    marks: tuple[Any, ...] = ()
    in_row: bool = False

    @property
    def needed(self) -> bool:
        return self.default is PydanticUndefined


@dataclass(frozen=True)
class Drawer:
    """Makes the nodes of a type. `compact` leaves out rows that nobody has touched."""

    values: Values
    compact: bool = False

    def parts(self, model: type[BaseModel], path: str = "", source: str = "", in_row: bool = False) -> list[Node]:
        return [self.node(_asked(name, info, path, source, in_row)) for name, info in model.model_fields.items()]

    def node(self, asked: Asked) -> Node:
        asked = _unwrapped(asked)
        if (item := _item(asked.type)) is not None:
            return self._rows(asked, item)
        if isinstance(asked.type, type) and issubclass(asked.type, BaseModel):
            parts = self.parts(asked.type, asked.path, asked.source, asked.in_row)
            return Group(asked.path, asked.label, asked.help, parts, asked.needed)
        return self._entry(asked)

    def _rows(self, asked: Asked, item: Any) -> Rows:
        rows: list[Node] = []
        for number in range(self._count(asked)):
            row = Asked(item, f"{asked.path}.{len(rows)}", f"{asked.source}.{number}", in_row=True)
            if not (node := self.node(row)).empty or not self.compact:
                rows.append(node)
        if self.compact and not rows:  # one to write into
            rows.append(self.node(Asked(item, f"{asked.path}.0", f"{asked.source}.{MOST_ROWS}", in_row=True)))
        return Rows(asked.path, asked.label, asked.help, rows, asked.needed, len(rows) >= MOST_ROWS)

    def _count(self, asked: Asked) -> int:
        said = self.values.get(f"{asked.source}.{LIST_ROWS}")
        if said is None:
            return AT_FIRST
        return min(int(said), MOST_ROWS) if re.fullmatch("[0-9]{1,4}", said) else AT_FIRST

    def _entry(self, asked: Asked) -> Entry:
        untouched = "" if asked.default in (PydanticUndefined, None) else as_text(asked.default)
        came = self.values.get(asked.source)
        entry = Entry(asked.path, asked.label, asked.help, _kind(asked), asked.needed, untouched)
        if entry.kind == "tick":
            entry.text = "on" if came or (came is None and not self.values and untouched) else ""
        else:
            entry.text = untouched if came is None else came
        entry.choices = _choices(asked)
        entry.language = next((mark.language for mark in asked.marks if isinstance(mark, Code)), "")
        entry.least, entry.most = _mark(asked, "ge"), _mark(asked, "le")
        return entry


def as_text(value: Any) -> str:
    """A value of an answer as an input holds it."""
    return ("on" if value else "") if isinstance(value, bool) else str(value)


def _asked(name: str, info: FieldInfo, path: str, source: str, in_row: bool) -> Asked:
    label = info.title or name.replace("_", " ").capitalize()
    default = info.get_default(call_default_factory=True) if not info.is_required() else PydanticUndefined
    where, whence = (f"{start}.{name}" if start else name for start in (path, source))
    return Asked(info.annotation, where, whence, label, info.description or "", default, tuple(info.metadata), in_row)


def _unwrapped(asked: Asked) -> Asked:
    """Without `Annotated` and without `| None`, whose field may be left empty."""
    kind, marks = asked.type, [*asked.marks]
    while True:
        if get_origin(kind) is Annotated:
            kind, *more = get_args(kind)
            marks += [part for one in more for part in (one.metadata if isinstance(one, FieldInfo) else [one])]
        elif get_origin(kind) in (Union, UnionType) and len(left := _but_none(kind)) == 1:
            kind = left[0]
        else:
            break
    return replace(asked, type=kind, marks=tuple(marks))


def _but_none(kind: Any) -> list[Any]:
    return [one for one in get_args(kind) if one is not NoneType]


def _kind(asked: Asked) -> str:
    kind = asked.type
    if choices := _choices(asked):
        return "choice" if asked.needed and not asked.in_row and len(choices) <= FEW else "pick"
    if any(isinstance(mark, Code) for mark in asked.marks):
        return "code"
    if kind in KINDS:
        return "text" if kind is str and (_mark(asked, "max_length") or 0) > ONE_LINE else KINDS[kind]
    return "line" if isinstance(kind, type) and issubclass(kind, PLAIN) else "json"


def _choices(asked: Asked) -> list[tuple[str, Any]]:
    return [(as_text(one), one) for one in get_args(asked.type)] if get_origin(asked.type) is Literal else []


def _item(kind: Any) -> Any:
    """Of what the list is; None for what is no list of one kind of thing."""
    origin, of = get_origin(kind), get_args(kind)
    if origin in (list, set, frozenset) or (origin is tuple and of[1:] == (...,)):
        return of[0]
    return None


def _mark(asked: Asked, name: str) -> Any:
    """A bound that the type is marked with."""
    found = (getattr(mark, name, None) for mark in asked.marks)
    return next((bound for bound in found if bound is not None), None)


def everywhere(nodes: list[Node]) -> Iterator[Node]:
    """All of them, the inner ones too."""
    for node in nodes:
        yield node
        if isinstance(node, Group):
            yield from everywhere(node.parts)
        elif isinstance(node, Rows):
            yield from everywhere(node.rows)
