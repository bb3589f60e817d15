"""`manage.py judge`: an answer from a file, or the answers whose verdicts are known, on this machine alone.

Exit status: 0, every check that was tried passed; 1, one did not (with `--known`: a verdict is not the expected one);
2, something could not be judged at all: no such file, no exercise that can be read, no answer to it, no laboratory.
"""

import json
import shlex
import sys
from argparse import ArgumentParser
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from rich.console import Console
from rich.table import Table
from rich.text import Text

from exercises.handed.answers import NotAnswers, read
from exercises.handed.checks import ANSWERS, Check, Outcome, Result, Shown
from exercises.handed.exercise import Exercise, Known, NoExercise, catalogue, exercise, unreadable
from exercises.handed.paper import NotAPaper, answers_in
from exercises.lab.database import Database
from exercises.scenarios.room import laboratory
from exercises.stage import NotAStage
from grading.blank import paper
from grading.judge import judge
from grading.room import JudgesRoom
from marlow.servers.launcher import ServerError

WIDE = 120  # columns, where nobody says how many there are
TONES = {Outcome.PASSED: "green", Outcome.FAILED: "red", Outcome.UNDECIDED: "yellow", Outcome.INSTRUCTOR: "yellow"}
NOTHING = "no such check"
NOT_JUDGED = 2  # exit status


@dataclass(frozen=True)
class Compared:
    """One check of a known answer: what is expected of it, and what was given."""

    exercise: str
    known: str
    check: str
    expected: str
    given: str

    @property
    def agrees(self) -> bool:
        return self.expected == self.given


class NoCheck(LookupError):
    """The exercise has none of this name. Says which it has."""


class Command(BaseCommand):
    help = (
        "Judge an answer here: the checks a student may see. "
        "Exit status 1 where one does not pass, 2 where there was nothing to judge."
    )
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", nargs="?", type=Path, help="TOML or JSON: its exercise, and its answers")
        parser.add_argument("--check", metavar="NAME", help="of a file: this one alone, with its evidence in full")
        parser.add_argument("--known", nargs="*", metavar="EXERCISE", help="the known answers, of these or of all")
        parser.add_argument(
            "--blank", metavar="EXERCISE", help="a file for your answer, each field described and empty"
        )
        parser.add_argument("--list", action="store_true", help="the exercises that there are")
        parser.add_argument("--json", action="store_true", help="the result on the last line of stdout")

    def handle(self, *args: Any, **options: Any) -> None:
        if [options[name] not in (None, False) for name in ("file", "known", "blank", "list")].count(True) != 1:
            said = "Name a file with an answer, or say --blank, --known or --list: one of the four."
            raise CommandError(said, returncode=NOT_JUDGED)
        if options["check"] and options["file"] is None:
            raise CommandError("--check is of a file: name one with an answer.", returncode=NOT_JUDGED)
        console = Console(stderr=options["json"])
        if not console.is_terminal:
            console = Console(stderr=options["json"], width=WIDE)
        try:
            if options["file"] is not None:
                result, status = _judged(options["file"], options["check"], console)
            elif options["blank"]:
                result, status = paper(exercise(options["blank"])), 0
                if not options["json"]:
                    self.stdout.write(result, ending="")
            elif options["list"]:
                result, status = _listed(console)
            else:
                result, status = _all_known(options["known"], console)
        except NotAnswers as wrong:
            lines = (f"  {field}: {sentence}" for field, sentence in wrong.problems.items())
            said = "\n".join(["This is no answer to that exercise.", *lines])
            raise CommandError(said, returncode=NOT_JUDGED) from wrong
        except (NoExercise, NoCheck, NotAPaper, ServerError, NotAStage) as error:
            raise CommandError(str(error), returncode=NOT_JUDGED) from error
        if options["json"]:
            self.stdout.write(json.dumps(result))
        sys.exit(status)


def _listed(console: Console) -> tuple[Any, int]:
    """In the order of the course; then those that can't be read, and why."""
    rows = [{"exercise": one.slug, "title": one.title, "points": one.points} for one in catalogue().values()]
    table = Table("exercise", "title", "points")
    for row in rows:
        table.add_row(*(str(value) for value in row.values()))
    console.print(table)
    return rows, _left_out(console)


