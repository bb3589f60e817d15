"""The form as a file: a paper of TOML on which every field is named, described, and not answered."""

from collections.abc import Iterator
from typing import Any

from exercises.handed.exercise import Exercise
from grading import forms
from grading.entries import Entry, Group, Node, Rows

EMPTY = {"line": '""', "text": '""', "choice": '""', "pick": '""', "code": "'''\n'''"}  # the others have none in TOML


def paper(of: Exercise) -> str:
    """To be filled in, and then read by `judge` and `attempt`."""
    head = [f'exercise = "{of.slug}"', "", "# Lines with a # are left out: take it away where you fill one in.", ""]
    return "\n".join([*head, *_table(forms.blank(of.answers).nodes, "answers", "[answers]")]).rstrip() + "\n"


def _table(nodes: list[Node], path: str, header: str) -> Iterator[str]:
    """Plain fields first: what follows the header of a table is the table's."""
    yield header
    tables = [node for node in nodes if _row(node) is not None or isinstance(node, Group)]
    for node in nodes:
        if node not in tables:
            yield from _said_of(node)
            yield _line(node)
            yield ""
    for node in tables:
        yield from _said_of(node)
        lines = _inner(node, f"{path}.{_name(node)}")
        yield from lines if node.needed else map(_aside, lines)


def _inner(node: Node, path: str) -> Iterator[str]:
    if (row := _row(node)) is not None:
        yield from _table(row.parts, path, f"[[{path}]]")
    elif isinstance(node, Group):
        yield from _table(node.parts, path, f"[{path}]")


def _aside(line: str) -> str:
    return "\n".join(part if part.startswith("#") else f"# {part}".rstrip() for part in line.splitlines())


def _row(node: Node) -> Group | None:
    """The first row of a list whose rows have fields of their own."""
    first = node.rows[0] if isinstance(node, Rows) and node.rows else None
    return first if isinstance(first, Group) else None


def _name(node: Node) -> str:
    return node.path.rpartition(".")[2]


def _line(node: Node) -> str:
    empty = "[]" if isinstance(node, Rows) else EMPTY.get(node.kind, "")
    if isinstance(node, Entry) and node.choices and not all(isinstance(one, str) for _, one in node.choices):
        empty = ""
    line = f"{_name(node)} = {empty}"
    return line if node.needed and empty else _aside(line)


def _said_of(node: Node) -> Iterator[str]:
    label = node.label if node.label.endswith("?") else f"{node.label.rstrip('.')}."
    also = [*_taken(node)]
    if _row(node) is not None:
        also.append("Write this table once for each.")
    if not node.needed:
        also.append("May be left out.")
    for line in f"{label} {node.help}\n{' '.join(also)}".splitlines():
        yield f"# {line}".rstrip()


def _taken(node: Node) -> Iterator[str]:
    """What may stand there."""
    if not isinstance(node, Entry):
        return
    if node.choices:
        yield f"One of: {', '.join(_as_toml(one) for _, one in node.choices)}."
    elif node.kind == "tick":
        yield "true or false."
    elif node.kind in ("whole", "number"):
        bounds = [f"{word} {bound}" for word, bound in (("from", node.least), ("to", node.most)) if bound is not None]
        yield f"{' '.join(['A whole number' if node.kind == 'whole' else 'A number', *bounds])}."


def _as_toml(value: Any) -> str:
    return f'"{value}"' if isinstance(value, str) else str(value).lower()
