"""`manage.py prove`: the lock table, every cell of it played on real servers, against what the table says."""

import json
import os
import subprocess
import sys
import uuid
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, DjangoHelpFormatter
from rich.console import Console

from exercises.archive import where_to_keep
from exercises.proof import screen
from exercises.proof.cells import ABOUT, FAULTS, Cell, table
from marlow.lanes import Told, play_side_by_side
from marlow.servers.launcher import ServerError
from marlow.settings import environment_for
from marlow.turns import alone
from shop.settle import FORMS
from sweeper.locks import LOCKS

HOSTS = "power-loss"  # the fault whose first box needs a host of its own
MOST_LANES = 2


class Help(DjangoHelpFormatter, RawDescriptionHelpFormatter):
    """Keeps the lines of the list of faults."""


class Command(BaseCommand):
    help = "Play the lock table on real servers, two boxes and real faults; exit status 1 where it differs."
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.formatter_class = Help
        parser.epilog = "\n".join(["faults:", *(f"  {fault}\n      {ABOUT[fault]}" for fault in FAULTS)])
        parser.add_argument("--lock", action="append", choices=LOCKS, help="only this lock (may be given again)")
        parser.add_argument("--fault", action="append", choices=FAULTS, help="only this fault")
        parser.add_argument("--settle", action="append", choices=FORMS, help="only this form of settling")
        parser.add_argument(
            "--cell", action="append", metavar="NAME", help="only this: overrun/redis-token/unguarded"
        )
        parser.add_argument("--json", action="store_true", help="the cells as JSON on the last line of stdout")

    def handle(self, *args: Any, **options: Any) -> None:
        cells = [cell for cell in table() if _wanted(cell, options)]
        if unknown := sorted(set(options["cell"] or []) - {cell.name for cell in table()}):
            raise CommandError(
                f"The table has no cell {', '.join(map(repr, unknown))}: a name is fault/lock/settle, like"
                f" {next(table()).name}, and --help lists the three."
            )
        if not cells:
            raise CommandError(
                "The table has no such cell: leave out one of --lock, --fault, --settle and --cell."
                f"{_other_settles(options)}"
            )
        folder = Path(settings.STATE_DIR) / "prove"
        console = Console(stderr=options["json"])
        try:
            with alone(folder, "manage.py prove"):
                told = self._play(cells, folder, console)
        except ServerError as error:
            raise CommandError(str(error)) from error
        except KeyboardInterrupt:
            sys.exit(130)
        proved = [as_json(cell, each) for cell, each in zip(cells, told, strict=True)]
        console.print(screen.table(proved))
        self._keep(proved)
        differing = sum(cell["agrees"] is False for cell in proved)
        skipped = sum(bool(cell["skipped"]) for cell in proved)
        cells_in_words = "1 cell" if len(proved) == 1 else f"{len(proved)} cells"
        console.print(f"{cells_in_words}: {differing} differ from the table, {skipped} skipped.")
        if options["json"]:
            self.stdout.write(json.dumps(proved))
        sys.exit(1 if differing else 0)

    def _play(self, cells: list[Cell], folder: Path, console: Console) -> list[Told]:
        told: dict[int, Told] = {}
        with screen.progress(console) as progress:
            task = progress.add_task("starting servers and boxes", total=len(cells))

            def done(number: int, said: Told) -> None:
                told[number] = said
                progress.update(task, advance=1, description=cells[number].name)
                if not console.is_terminal:
                    console.print(f"{len(told)} of {len(cells)}: {cells[number].name}")

            numbered = [
                (number, (cell.lock, cell.fault, cell.settle, cell.stop), cell.fault == HOSTS)
                for number, cell in enumerate(cells)
            ]
            lanes = min(MOST_LANES, os.cpu_count() or 1, len(cells))
            play_side_by_side(numbered, folder, lanes, done)
        return [told[number] for number in range(len(cells))]

    def _keep(self, proved: list[dict[str, Any]]) -> None:
        """In the shop's own database, where it can be reached, else in the demo's, which is started for it."""
        try:
            with where_to_keep() as (url, _):
                subprocess.run(
                    [sys.executable, "-m", "exercises.proof", "keep", uuid.uuid4().hex],
                    env=environment_for(DATABASE_URL=url),
                    input=json.dumps(proved),
                    capture_output=True,
                    text=True,
                    check=True,
                )
        except (ServerError, subprocess.CalledProcessError) as failed:
            why = failed.stderr.strip()[-500:] if isinstance(failed, subprocess.CalledProcessError) else failed
            self.stderr.write(f"The cells could not be kept for the admin: {why}")


def as_json(cell: Cell, told: Told) -> dict[str, Any]:
    """A cell as `--json` prints it. `agrees` is null where it was skipped."""
    return {
        "lock": cell.lock,
        "fault": cell.fault,
        "settle": cell.settle,
        "stop_on_lost_lease": cell.stop,
        "expected": cell.expected,
        "seen": told["seen"],
        "agrees": None if told["skipped"] else cell.agrees(told["seen"]),
        "skipped": told["skipped"],
        "seconds": told["seconds"],
    }


def _wanted(cell: Cell, options: dict[str, Any]) -> bool:
    names = {"cell": cell.name, "lock": cell.lock, "fault": cell.fault, "settle": cell.settle}
    return all(not options[kind] or name in options[kind] for kind, name in names.items())


def _other_settles(options: dict[str, Any]) -> str:
    """Which cells there would be, had no form of settling been asked for; nothing where there are none."""
    near = [cell.name for cell in table() if _wanted(cell, {**options, "settle": None})]
    return f" It has {', '.join(near)}." if 0 < len(near) <= 6 else ""