def _left_out(console: Console) -> int:
    """Exercises that can't be read, and the exit status for it."""
    said = unreadable()
    for why in said.values():
        console.print(why, style="bold red", markup=False, highlight=False)
    return NOT_JUDGED if said else 0


def _judged(file: Path, name: str | None, console: Console) -> tuple[Any, int]:
    """What a student sees of it; by its name one check alone, also a hidden one, and all of its evidence."""
    found, answers = answers_in(file)
    public = [check for check in found.checks if check.shown is not Shown.HIDDEN]
    chosen = [_named(found, name, public)] if name else public
    results = []
    with _room(console) as room:
        for check, result in judge(found, answers, room, chosen):
            _show(check, result, file, console, whole=bool(name))
            results.append({"check": check.name, **_as_json(result)})
    if not name and (hidden := len(found.checks) - len(public)):
        console.print(f"Checks that are hidden until the release, and are not tried here: {hidden}.")
    return results, int(any(result["outcome"] != Outcome.PASSED for result in results))


def _named(found: Exercise, name: str, public: Sequence[Check]) -> Check:
    """Raises NoCheck, which names none that is hidden."""
    for check in found.checks:
        if check.name == name:
            return check
    there = ", ".join(check.name for check in public)
    raise NoCheck(f"{found.slug} has no check {name!r}: take one of {there}.")


def _show(check: Check, result: Result, file: Path, console: Console, whole: bool) -> None:
    """And how to play the run again, with this very file. `whole`: its evidence to the letter."""
    evidence = result.evidence
    console.print(Text.assemble((f"{result.outcome.value}", TONES[result.outcome]), f"  {check.title}"))
    if not (whole and result.sentence in evidence.text):
        console.print(f"  {result.sentence}", markup=False, highlight=False)
    if whole:
        console.print(evidence.text, markup=False, highlight=False, soft_wrap=True)
    if evidence.again and not (whole and evidence.again == check.again):
        again = evidence.again.replace(f"judge {ANSWERS} ", f"judge {shlex.quote(str(file))} ", 1)
        console.print(f"  again: manage.py {again}", markup=False, highlight=False, soft_wrap=True)


def _as_json(result: Result) -> dict[str, Any]:
    evidence = result.evidence
    return {
        "outcome": result.outcome.value,
        "points": result.points,
        "sentence": result.sentence,
        "evidence": {"text": evidence.text, "again": evidence.again, "schedule": evidence.schedule},
    }


def _all_known(slugs: list[str], console: Console) -> tuple[Any, int]:
    """Expected beside given, of every known answer."""
    chosen = [exercise(slug) for slug in slugs] if slugs else list(catalogue().values())
    table = Table("exercise", "answer", "check", "expected", "given")
    compared = []
    with _room(console) as room:
        for found in chosen:
            for known in found.known():
                rows = list(compare(found, known, room))
                compared += rows
                for row in rows:
                    given = Text(row.given, style="green" if row.agrees else "bold red")
                    table.add_row(row.exercise, row.known, row.check, row.expected, given)
    differing = sum(not row.agrees for row in compared)
    console.print(table)
    console.print(f"{len(compared)} verdicts, of which {differing} differ from what is expected.")
    left_out = 0 if slugs else _left_out(console)
    status = left_out if compared else NOT_JUDGED
    return [{**vars(row), "agrees": row.agrees} for row in compared], status or int(bool(differing))


def compare(found: Exercise, known: Known, room: JudgesRoom) -> Iterator[Compared]:
    """A row for each check, and for each expectation that no check answers to."""
    said = judge(found, read(found.answers, known.answers), room)
    given = {check.name: (result.outcome.value, result.points) for check, result in said}
    for name in dict.fromkeys([*known.expected, *given]):
        both = (known.expected.get(name), given.get(name))
        yield Compared(found.slug, known.name, name, *(f"{one[0]}, {one[1]}" if one else NOTHING for one in both))


@contextmanager
def _room(console: Console) -> Iterator[JudgesRoom]:
    """The laboratory, open for all that is to be judged, and what is being done on the screen."""
    with laboratory() as database, console.status("") as status:

        @contextmanager
        def lent() -> Iterator[Database]:
            yield database

        yield JudgesRoom(lent, lambda words: status.update(words))
