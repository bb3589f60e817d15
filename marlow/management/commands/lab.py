"""`manage.py lab`: the Wednesday in virtual time, the lock table, and every order in which two boxes can meet."""

import json
import signal
import sys
from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from uuid import UUID

from django.core.management.base import BaseCommand, CommandError
from django.db import OperationalError
from rich.console import Console

from exercises.lab.database import Database
from exercises.lab.scheduler import LabError
from exercises.proof import screen
from exercises.proof.cells import FAULTS, Cell
from exercises.scenarios import keep, matrix, stop, told
from exercises.scenarios.boxes import ALL_FORMS, ALL_LOCKS, Setting
from exercises.scenarios.corner import Corner
from exercises.scenarios.exploration import POLICIES, Bounds, Exploration, Found
from exercises.scenarios.faults import Kind
from exercises.scenarios.hour import without_vain_questions
from exercises.scenarios.mishap import Mishap
from exercises.scenarios.replay import pairs, play
from exercises.scenarios.room import laboratory
from exercises.scenarios.spread import Spread
from exercises.scenarios.wednesday import AFTERMATH, START_OF_EVENING, STARTS
from exercises.stage import NotAStage
from marlow.clock import monotonic
from marlow.laboratory import send
from marlow.management.commands.prove import as_json
from marlow.servers.launcher import ServerError
from marlow.settings import environment_for
from marlow.spreading import merge, with_workers
from shop.settle import FORMS
from sweeper.locks import LOCKS

WIDE = 120  # columns, where nobody says how many there are


