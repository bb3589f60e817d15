"""What the laboratory has to say, on a terminal."""

import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from exercises.proof.screen import in_short
from exercises.scenarios.exploration import Found
from marlow.clock import monotonic
from shop.words import count
from sweeper.events import Event, Kind
from sweeper.locks import LOCKS
from sweeper.telling import clock, tell
from sweeper.verdict import foreign_deletes

EVERY = 200  # runs between two lines of progress, where there is no terminal
COUNTS = ("phantom", "lost", "double_settles", "foreign_deletes", "overlaps")


def timeline(events: Sequence[dict[str, Any]]) -> Table:
    """A column a box, a line an event; what went wrong is said in words, and stands out besides."""
    read = [_event(told) for told in events]
    foreign = {id(event) for event in foreign_deletes(read)}
    settled: dict[str, int] = {}
    boxes = sorted({event.box for event in read})
    runs = {told["run"] for told in events}
    table = Table("time", *boxes, box=None, padding=(0, 2, 0, 0))
    for told, event in zip(events, read, strict=True):
        twice = ""
        if event.kind is Kind.SETTLED:
            settled[event.order] = settled.get(event.order, 0) + 1
            twice = " (AGAIN)" if settled[event.order] > 1 else ""
        number = f"run {told['run'].rpartition('/')[2]}, " if len(runs) > len(boxes) else ""
        row = number + (f"{event.order}: " if event.order else "")
        words = f"{row}{tell(event, id(event) in foreign)}{twice}"
        style = "bold red" if twice or id(event) in foreign else ""
        table.add_row(clock(event.at), *(Text(words, style) if event.box == box else "" for box in boxes))
    return table


def _event(told: dict[str, Any]) -> Event:
    known = {"at", "box", "run", "kind", "order", "answer", "token"}
    return Event(
        at=datetime.fromisoformat(told["at"]),
        box=told["box"],
        run=uuid.uuid5(uuid.NAMESPACE_OID, told["run"]),
        kind=Kind(told["kind"]),
        order=told.get("order", ""),
        answer=told.get("answer", ""),
        token=told.get("token"),
        data={name: value for name, value in told.items() if name not in known},
    )


def verdict(told: dict[str, Any]) -> str:
    counts = ", ".join(f"{name.replace('_', ' ')} {told[name]}" for name in COUNTS)
    return f"{told['lock']} + {told['settle']}: {counts}"


def wrong(sentences: Sequence[str]) -> str:
    return "Wrong: " + "; ".join(sentences) + "." if sentences else "Nothing is wrong at the end of it."


MATRIX = """\
refused  the second box was told no until the first had ended
let in   it was told yes before that, and nothing came of it
stale    the same, and the fence refused the first box's write
phantom  both wrote, and a copy was made up
deletes  the first box deleted the second's key"""


def matrix(cells: Sequence[dict[str, Any]]) -> Iterator[Table]:
    """What became of each cell (as `--json` has it): a table a form of settling, a row a fault, a column a lock. Red
    where copies were made up.
    """
    for form in dict.fromkeys(map(_form, cells)):
        seen = {(cell["fault"], cell["lock"]): _came_to(cell) for cell in cells if _form(cell) == form}
        locks = [lock for lock in LOCKS if any(lock == known for _, known in seen)]
        names = (lock.replace("-", "-\n", 1) for lock in locks)
        table = Table("", *names, title=form, title_justify="left", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
        for fault in dict.fromkeys(fault for fault, _ in seen):
            table.add_row(fault, *(seen.get((fault, lock), "") for lock in locks))
        yield table


def agreement(cells: Sequence[dict[str, Any]], missing: Sequence[str]) -> str:
    """How many cells differ from the live table, and which; and what the laboratory has no counterpart of."""
    differing = [cell for cell in cells if not cell["agrees"]]
    lines = [
        f"{count(len(cells), 'cell')}: {len(differing)} differ from the table that `manage.py prove` plays live."
    ]
    for cell in differing:
        seen = cell["seen"].get("error") or in_short({name: cell["seen"].get(name) for name in cell["expected"]})
        name = f"{cell['fault']}/{cell['lock']}, {_form(cell)}"
        lines.append(f"  {name}: expected {in_short(cell['expected'])}; seen {seen}")
    lines += [f"Not here: {reason}." for reason in missing]
    return "\n".join(lines)


def _form(cell: dict[str, Any]) -> str:
    return str(cell["settle"]) + (", stopping on a lost lease" if cell["stop_on_lost_lease"] else "")


def _came_to(cell: dict[str, Any]) -> Text:
    seen = cell["seen"]
    if "error" in seen:
        return Text("error", "bold yellow")
    words = [
        "phantom" if seen["phantom"] else "lost" if seen["lost"] else "stale" if seen["stale"] else seen["second"]
    ]
    words += ["deletes"] if seen["foreign_deletes"] else []
    words += [] if cell["agrees"] else ["DIFFERS"]
    wrong = seen["phantom"] or seen["lost"]
    return Text("\n".join(words), "red" if wrong else "" if cell["agrees"] else "bold yellow")


def evenings(rows: Sequence[dict[str, Any]]) -> Table:
    """Verdicts on the Wednesday, a row each."""
    table = Table("lock", "settle", *(name.replace("_", " ") for name in COUNTS))
    table.title, table.title_justify = "The Wednesday", "left"
    for row in rows:
        style = "red" if row["phantom"] or row["lost"] else ""
        table.add_row(row["lock"], row["settle"], *(Text(str(row[name]), style) for name in COUNTS))
    return table


def report(found: Found) -> str:
    bounds = found.told_bounds()
    told = {name: value for name, value in bounds.items() if name not in ("menu", "stopped") and value}
    within = ", ".join(f"{name} {value}" for name, value in told.items())
    lines = [f"{found.schedules} schedules in {found.seconds:.1f} s, up to {found.depth} steps long; {within}."]
    if bounds["menu"]:
        lines.append(f"Faults tried, at every place: {', '.join(bounds['menu'])}.")
    if found.exhausted:
        lines.append("Exhausted: there is no other order within these bounds.")
    else:
        lines.append(f"Bounded, not exhausted: {found.stopped or 'this policy leaves orders out'}.")
    for what, number in found.failures.items():
        lines.append(f"{count(number, 'schedule')}: {'; '.join(what)}.")
    if not found.failures:
        lines.append("Nothing went wrong in any of them.")
    if found.shortest:
        lines += ["", "The shortest that fails:", f"  manage.py replay '{found.shortest[0]}'"]
    return "\n".join(lines)


@contextmanager
def progress(console: Console) -> Iterator[Callable[[Found], None]]:
    """Schedules done, depth and rate, as they come."""
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("starting", total=None)

        def say(found: Found) -> None:
            rate = found.schedules / max(monotonic() - found.began, 0.001)
            words = (
                f"{found.schedules} schedules, {found.plans} sets of faults, depth {found.depth}, {rate:.0f} a second"
            )
            bar.update(task, description=words)
            if not console.is_terminal and found.schedules % EVERY == 0:
                console.print(words)

        yield say
