"""What the laboratory has to say, on a terminal."""

import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from exercises.asked import FAULT, read
from exercises.proof.screen import in_short
from exercises.scenarios.exploration import Found
from exercises.scenarios.mishap import Mishap
from exercises.scenarios.stop import Stop
from marlow.clock import monotonic
from shop.words import count
from sweeper.calls import SERVERS, Call
from sweeper.events import Event, Kind
from sweeper.lanes import ALWAYS, CROWDED
from sweeper.locks import LOCKS
from sweeper.telling import clock, tell
from sweeper.verdict import foreign_deletes

EVERY = 200  # runs between two lines of progress, where there is no terminal
COUNTS = ("phantom", "lost", "double_settles", "foreign_deletes", "overlaps")


def timeline(events: Sequence[dict[str, Any]], steps: Sequence[dict[str, str]] = ()) -> Table:
    """A column a box, a line an event; what went wrong is said in words, and stands out besides. With the run's
    `steps` a column a server too; the events then say their `step` (exercises.scenarios.keep has both).
    """
    told, calls = _in_words(events), shown(read(list(steps)))
    boxes, servers = sorted({line.box for line in told}), _asked(calls)
    faults = [FAULT] if any(call.kind == FAULT for call in calls) else []
    table = Table("time", *boxes, *servers.values(), *faults, box=None, padding=(0, 2, 0, 0))
    for line, call in rows(told, calls):
        done = [line.words if line is not None and line.box == box else "" for box in boxes]
        asked = [call.short if call is not None and call.server == server else "" for server in servers]
        struck = [Text(call.words, "bold red") if call is not None and call.kind == FAULT else ""] if faults else []
        at = line.at if line is not None else call.at if call is not None else None
        table.add_row(clock(at) if at else "", *done, *asked, *struck)
    return table


@dataclass(frozen=True)
class Line:
    """An event in words. `step`: how many steps came before it, 0 where that is not on record."""

    at: datetime
    box: str
    run: uuid.UUID
    kind: Kind
    step: int
    words: Text


def _in_words(events: Sequence[dict[str, Any]]) -> list[Line]:
    known = [_event(told) for told in events]
    foreign = {id(event) for event in foreign_deletes(known)}
    settled: dict[str, int] = {}
    several = len({told["run"] for told in events}) > len({event.box for event in known})
    lines = []
    for told, event in zip(events, known, strict=True):
        twice = ""
        if event.kind is Kind.SETTLED:
            settled[event.order] = settled.get(event.order, 0) + 1
            twice = " (AGAIN)" if settled[event.order] > 1 else ""
        number = f"run {told['run'].rpartition('/')[2]}, " if several else ""
        row = number + (f"{event.order}: " if event.order else "")
        words = f"{row}{tell(event, id(event) in foreign)}{twice}"
        style = "bold red" if twice or id(event) in foreign else ""
        step = event.data.get("step", 0)
        lines.append(Line(event.at, event.box, event.run, event.kind, step, Text(words, style)))
    return lines


def shown(calls: Sequence[Call]) -> list[Call]:
    """Of many steps, those that end something, ask something, or are faults."""
    often = len(calls) > CROWDED
    return [call for call in calls if call.kind == FAULT or (call.server and (call.kind in ALWAYS or not often))]


def _asked(calls: Sequence[Call]) -> dict[str, str]:
    """The servers that were asked, with their names, in the order in which pictures have them."""
    return {server: name for server, name in SERVERS.items() if any(call.server == server for call in calls)}


def rows(lines: Sequence[Line], calls: Sequence[Call]) -> Iterator[tuple[Line | None, Call | None]]:
    """In the order in which things happened. An event stands beside the step that led to it, or that it led to, where
    nothing lies between them.
    """
    things: list[Line | Call] = sorted([*calls, *lines], key=_place)
    place = 0
    while place < len(things):
        thing, following = things[place], things[place + 1] if place + 1 < len(things) else None
        place += 1
        if isinstance(thing, Call):
            beside = following if isinstance(following, Line) and _belong(following, thing) else None
            place += beside is not None
            yield beside, thing
        else:
            asked = following if isinstance(following, Call) and _leads_to(thing, following) else None
            place += asked is not None
            yield thing, asked


def _place(thing: Line | Call) -> tuple[int, bool]:
    return (thing.number, False) if isinstance(thing, Call) else (thing.step, True)


def _belong(line: Line, call: Call) -> bool:
    return line.run == call.run and line.at == call.at and line.kind is not Kind.ASKED


def _leads_to(line: Line, call: Call) -> bool:
    return line.run == call.run and line.at == call.at and line.kind is Kind.ASKED and call.server == "provider"


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


def stopped(mishap: Mishap, longest: Stop) -> str:
    """How long nobody swept after it, at the longest."""
    until = "" if longest.over else ", where the evening ends"
    return (
        f"At {mishap.at:%H:%M:%S} {mishap.words}. From then on nobody sweeps for {longest.seconds} s at the longest: "
        f"from {clock(longest.begins)} to {clock(longest.ends)}{until}."
    )


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
    lines = [
        f"{count(found.schedules, 'schedule')} in {found.seconds:.1f} s, up to {found.depth} steps long; {within}."
    ]
    if bounds["menu"]:
        lines.append(f"Faults on the menu, each at every place where it can matter: {', '.join(bounds['menu'])}.")
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
        task, said = bar.add_task("starting", total=None), 0

        def say(found: Found) -> None:
            rate = found.schedules / max(monotonic() - found.began, 0.001)
            tried = f"{count(found.schedules, 'schedule')}, {count(found.plans, 'set')} of faults"
            words = f"{tried}, depth {found.depth}, {rate:.0f} a second"
            bar.update(task, description=words)
            nonlocal said
            if not console.is_terminal and found.schedules >= said + EVERY:
                said = found.schedules
                console.print(words, soft_wrap=True)

        yield say