class Command(BaseCommand):
    help = "The laboratory: the shop's own code on a real Postgres, in virtual time, in every order."
    requires_system_checks = []
    words: Sequence[str] = ()
    kept: dict[str, Any] | None = None

    def run_from_argv(self, argv: list[str]) -> None:
        self.words = argv[1:]
        super().run_from_argv(argv)

    def add_arguments(self, parser: ArgumentParser) -> None:
        doors = parser.add_subparsers(dest="door", required=True, metavar="wednesday | matrix | explore")
        wednesday = doors.add_parser("wednesday", help="the evening, to the second")
        matrix = doors.add_parser("matrix", help="the lock table in virtual time; exit status 1 where it differs")
        explore = doors.add_parser(
            "explore",
            help="every order in which boxes can meet; exit status 1 where one is wrong",
            allow_abbrev=False,  # whoever merges is given these words without --workers, and would start workers too
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
        wednesday.add_argument(
            "--fault",
            type=_mishap,
            metavar="WHAT",
            help="one failure at a time of day: power:box-b:7875@21:51:00 (seconds until Postgres misses the box), "
            "freeze:box-b:600@…, kill:box-b@…, session:box-b@…, failover@…, dark:300@…; messages come until 22:10",
        )
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
        explore.add_argument("--kinds", type=_kinds, default=tuple(Kind), help="of faults, as crash,power; else all")
        explore.add_argument("--twice", action="store_true", help="play each schedule again, and compare")
        explore.add_argument("--latency", type=float, default=0.0, help="of an answer (virtual seconds, at most 10)")
        explore.add_argument("--lease", type=float, default=120.0, help="and schedule, in virtual seconds")
        explore.add_argument("--policy", choices=POLICIES, default="all")
        explore.add_argument("--preemptions", type=int, help="at most so many, for --policy plain")
        explore.add_argument("--schedules", type=int, help="stop after so many")
        explore.add_argument("--seconds", type=float, help="stop after so long (real)")
        explore.add_argument("--seed", type=int, default=1, help="of the policies random and pct")
        explore.add_argument("--spread", action="store_true", help="over the workers of marlow.laboratory (Celery)")
        explore.add_argument("--workers", type=int, help="spread over so many, started here on servers of their own")
        explore.add_argument("--resume", type=UUID, help="an exploration that was spread, and broke off")

    def handle(self, *args: Any, **options: Any) -> None:
        console = Console(stderr=options["json"])
        if not console.is_terminal:
            console = Console(stderr=options["json"], width=WIDE)
        try:
            if options.get("workers") is not None:
                if options["keep"]:
                    raise CommandError("--workers has servers of its own, gone afterwards: leave out that or --keep.")
                sys.exit(with_workers(options["workers"], _without_workers(self.words)))
            if options.get("spread") or options.get("resume"):
                with _parts_within_reach():
                    result, status = self.spread(console, options)
            else:
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
        outcome = play(database, setting, start=start, mishap=options["fault"])
        self.kept = keep.of_wednesday(setting, start, outcome)
        events, steps = keep.placed(outcome), keep.steps_of(outcome.taken)
        if start == START_OF_EVENING:
            events, steps = without_vain_questions(events), []
            console.print("Until 21:50 no question is answered; those are left out here, and are in --json.")
        console.print(told.timeline(events, steps))
        console.print(told.verdict(outcome.verdict))
        if outcome.mishap is not None:
            longest = stop.longest(outcome.events, outcome.mishap.moment(start), AFTERMATH)
            console.print(told.stopped(outcome.mishap, longest), highlight=False)
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
        corner, bounds = _what(options)
        with told.progress(console) as progress:
            exploration = Exploration(database, corner, bounds, progress)
            with _ctrl_c_stops(exploration):
                found = exploration.go()
        self.kept = keep.of_exploration(found)
        return _reported(found, console)

    def spread(self, console: Console, options: dict[str, Any]) -> tuple[Any, int]:
        """The same over many workers; an exploration that breaks off says how to go on with it."""
        with told.progress(console) as progress:
            if options["resume"]:
                spread = Spread.resume(options["resume"], send, progress)
            else:
                spread = Spread.begin(*_what(options), send, progress)
            again = f"Where it breaks off, go on with the same words and --resume {spread.exploration.pk}"
            console.print(again, highlight=False, soft_wrap=True)
            with _ctrl_c_stops(spread):
                found = merge(spread)
        self.kept = keep.of_exploration(found)
        return _reported(found, console)


def _mishap(text: str) -> Mishap:
    """Raises ArgumentTypeError."""
    try:
        return Mishap.read(text)
    except ValueError as error:
        raise ArgumentTypeError(str(error)) from error


def _kinds(text: str) -> tuple[Kind, ...]:
    """Raises ArgumentTypeError."""
    try:
        return tuple(Kind(name.strip()) for name in text.split(","))
    except ValueError as error:
        raise ArgumentTypeError(f"{error}: take from {', '.join(Kind)}, with commas between them.") from error


def _what(options: dict[str, Any]) -> tuple[Corner, Bounds]:
    """Raises Unplayable."""
    setting = _setting(options, ttl=options["lease"], every=options["lease"])
    corner = Corner(setting, options["boxes"], options["orders"], options["messages"], options["latency"])
    bounds = Bounds(
        options["faults"],
        options["policy"],
        options["preemptions"],
        options["schedules"],
        options["seconds"],
        options["seed"],
        options["twice"],
        options["kinds"],
    )
    return corner, bounds


def _reported(found: Found, console: Console) -> tuple[Any, int]:
    console.print(told.report(found), soft_wrap=True, markup=False, highlight=False)
    return found.as_json(), int(bool(found.failures))


def _without_workers(words: Sequence[str]) -> list[str]:
    """The command line for whoever merges, once the workers are there."""
    kept, skip = [], False
    for word in words:
        if not skip and not word.startswith("--workers"):
            kept.append(word)
        skip = word == "--workers"
    return [*kept, "--spread"]


@contextmanager
def _parts_within_reach() -> Iterator[None]:
    """Raises ServerError where the shop's database, in which the parts are, is not."""
    try:
        yield
    except OperationalError as away:
        why = str(away).strip().splitlines()[0]
        raise ServerError(
            f"The shop's database, which keeps an exploration's parts, can't be reached ({why}): set DATABASE_URL, "
            "or name --workers, as it was begun with."
        ) from away


@contextmanager
def _ctrl_c_stops(exploration: Exploration | Spread) -> Iterator[None]:
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
