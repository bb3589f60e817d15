"""`manage.py lab`: the Wednesday in virtual time, the lock table, and every order in which two boxes can meet."""

import json
import signal
import sys
from argparse import ArgumentParser
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from rich.console import Console

from exercises.lab.database import Database
from exercises.lab.scheduler import LabError
from exercises.proof import screen
from exercises.proof.cells import FAULTS, Cell
from exercises.scenarios import keep, matrix, told
from exercises.scenarios.boxes import ALL_FORMS, ALL_LOCKS, Setting
from exercises.scenarios.corner import Corner
from exercises.scenarios.exploration import POLICIES, Bounds, Exploration
from exercises.scenarios.hour import without_vain_questions
from exercises.scenarios.replay import pairs, play
from exercises.scenarios.room import laboratory
from exercises.scenarios.wednesday import START_OF_EVENING, STARTS
from exercises.stage import NotAStage
from marlow.clock import monotonic
from marlow.management.commands.prove import as_json
from marlow.servers.launcher import ServerError
from marlow.settings import environment_for
from shop.settle import FORMS
from sweeper.locks import LOCKS


class Command(BaseCommand):
    help = "The laboratory: the shop's own code on a real Postgres, in virtual time, in every order."
    requires_system_checks = []
    kept: dict[str, Any] | None = None

    def add_arguments(self, parser: ArgumentParser) -> None:
        doors = parser.add_subparsers(dest="door", required=True, metavar="wednesday | matrix | explore")
        wednesday = doors.add_parser("wednesday", help="the evening, to the second")
        matrix = doors.add_parser("matrix", help="the lock table in virtual time; exit status 1 where it differs")
        explore = doors.add_parser(
            "explore", help="every order in which boxes can meet; exit status 1 where one is wrong"
        )
        wednesday.add_argument(
            "--from",
            dest="start",
            choices=sorted(STARTS),
            default="21:50",
            help="21:50 with fourteen rows seeded, or the whole evening from 20:50 by real checkouts",
        )
        for door in (wednesday, explore):
            door.add_argument("--lock", choices=ALL_LOCKS, default="redis-naive")
            door.add_argument("--settle", choices=ALL_FORMS, default="unguarded")
            door.add_argument("--question", choices=["lookup", "cancel"], default="lookup")
            door.add_argument("--stop-on-lost-lease", action="store_true")
            door.add_argument("--renew", action="store_true", help="renew the lease beside the run, where it can be")
        for door in (wednesday, explore):
            door.add_argument("--keep", action="store_true", help="in the shop's database, for the admin")
        for name, choices in (("lock", LOCKS), ("fault", FAULTS), ("settle", FORMS)):
            matrix.add_argument(f"--{name}", action="append", choices=choices, help="only this; may be given again")
        for door in (wednesday, matrix, explore):
            door.add_argument("--json", action="store_true", help="the result on the last line of stdout")
        explore.add_argument("--boxes", type=int, default=2)
        explore.add_argument("--orders", type=int, default=2)
        explore.add_argument("--messages", type=int, default=1, help="runs a box, a lease apart")
        explore.add_argument("--faults", type=int, choices=(0, 1, 2), default=0, help="at most so many in one run")
        explore.add_argument("--latency", type=float, default=0.0, help="of an answer (virtual seconds, at most 10)")
        explore.add_argument("--lease", type=float, default=120.0, help="and schedule, in virtual seconds")
        explore.add_argument("--policy", choices=POLICIES, default="all")
        explore.add_argument("--preemptions", type=int, help="at most so many, for --policy plain")
        explore.add_argument("--schedules", type=int, help="stop after so many")
        explore.add_argument("--seconds", type=float, help="stop after so long (real)")
        explore.add_argument("--seed", type=int, default=1, help="of the policies random and pct")

    def handle(self, *args: Any, **options: Any) -> None:
        console = Console(stderr=options["json"])
        try:
            with laboratory() as database:
                result, status = getattr(self, options["door"])(database, console, options)
        except (ServerError, NotAStage, LabError) as error:
            raise CommandError(str(error)) from error
        if options["json"]:
            self.stdout.write(json.dumps(result))
        self._keep(options)
        sys.exit(status)

    def _keep(self, options: dict[str, Any]) -> None:
        """Once the laboratory is closed: while it is open, the shop's connection is the laboratory's."""
        try:
            if options.get("keep") and self.kept is not None:
                keep.keep(self.kept, environment_for)
        except keep.NotKept as error:
            raise CommandError(str(error)) from error

    def wednesday(self, database: Database, console: Console, options: dict[str, Any]) -> tuple[Any, int]:
        start = STARTS[options["start"]]
        setting = _setting(options)
        outcome = play(database, setting, start=start)
        self.kept = keep.of_wednesday(setting, start, outcome)
        events, steps = keep.placed(outcome), keep.steps_of(outcome.taken)
        if start == START_OF_EVENING:
            events, steps = without_vain_questions(events), []
            console.print("Until 21:50 no question is answered; those are left out here, and are in --json.")
        console.print(told.timeline(events, steps))
        console.print(told.verdict(outcome.verdict))
        return outcome.verdict, 0

    def matrix(self, database: Database, console: Console, options: dict[str, Any]) -> tuple[Any, int]:
        """The cells of the live table, and behind them the Wednesday, unless a fault was asked for."""
        cells, missing = matrix.chosen(options["lock"], options["fault"], options["settle"])
        with screen.progress(console) as progress:
            played = [_played(database, cell) for cell in progress.track(cells, description="playing")]
        for table in told.matrix(played):
            console.print(table)
        console.print(told.MATRIX, highlight=False)
        console.print(told.agreement(played, missing), soft_wrap=True, markup=False, highlight=False)
        if not options["fault"]:
            locks, settles = options["lock"] or LOCKS, options["settle"] or FORMS
            wanted = [Setting(*pair) for pair in pairs() if pair[0] in locks and pair[1] in settles]
            console.print(told.evenings([play(database, setting).verdict for setting in wanted]))
        return played, int(not all(cell["agrees"] for cell in played))

    def explore(self, database: Database, console: Console, options: dict[str, Any]) -> tuple[Any, int]:
        setting = _setting(options, ttl=options["lease"], every=options["lease"])
        corner = Corner(setting, options["boxes"], options["orders"], options["messages"], options["latency"])
        bounds = Bounds(
            options["faults"],
            options["policy"],
            options["preemptions"],
            options["schedules"],
            options["seconds"],
            options["seed"],
        )
        with told.progress(console) as progress:
            exploration = Exploration(database, corner, bounds, progress)
            with _ctrl_c_stops(exploration):
                found = exploration.go()
        self.kept = keep.of_exploration(found)
        console.print(told.report(found), soft_wrap=True, markup=False, highlight=False)
        return found.as_json(), int(bool(found.failures))


@contextmanager
def _ctrl_c_stops(exploration: Exploration) -> Iterator[None]:
    """Once: between two runs, with what was found so far. Twice: at once."""

    def asked(*signal_and_frame: object) -> None:
        if exploration.stopping:
            raise KeyboardInterrupt
        exploration.stop()

    before = signal.signal(signal.SIGINT, asked)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _played(database: Database, cell: Cell) -> dict[str, Any]:
    """As `manage.py prove --json` has it."""
    began = monotonic()
    seen = matrix.play(database, cell)
    return as_json(cell, {"seen": seen, "skipped": "", "seconds": round(monotonic() - began, 2)})


def _setting(options: dict[str, Any], **more: Any) -> Setting:
    return Setting(
        lock=options["lock"],
        settle=options["settle"],
        question=options["question"],
        stop_on_lost_lease=options["stop_on_lost_lease"],
        renew=options["renew"],
        **more,
    )
