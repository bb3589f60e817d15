"""The proof in the terminal: progress, and the table of what was seen against what was expected."""

from collections.abc import Iterable
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

SHORT = {
    "second": "",
    "phantom": "phantom",
    "lost": "lost",
    "double_settles": "twice",
    "foreign_deletes": "foreign",
    "stale": "stale",
    "settled": "settled",
    "starts": "starts",
    "left_behind": "left behind",
}


def progress(console: Console) -> Progress:
    """A bar that counts cells, with the one that ended last."""
    words = TextColumn("{task.description}")
    return Progress(words, BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), console=console, transient=True)


def table(cells: Iterable[dict[str, Any]]) -> Table:
    drawn = Table(title="What each lock does under each fault", title_justify="left")
    for column in ("fault", "lock", "settle", "expected", "seen", ""):
        drawn.add_column(column)
    drawn.add_column("s", justify="right")
    last = ""
    for cell in cells:
        if cell["fault"] != last:
            drawn.add_section()
        fault, last = ("" if cell["fault"] == last else cell["fault"]), cell["fault"]
        settle = cell["settle"] + (", stopping" if cell["stop_on_lost_lease"] else "")
        drawn.add_row(fault, cell["lock"], settle, in_short(cell["expected"]), *_seen(cell), f"{cell['seconds']:.1f}")
    return drawn


def in_short(figures: dict[str, Any]) -> str:
    """The figures that are not nought, in the table's words: `let in, phantom 1, twice 1`."""
    words = []
    for name, short in SHORT.items():
        value = figures.get(name)
        if isinstance(value, str):
            words.append(value)
        elif value is not None and (value or name == "starts"):
            words.append(f"{short} {value:d}")
    return ", ".join(words)


def _seen(cell: dict[str, Any]) -> tuple[Text, Text]:
    if cell["skipped"]:
        return Text(f"skipped: {cell['skipped']}", style="yellow"), Text("–", style="yellow")
    if "error" in cell["seen"]:
        return Text(cell["seen"]["error"], style="red"), Text("differs", style="red")
    agrees = Text("agrees", style="green") if cell["agrees"] else Text("differs", style="red")
    return Text(in_short({name: cell["seen"].get(name) for name in cell["expected"]})), agrees
