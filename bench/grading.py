"""How many attempts a minute two judges get through, how long each waits, and what becomes of them when judges die.

    python -m bench.grading [--attempts 200] [--only slot] [--json]

By kind of answer, every student handing in one of the exercise's right ones. `an attempt, idle`: one at a time,
from the hand-in to the verdict; its floor is the same checks in one process, with neither a queue nor a desk. `a
check, idle`: the slowest of the exercise's checks, at a desk that is warm. `at once`: all are handed in, and two
workers, warm, judge them; `and killed`: with kill -9 of one of them and of all it has started every ten seconds,
and another in its place. `lost`: attempts of which nothing is known any more, or too much; `stuck`: neither judged
nor parked though nothing was judged for minutes; `not_passed`: right answers of which a check says otherwise.
`sandbox`: one started, and its floor a bare Python.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import cycle, islice
from pathlib import Path
from typing import Any

from bench.school import Course, Judges
from marlow.clock import monotonic, real_now, real_sleep, wait_until
from marlow.servers.postgres import EmbeddedPostgres
from marlow.servers.redis import EmbeddedRedis

KINDS = {"advisory": "predictions", "slot": "SQL", "own-lock": "Python"}
KILL_EVERY = 10.0  # real seconds
PATIENCE = 240.0  # real seconds without anything being judged, after which what is left is stuck
SEVERAL = 20  # of what is measured one by one
NOTHING = "class Answer:\n    def __init__(self, port):\n        pass\n"
BARE = ("/usr/bin/python3", "-I", "-S", "-c", "pass")

Row = dict[str, Any]


@contextmanager
def world() -> Iterator[Path]:
    """Servers of its own: the shop's database, the laboratory's, a broker. Django's settings are read here."""
    with ExitStack() as running:
        folder = Path(running.enter_context(tempfile.TemporaryDirectory(prefix="marlow-bench-")))
        servers = [EmbeddedPostgres(folder / name) for name in ("shop", "lab")]
        broker = EmbeddedRedis(folder / "broker")
        for server in (*servers, broker):
            server.start()
            running.callback(server.stop)
        shop, lab = servers
        os.environ.pop("MARLOW_CLOCK_FILE", None)
        os.environ |= {
            "DJANGO_SETTINGS_MODULE": "marlow.settings",
            "MARLOW_DEMO": "1",
            "MARLOW_TIME_SCALE": "1",
            "MARLOW_STATE_DIR": str(folder),
            "DATABASE_URL": shop.url(),
            "LAB_DATABASE_URL": lab.url(),
            "CELERY_BROKER_URL": broker.url,
        }
        import django
        from django.core.management import call_command

        django.setup()
        call_command("migrate", verbosity=0)
        yield folder


def timed(call: Callable[[], object]) -> float:
    began = monotonic()
    call()
    return monotonic() - began


def row(name: str, seconds: Sequence[float], per_minute: float = 0.0, **more: Any) -> Row:
    """p50 and p95 in seconds."""
    ordered = sorted(seconds)
    p95 = ordered[min(len(ordered) - 1, int(len(ordered) * 0.95))] if ordered else None
    p50 = statistics.median(ordered) if ordered else None
    rate = per_minute or (60 / statistics.mean(ordered) if ordered else 0.0)
    return {"name": name, "p50": p50, "p95": p95, "per_minute": rate, "lost": 0, "stuck": 0, **more}


# --- One by one -----------------------------------------------------------------------------------------------------


def sandboxes() -> Iterator[Row]:
    from grading.sandbox.python import sandboxed

    def start() -> None:
        with sandboxed(NOTHING, "Answer") as program, program.start():
            pass

    bare = [timed(lambda: subprocess.run(BARE, check=True)) for _ in range(SEVERAL)]
    start()
    yield row("sandbox", [timed(start) for _ in range(SEVERAL)], floor=statistics.median(bare))


def straight(found: Any, answers: Any) -> float:
    """Seconds of one judging in this process, the laboratory open."""
    from exercises.scenarios.room import KeptLaboratory
    from grading.judge import judge
    from grading.room import JudgesRoom

    room = JudgesRoom(KeptLaboratory())
    list(judge(found, answers, room, found.checks[:1]))
    return statistics.median([timed(lambda: list(judge(found, answers, room))) for _ in range(3)])


def slowest_check(found: Any, answers: Any, folder: Path) -> Row:
    """At a desk, by the pipe, as a clerk asks."""
    from django.conf import settings

    from grading.clerk import environment
    from grading.talk import DESK, Desk

    (folder / "desk").mkdir(exist_ok=True)
    given = environment(folder / "desk", settings.LAB_DATABASE_URL)
    desk = Desk(DESK, folder / "desk" / "bench.group", settings.BASE_DIR, given)
    taken: dict[str, list[float]] = {}
    try:
        desk.ask({"open": True}, 60, 60, lambda words: None)
        for check in found.checks:
            question = {"exercise": found.slug, "answers": answers, "check": check.name, "seed": 1}
            desk.ask(question, 600, 60, lambda words: None)
            taken[check.name] = [
                timed(lambda question=question: desk.ask(question, 600, 60, lambda words: None))  # type: ignore[misc]
                for _ in range(SEVERAL)
            ]
    finally:
        desk.end()
    slow = max(taken, key=lambda name: statistics.median(taken[name]))
    return row(f"{KINDS[found.slug]}: a check, idle ({slow})", taken[slow])


