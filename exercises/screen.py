"""The evening in the terminal: who works, what happens, and the verdict."""

from datetime import datetime
from types import TracebackType
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from shop.shelf import shelf
from sweeper import models
from sweeper.events import Event, Kind
from sweeper.models import SweepRun
from sweeper.telling import clock, tell
from sweeper.verdict import as_event, foreign_deletes

QUIET = {Kind.STARTED, Kind.ASKED, Kind.ANSWERED, Kind.SETTLING}
COLOURS = {
    Kind.ACQUIRED: "green",
    Kind.REFUSED: "yellow",
    Kind.SETTLED: "bold",
    Kind.RELEASED: "cyan",
    Kind.DIED: "red",
    Kind.STALE: "red",
    Kind.LOST: "red",
}


class Screen:
    """Prints each notable event as it comes, and, in a real terminal, keeps the runs' state below them."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.live: Live | None = None
        self.events: list[Event] = []

    def __enter__(self) -> "Screen":
        if self.console.is_terminal:
            self.live = Live(console=self.console, refresh_per_second=8, transient=True)
            self.live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.live:
            self.live.stop()

    def show(self, now: datetime, runs: list[SweepRun], events: list[models.Event]) -> None:
        self.events += [as_event(event) for event in events]
        foreign = foreign_deletes(self.events)
        for event in self.events[-len(events) :] if events else []:
            if event.kind not in QUIET:
                self.console.print(_line(event, event in foreign))
        if self.live:
            self.live.update(Group(Text(f"\n{clock(now)}", style="bold"), _runs(runs, self.events)))

    def verdict(self, verdict: dict[str, Any]) -> None:
        title = f"{verdict['lock']}, settle {verdict['settle']}, question {verdict['question']}"
        table = Table(title=title, title_justify="left", show_header=False)
        for words, key in (
            ("runs that overlapped (pairs)", "overlaps"),
            ("keys deleted that were another run's", "foreign_deletes"),
            ("rows settled twice", "double_settles"),
            ("phantom copies: promised, on no shelf", "phantom"),
            ("lost copies: on the shelf, promised to nobody", "lost"),
        ):
            table.add_row(words, Text(str(verdict[key]), style="bold red" if verdict[key] else "bold green"))
        self.console.print(table)
        for book in shelf().exclude(difference=0):
            self.console.print(
                f"{book.title}: the catalogue says {book.stock} in stock, the shelf holds {book.on_shelf}.",
                style="red",
            )


def _line(event: Event, foreign: bool) -> Text:
    line = Text(f"{clock(event.at)}  ", style="dim")
    line.append(f"{event.box:6} ", style="magenta" if event.box == "box-a" else "blue")
    if event.order:
        line.append(f"{event.order:6} ")
    line.append(tell(event, foreign), style="bold red" if foreign else COLOURS.get(event.kind, ""))
    return line


def _runs(runs: list[SweepRun], events: list[Event]) -> Table:
    table = Table(box=None, pad_edge=False)
    for heading in ("box", "since", "run", "orders", "settled"):
        table.add_column(heading, justify="right" if heading in ("orders", "settled") else "left")
    for run in runs[-6:]:
        rows = "" if run.rows is None else str(run.rows)
        settled = sum(event.run == run.run and event.kind is Kind.SETTLED for event in events)
        table.add_row(run.box, clock(run.started_at), run.get_state_display(), rows, str(settled))
    return table
