"""Keeping a run of the laboratory, so that the admin shows it."""

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

from django.conf import settings

from exercises.archive import where_to_keep
from exercises.lab.scheduler import LabError, Taken
from exercises.scenarios import oracles, wednesday
from exercises.scenarios.boxes import Setting
from exercises.scenarios.corner import Played
from exercises.scenarios.exploration import Found
from exercises.scenarios.replay import Outcome
from marlow.servers.launcher import ServerError


class NotKept(LabError):
    """The result was printed, and the admin does not have it. Says what to do."""


def of_wednesday(setting: Setting, start: datetime, outcome: Outcome) -> dict[str, Any]:
    """What is kept of the evening: a row of `LabRun`, as JSON."""
    kept = _kept("wednesday", outcome, oracles.copies(outcome.verdict))
    fault = "" if outcome.mishap is None else f" --fault {outcome.mishap}"
    return {**kept, "again": f"lab wednesday{_flags(setting, start)}{fault}"}


def of_replay(schedule: str, played: Played) -> dict[str, Any]:
    """One run of a corner, which this schedule plays again."""
    return {**_kept("corner", played, played.wrong), "schedule": schedule, "again": f"replay '{schedule}'"}


def of_exploration(found: Found) -> dict[str, Any]:
    """Its report, and of the runs that went wrong the shortest."""
    setting = found.corner.setting
    report = {name: value for name, value in found.as_json().items() if name != "shortest"}
    if found.shortest is None:
        nothing: dict[str, Any] = {"schedule": "", "again": "", "wrong": [], "verdict": None, "steps": []}
        return {"scenario": "corner", **setting.named, **nothing, "report": report}
    return {**of_replay(*found.shortest), "report": report}


def keep(run: dict[str, Any], environment: Callable[..., dict[str, str]]) -> None:
    """Write it to the shop's own database, in a process of its own, whose settings name that one. `environment` is
    `marlow.settings.environment_for`. Raises NotKept.
    """
    try:
        with where_to_keep() as (url, is_the_demos):
            subprocess.run(
                [sys.executable, "-m", "exercises.archive", *(["--migrate"] if is_the_demos else [])],
                cwd=settings.BASE_DIR,
                env=environment(DATABASE_URL=url),
                input=json.dumps(run),
                capture_output=True,
                text=True,
                check=True,
            )
    except ServerError as error:
        raise NotKept(f"The run was not kept for the admin. {error}") from error
    except subprocess.CalledProcessError as failed:
        why = failed.stderr.strip().rpartition("\n")[2]
        raise NotKept(f"The run was not kept for the admin. {why} Then play it again with --keep.") from failed


def steps_of(taken: Sequence[Taken]) -> list[dict[str, str]]:
    """Every round trip of a run as it is kept: `at` in virtual time, `who`, `step`."""
    return [{"at": step.at.isoformat(), "who": step.option.who, "step": step.option.step.label} for step in taken]


def placed(run: Outcome | Played) -> list[dict[str, Any]]:
    """Its events as told, each with the number of steps that came before it, as `step`."""
    events = run.verdict["events"]
    return [{**event, "step": place} for event, place in zip(events, run.places, strict=True)]


def _flags(setting: Setting, start: datetime) -> str:
    """Behind `lab wednesday`: what is not its default."""
    asked = {
        "from": {at: name for name, at in wednesday.STARTS.items()}[start] if start != wednesday.START else "",
        **setting.named,
    }
    flags = [f" --{name} {value}" for name, value in asked.items() if value]
    flags += [" --stop-on-lost-lease"] * setting.stop_on_lost_lease + [" --renew"] * setting.renew
    return "".join(flags)


def _kept(scenario: str, run: Outcome | Played, wrong: Sequence[str]) -> dict[str, Any]:
    told = run.verdict
    return {
        "scenario": scenario,
        **{name: told[name] for name in ("lock", "settle", "question")},
        "schedule": "",
        "again": "",
        "wrong": list(wrong),
        "verdict": {**told, "events": placed(run)},
        "steps": steps_of(run.taken),
        "report": None,
    }
