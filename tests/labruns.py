"""Runs of the laboratory as `manage.py lab … --keep` wrote them, and rows made from them."""

import copy
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from exercises.models import LabRun

RECORDED = json.loads((Path(__file__).parent / "admin" / "labruns.json").read_text())
PLAYED = datetime(2026, 12, 2, 9, 0, tzinfo=UTC)


def recorded(name: str) -> dict[str, Any]:
    """`wednesday` (redis-naive), `pause` (a corner of redis-token), `explored` (exhausted, with a failure), `clean`
    (exhausted, without one) or `bounded`; a copy to change.
    """
    return copy.deepcopy(RECORDED[name])


def keep(run: dict[str, Any], **values: Any) -> LabRun:
    """A row from a run, with some of its values changed."""
    return LabRun.objects.create(**{"real_at": PLAYED, **run, **values})


def one(name: str = "wednesday") -> LabRun:
    return keep(recorded(name))


def odd() -> list[LabRun]:
    """What another version may have written, or somebody by hand: nothing here is as it should be."""
    run = recorded("pause")
    steps, events = run["steps"], run["verdict"]["events"]
    verdicts = [None, 7, "nothing", [], {}, {"events": 3}, {"events": [None, 1, {}]}, {"phantom": {}, "events": []}]
    rows = [keep(run, verdict=verdict) for verdict in verdicts]
    for wrong_step in (None, -1, True, "3", 10**9, 2.5):
        changed = [{**events[0], "step": wrong_step}, *events[1:]]
        rows.append(keep(run, verdict={**run["verdict"], "events": changed}))
    for odd_steps in (None, 7, {}, [None, 3, {}, *steps], [{"at": "yesterday", "who": 1, "step": None}], steps[3:]):
        rows.append(keep(run, steps=[] if odd_steps is None else odd_steps))
    reports = [7, [], {}, {"bounds": 3, "failures": 4}, {"bounds": {"menu": 1, "stopped": []}, "failures": [1, {}]}]
    reports.append({"exhausted": "yes", "schedules": "many", "seconds": None, "failures": [{"what": 1}]})
    rows += [keep(run, report=report) for report in reports]
    rows += [keep(run, wrong=wrong) for wrong in (3, {}, [3, None, {}], "all")]
    return rows
