"""The benchmark of the grader counts what it says and prints what it promises. Nothing here tests a speed."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from bench.grading import row, what_became
from grading.models import Attempt, Judging
from tests.grading.school import NOON, WELL, School

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.slow
def test_prints_a_row_for_each_kind_of_waiting() -> None:
    """On real workers, two attempts at a time; the last line of `--json` has the rows."""
    command = [sys.executable, "-m", "bench.grading", "--attempts", "2", "--only", "advisory", "--json"]
    played = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=280)
    assert played.returncode == 0, played.stderr
    rows = json.loads(played.stdout.splitlines()[-1])
    names = [one["name"].partition(" (")[0] for one in rows]
    assert names == [
        "sandbox",
        "predictions: a check, idle",
        "predictions: an attempt, idle",
        "predictions: 2 at once",
        "predictions: 2 at once, and killed",
    ]
    for one in rows:
        assert {"name", "p50", "p95", "per_minute", "lost", "stuck"} <= set(one)
        assert 0 < one["p50"] <= one["p95"]
        assert (one["lost"], one["stuck"], one.get("not_passed", 0)) == (0, 0, 0)


def test_half_and_nineteen_in_twenty() -> None:
    one = row("waiting", [float(n) for n in range(1, 101)])
    assert (one["p50"], one["p95"]) == (50.5, 96.0)
    assert row("nothing was judged", [])["p50"] is None


@pytest.mark.django_db
def test_what_is_lost_stuck_and_parked_is_told_apart() -> None:
    """An attempt whose judging is gone, one with a result too few, one that waits, one that an instructor has."""
    school = School()
    moments = [NOON.replace(minute=n) for n in range(5)]
    good, few, waits, gone, parked = (
        school.judged(now=moment) if n < 2 else school.hand_in(moment) for n, moment in enumerate(moments)
    )
    assert waits.judgings.get().state == "waiting"
    Judging.objects.filter(attempt=parked).update(state="parked")
    few.judgings.get().results.last().delete()
    gone.judgings.all().delete()
    told = what_became("five", [one.pk for one in (good, few, waits, gone, parked)], len(WELL))
    assert (told["lost"], told["stuck"], told["parked"]) == (2, 1, 1)
    assert told["not_passed"] == 2, "one of the three checks fails"


@pytest.mark.django_db
def test_where_nothing_was_judged_all_are_stuck() -> None:
    School().hand_in()
    told = what_became("one", [one.pk for one in Attempt.objects.all()], len(WELL))
    assert (told["p50"], told["stuck"], told["lost"]) == (None, 1, 0)
