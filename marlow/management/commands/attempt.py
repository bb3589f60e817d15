"""`manage.py attempt`: hand in a file for somebody, by the rules of the form, and follow it until it is judged.

Exit status: 0, it was taken (with `--wait`: and every check that is shown passed); 1, one that is shown did not pass;
2, nothing was handed in; 3, it was taken and no verdict was to be had.
"""

import json
import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.contrib.auth import get_user_model
from django.core.management.base import BaseCommand, CommandError
from django.db import OperationalError
from rich.console import Console
from rich.text import Text

from exercises.handed.answers import NotAnswers
from exercises.handed.checks import Outcome
from exercises.handed.exercise import NoExercise, exercise
from exercises.handed.paper import NotAPaper, on_paper
from grading import judges
from grading.handin import Refused, hand_in
from grading.models import Assignment, Attempt, State
from grading.sight import Seen, assignments, seen
from marlow.clock import monotonic, real_now, real_sleep
from marlow.management.commands.judge import TONES, WIDE

THROUGH = "command line"
NOTHING, NO_VERDICT = 2, 3  # exit statuses
LOOK_EVERY = 0.5  # real seconds between two looks at the queue


class Unknown(LookupError):
    """Nobody and nothing of that name. Says what to write."""


class Command(BaseCommand):
    help = "Hand in an answer from a file. Exit status 2: not taken; with --wait 1: one does not pass, 3: no verdict."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("exercise", help="as its folder is named, with hyphens")
        parser.add_argument("file", type=Path, help="TOML or JSON: its exercise, and its answers")
        parser.add_argument("--as", dest="student", required=True, metavar="USERNAME", help="whose attempt it is")
        parser.add_argument("--class", dest="of", metavar="NAME", help="where they are in several that have it")
        parser.add_argument("--wait", action="store_true", help="until it is judged; then its results")
        parser.add_argument("--patience", type=float, default=600.0, metavar="SECONDS", help="of --wait (600)")
        parser.add_argument("--json", action="store_true", help="receipt and results on the last line of stdout")

    def handle(self, *args: Any, **options: Any) -> None:
        console = Console(stderr=options["json"])
        if not console.is_terminal:
            console = Console(stderr=options["json"], width=WIDE)
        student, attempt = _handed_in(options)
        receipt = _receipt(attempt)
        for name, value in receipt.items():
            console.print(f"{name:<12}{value}", markup=False, highlight=False)
        found, status = None, 0
        if options["wait"]:
            found = _followed(student, attempt, options["patience"], console)
            attempt.refresh_from_db()
            status = _verdict(attempt, found, console)
        if options["json"]:
            self.stdout.write(json.dumps({**receipt, **_as_json(found)}))
        sys.exit(status)


def _handed_in(options: dict[str, Any]) -> tuple[Any, Attempt]:
    """Raises CommandError, with the status that says that nothing was handed in."""
    try:
        wanted = exercise(options["exercise"])
        found, given = on_paper(options["file"])
        if found.slug != wanted.slug:
            raise NotAPaper(f"{options['file']} answers {found.slug}, not {wanted.slug}: name the other one.")
        student = _person(options["student"])
        assignment = _assignment(student, found.slug, options["of"])
        return student, hand_in(student, assignment, given, now=real_now(), through=THROUGH)
    except NotAnswers as wrong:
        lines = (f"  {field}: {sentence}" for field, sentence in wrong.problems.items())
        said = "\n".join(["This is no answer to that exercise, and was not handed in.", *lines])
        raise CommandError(said, returncode=NOTHING) from wrong
    except (NoExercise, NotAPaper, Refused, Unknown) as error:
        raise CommandError(str(error), returncode=NOTHING) from error
    except OperationalError as away:
        why = str(away).strip().splitlines()[0]
        raise CommandError(
            f"Nothing was handed in: the shop's database can't be reached ({why}). `make demo` brings one; "
            "DATABASE_URL names another.",
            returncode=NOTHING,
        ) from away