# --- With judges ----------------------------------------------------------------------------------------------------


def ended(attempts: Sequence[int]) -> int:
    from grading.models import Judging

    return Judging.objects.filter(attempt__in=attempts, state__in=("done", "parked")).count()


def wait_for(attempts: Sequence[int], judges: Judges, kill: bool) -> None:
    """Until all have ended, or nothing has for long."""
    last, many, killed = monotonic(), 0, monotonic()
    while (now := ended(attempts)) < len(attempts) and monotonic() - last < PATIENCE:
        if now > many:
            last, many = monotonic(), now
        if kill and monotonic() - killed >= KILL_EVERY:
            judges.kill()
            killed = monotonic()
        real_sleep(0.1)


def what_became(name: str, attempts: Sequence[int], checks: int) -> Row:
    from django.db.models import Count, Q

    from grading.models import Judging

    rows = list(
        Judging.objects.filter(attempt__in=attempts).annotate(
            said=Count("results"), well=Count("results", filter=Q(results__outcome="passed"))
        )
    )
    over = [one for one in rows if one.state == "done"]
    seconds = [(one.ended_at - one.asked_at).total_seconds() for one in over]
    spent = max((one.ended_at for one in over), default=real_now()) - min(one.asked_at for one in rows)
    lost = len(attempts) - len({one.attempt_id for one in rows}) + sum(one.said != checks for one in over)
    return row(
        name,
        seconds,
        per_minute=60 * len(over) / max(spent.total_seconds(), 1e-9),
        lost=lost,
        stuck=sum(one.state in ("waiting", "running") for one in rows),
        parked=sum(one.state == "parked" for one in rows),
        not_passed=sum(one.well < one.said for one in over),
    )


def judged(found: Any, answers: Any, course: Course, judges: Judges, floor: float) -> Iterator[Row]:
    kind, checks = KINDS[found.slug], len(found.checks)
    warm = course.hand_in(found, answers, course.students[:4])
    wait_for(warm, judges, kill=False)
    students = islice(cycle(course.students), SEVERAL)
    alone = [one for student in students for one in by_itself(course.hand_in(found, answers, [student]))]
    yield row(f"{kind}: an attempt, idle", alone, floor=floor)
    many = len(course.students)
    for name, kill in ((f"{kind}: {many} at once", False), (f"{kind}: {many} at once, and killed", True)):
        attempts = course.hand_in(found, answers, course.students)
        wait_for(attempts, judges, kill)
        yield what_became(name, attempts, checks)


def by_itself(attempts: Sequence[int]) -> list[float]:
    """Seconds from the hand-in to the verdict, once that is there."""
    from grading.models import Judging

    wait_until(lambda: ended(attempts) == len(attempts), PATIENCE, every=0.01)
    over = Judging.objects.filter(attempt__in=attempts, state="done")
    return [(one.ended_at - one.asked_at).total_seconds() for one in over]


def rows(folder: Path, attempts: int, only: str | None) -> Iterator[Row]:
    from exercises.handed.answers import read
    from exercises.handed.exercise import exercise

    yield from sandboxes()
    course, chosen = Course(attempts), [only] if only else list(KINDS)
    judges = Judges(folder)
    try:
        for found in map(exercise, chosen):
            given = next(known.answers for known in found.known() if known.kind == "right")
            floor = straight(found, read(found.answers, given))
            yield slowest_check(found, given, folder)
            yield from judged(found, given, course, judges, floor)
    finally:
        judges.end()


def told(one: Row) -> str:
    if one["p50"] is None:
        return f"{one['name']}: nothing was judged; {one['stuck']} stuck, {one.get('parked', 0)} parked"
    text = f"{one['name']}: p50 {one['p50']:.2f} s, p95 {one['p95']:.2f} s, {one['per_minute']:.1f} a minute"
    if "floor" in one:
        text += f"; its floor {one['floor']:.2f} s"
    if "parked" in one:
        text += f"; lost {one['lost']}, stuck {one['stuck']}, parked {one['parked']}"
        text += f", not passed {one['not_passed']}"
    return text


def main() -> None:
    parser = argparse.ArgumentParser(description="python -m bench.grading: attempts a minute, with judges that die.")
    parser.add_argument("--attempts", type=int, default=200, help="handed in at once, 200 by default")
    parser.add_argument("--only", choices=list(KINDS), help="this exercise alone")
    parser.add_argument("--json", action="store_true", help="rows for a machine, in the last line")
    options = parser.parse_args()
    table = []
    with world() as folder:
        for one in rows(folder, options.attempts, options.only):
            table.append(one)
            print(told(one), file=sys.stderr if options.json else sys.stdout, flush=True)
    if options.json:
        print(json.dumps(table))


if __name__ == "__main__":
    main()