def _person(username: str) -> Any:
    found = get_user_model().objects.filter(username=username).first()
    if found is None:
        raise Unknown(f"There is nobody with the username {username!r}: write it as in the admin.")
    return found


def _assignment(student: Any, slug: str, of: str | None) -> Assignment:
    """The one that is meant, of the classes that they are in."""
    rows = assignments(student).filter(exercise=slug, of__enrolments__student=student.pk)
    there = {row.of.name: row for row in rows}
    if of is not None and of not in there:
        raise Unknown(f"{slug} is not given to {student} in a class {of!r}: {_listed(there)}.")
    if of is None and len(there) != 1:
        raise Unknown(f"Which class? {slug} is given to {student} in {len(there)}: {_listed(there)}.")
    return there[of] if of is not None else next(iter(there.values()))


def _listed(there: dict[str, Assignment]) -> str:
    return f"say --class with one of {', '.join(sorted(there))}" if there else "ask an instructor to enrol them"


def _receipt(attempt: Attempt) -> dict[str, Any]:
    return {
        "receipt": str(attempt.receipt),
        "exercise": attempt.submission.assignment.exercise,
        "class": attempt.submission.assignment.of.name,
        "attempt": attempt.number,
        "sha256": attempt.sha256,
        "received": attempt.received_at.isoformat(timespec="seconds"),
        "days late": attempt.late,
    }


def _followed(student: Any, attempt: Attempt, patience: float, console: Console) -> Seen:
    """As its student sees it, once it is judged or parked, or patience is over; each change is told meanwhile."""
    until, said = monotonic() + patience, ""
    while True:
        found = seen(student, Attempt.objects.get(pk=attempt.pk), real_now())
        if (words := _doing(found)) != said:
            console.print(words, style="dim", markup=False, highlight=False)
            said = words
        if found.state in (State.DONE, State.PARKED) or monotonic() > until:
            return found
        real_sleep(LOOK_EVERY)


def _doing(found: Seen) -> str:
    if found.state == State.WAITING:
        nobody = f"; {judges.last_word(real_now())}" if judges.missed(real_now()) else ""
        return f"waiting, {found.position} in the queue{nobody}"
    return f"{found.state}: {found.doing}" if found.doing else f"{found.state}"


def _verdict(attempt: Attempt, found: Seen, console: Console) -> int:
    """What is seen of each check; the exit status."""
    for check in found.checks:
        if check.outcome is None:
            console.print(f"{check.title}: {check.withheld}", markup=False, highlight=False)
            continue
        console.print(Text.assemble((check.outcome, TONES[Outcome(check.outcome)]), f"  {check.title}"))
        console.print(f"  {check.sentence or check.withheld}", markup=False, highlight=False)
        if again := (check.evidence or {}).get("again"):
            console.print(f"  again: manage.py {again}", markup=False, highlight=False, soft_wrap=True)
    if found.points is not None:
        console.print(f"points: {found.points} of {found.of}", markup=False, highlight=False)
    if found.state == State.PARKED:
        costs = "" if attempt.costs else " It costs you no attempt."
        console.print(f"The judge could not decide this: an instructor has it.{costs}")
    elif found.state != State.DONE:
        zone = attempt.submission.assignment.of.zone
        console.print("It is in the queue and will be judged: look it up by its receipt.")
        console.print(judges.last_word(real_now(), zone), markup=False, highlight=False)
    if found.state != State.DONE:
        return NO_VERDICT
    return int(any(check.outcome not in (None, Outcome.PASSED) for check in found.checks))


def _as_json(found: Seen | None) -> dict[str, Any]:
    if found is None:
        return {}
    names = ("name", "title", "of", "outcome", "sentence", "points", "withheld")
    checks = [{name: getattr(check, name) for name in names} for check in found.checks]
    return {"state": found.state, "points": found.points, "of": found.of, "checks": checks}
