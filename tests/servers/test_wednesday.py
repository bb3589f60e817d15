"""The Wednesday, live: two real boxes, every lock of the shop, unguarded and guarded, against the lesson's table.

Each evening is `manage.py up --once --json` in a process of its own: what a person runs.
"""

import json
import os
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from exercises.scenarios.wednesday import CLOCK_OFFSETS
from marlow.servers.launcher import free_port
from marlow.servers.postgres import EmbeddedPostgres
from marlow.servers.redis import EmbeddedRedis

pytestmark = [pytest.mark.live, pytest.mark.xdist_group("live")]  # one evening at a time
ROOT = Path(__file__).parents[2]
NOVEL_ROWS = {"W-13", "W-14"}
SLOT_2152 = datetime.fromisoformat("2026-02-11T21:51:55+00:00")
# lock: (phantom, double settles, foreign deletes) unguarded; foreign deletes guarded; who may start at 21:52
TABLE = {
    "none": ((18, 14, 0), 0, 2),
    "redis-naive": ((2, 2, 1), 1, 1),
    "redis-token": ((2, 2, 0), 0, 1),
    "slot": ((2, 2, 0), 0, 1),
    "redlock": ((2, 2, 0), 0, 1),
    "postgres-advisory": ((0, 0, 0), 0, 0),
    "etcd": ((0, 0, 0), 0, 0),
    "zookeeper": ((0, 0, 0), 0, 0),
}
# Guarded, each lock again is minutes: `make test` plays the two that are told apart by it.
GUARDED = [
    lock if lock in ("redis-naive", "slot") else pytest.param(lock, marks=pytest.mark.slow) for lock in sorted(TABLE)
]
Verdict = dict[str, Any]


def environment(folder: Path, **extra: str) -> dict[str, str]:
    """The environment of a person with a checkout: none of the tests' own servers."""
    ours = {"DATABASE_URL", "CELERY_BROKER_URL", "LOCK_REDIS_URL", "MARLOW_CLOCK_FILE", "MARLOW_TIME_SCALE"}
    ours |= {"LOCK_REDLOCK_URLS", "LOCK_ETCD_URLS", "LOCK_ZOOKEEPER_HOSTS"}
    plain = {name: value for name, value in os.environ.items() if name not in ours}
    return {**plain, "MARLOW_STATE_DIR": str(folder), **extra}


def evening(folder: Path, *words: str, **extra: str) -> Verdict:
    played = subprocess.run(
        [sys.executable, "manage.py", "up", "--once", "--json", "--port", str(free_port()), *words],
        cwd=ROOT,
        env=environment(folder, **extra),
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert played.returncode == 0, played.stderr[-3000:]
    verdict: Verdict = json.loads(played.stdout.splitlines()[-1])
    return verdict


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """A Postgres and two Redises for all evenings of this file: they are given, so nothing embedded starts."""
    folder = tmp_path_factory.mktemp("servers")
    postgres = EmbeddedPostgres(folder / "postgres", urgent=True).start()
    broker, locks = (EmbeddedRedis(folder / name, name=name, urgent=True).start() for name in ("broker", "locks"))
    yield {"DATABASE_URL": postgres.url(), "CELERY_BROKER_URL": broker.url, "LOCK_REDIS_URL": locks.url}
    for server in (postgres, broker, locks):
        server.stop()


class Journal:
    """A verdict's events by run."""

    def __init__(self, verdict: Verdict) -> None:
        self.runs: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for event in verdict["events"]:
            self.runs[event["run"]].append(event)

    def box(self, run: str) -> str:
        return str(self.runs[run][0]["box"])

    def moment(self, run: str, kind: str, order: str = "") -> datetime:
        """When it happened, with the box's own error taken out."""
        [event] = [e for e in self.runs[run] if e["kind"] == kind and e.get("order", "") == order]
        return datetime.fromisoformat(event["at"]) - timedelta(seconds=CLOCK_OFFSETS[event["box"]])

    def of_slot(self, kind: str, late: bool) -> list[str]:
        """The runs of 21:50 (or, late, of 21:52) that had such an event."""
        return [
            run
            for run, events in self.runs.items()
            if (datetime.fromisoformat(events[0]["at"]) > SLOT_2152) is late
            and any(event["kind"] == kind for event in events)
        ]

    def settlers(self, order: str) -> list[str]:
        return [
            run
            for run, events in self.runs.items()
            if any(event["kind"] == "settled" and event["order"] == order for event in events)
        ]


@pytest.mark.parametrize("lock", sorted(TABLE))
def test_the_wednesday_unguarded(tmp_path: Path, servers: dict[str, str], lock: str) -> None:
    """Counts, which two runs settled rows 13 and 14 and when, and who was refused at 21:52."""
    verdict = evening(tmp_path, SWEEPER_LOCK=lock, SWEEPER_SETTLE="unguarded", **servers)
    counts, _, started = TABLE[lock]
    assert (verdict["phantom"], verdict["double_settles"], verdict["foreign_deletes"]) == counts
    assert (verdict["lock"], verdict["settle"], verdict["question"]) == (lock, "unguarded", "lookup")
    assert verdict["lost"] == 0
    journal = Journal(verdict)
    first, second = journal.of_slot("acquired", late=False), journal.of_slot("acquired", late=True)
    assert len(second) == started
    assert len(journal.of_slot("refused", late=True)) == 2 - started
    if lock == "none":
        assert verdict["overlaps"] == 6
        for row in range(1, 15):
            order = f"W-{row:02d}"
            assert sorted(journal.settlers(order)) == sorted([*first, *second] if order in NOVEL_ROWS else first)
        return
    [run_of_2150] = first
    assert journal.box(run_of_2150) == "box-b"
    assert len(journal.of_slot("refused", late=False)) == 1, "box A is refused at 21:50"
    assert verdict["overlaps"] == started
    for row in range(1, 15):
        order = f"W-{row:02d}"
        expected = [run_of_2150, *second] if order in NOVEL_ROWS else [run_of_2150]
        assert sorted(journal.settlers(order)) == sorted(expected), order
    for run in second:
        assert journal.moment(run, "acquired").strftime("%H:%M") == "21:52"
        assert journal.moment(run, "acquired") < journal.moment(run_of_2150, "settled", "W-13")
        assert journal.moment(run_of_2150, "settled", "W-12") < journal.moment(run, "listed")
        for order, seconds in (("W-13", 15), ("W-14", 25)):
            assert abs((journal.moment(run, "settled", order) - SLOT_2152).total_seconds() - seconds) < 8


@pytest.mark.parametrize("settle", ["unguarded", pytest.param("guarded", marks=pytest.mark.slow)])
def test_under_skip_locked_the_boxes_share_the_rows(tmp_path: Path, servers: dict[str, str], settle: str) -> None:
    """Both are at work from 21:50 on, each on rows of its own, and done by 21:51:10; 21:52 finds nothing to do."""
    verdict = evening(tmp_path, SWEEPER_LOCK="skip-locked", SWEEPER_SETTLE=settle, **servers)
    assert (verdict["phantom"], verdict["lost"], verdict["double_settles"], verdict["foreign_deletes"]) == (
        0,
        0,
        0,
        0,
    )
    journal = Journal(verdict)
    first = journal.of_slot("acquired", late=False)
    assert {journal.box(run) for run in first} == set(CLOCK_OFFSETS)
    shares = {run: [row for row in range(1, 15) if journal.settlers(f"W-{row:02d}") == [run]] for run in first}
    assert sorted(row for rows in shares.values() for row in rows) == list(range(1, 15))
    assert min(len(rows) for rows in shares.values()) >= 5, "about half each"
    ends = [journal.moment(run, "finished") for run in first]
    assert max(ends) < SLOT_2152 - timedelta(seconds=30), "seven rows of ten seconds, side by side"
    assert not [
        event for run in journal.of_slot("acquired", late=True) for event in journal.runs[run] if "order" in event
    ]


@pytest.mark.parametrize("lock", GUARDED)
def test_the_wednesday_guarded_makes_no_phantom_under_any_lock(
    tmp_path: Path, servers: dict[str, str], lock: str
) -> None:
    """One line of SQL: the second run's write matches no row, whoever was told yes."""
    verdict = evening(tmp_path, SWEEPER_LOCK=lock, SWEEPER_SETTLE="guarded", **servers)
    assert (verdict["phantom"], verdict["lost"], verdict["double_settles"]) == (0, 0, 0)
    assert verdict["foreign_deletes"] == TABLE[lock][1]
    started = len(Journal(verdict).of_slot("acquired", late=True))
    assert started == TABLE[lock][2], "the guard changes what is written, not who is told yes"
    untouched = [event["order"] for event in verdict["events"] if event["kind"] == "untouched"]
    if lock in ("redis-naive", "redis-token", "slot", "redlock"):
        assert set(untouched) == NOVEL_ROWS


def test_the_stale_holder_is_refused_by_the_fence_under_slot(tmp_path: Path, servers: dict[str, str]) -> None:
    """slot's number is a token: the run of 21:50 can't write once the run of 21:52 has raised the fence."""
    verdict = evening(tmp_path, SWEEPER_LOCK="slot", SWEEPER_SETTLE="fenced+guarded", **servers)
    assert (verdict["phantom"], verdict["lost"], verdict["double_settles"]) == (0, 0, 0)
    [stale] = [event for event in verdict["events"] if event["kind"] == "stale"]
    assert stale["highest"] == stale["token"] + 1
    assert stale["box"] == "box-b"


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_the_whole_evening_from_20_50_by_real_checkouts(tmp_path: Path) -> None:
    """The list grows to fourteen by itself, runs begin to overlap when twelve rows fill the lease, and from 21:50 on
    copies are promised twice. Worked out below by arithmetic; at the very minute of a tie either outcome is right.
    """
    verdict = evening(tmp_path, "--from", "20:50")
    journal = Journal(verdict)
    lists: dict[str, int] = {}
    for events in journal.runs.values():
        for event in events:
            if event["kind"] == "listed" and (minute := even_minute(event["at"])) < "21:50":
                lists.setdefault(minute, event["rows"])
    expected = arithmetic()
    assert not {minute: rows for minute, rows in lists.items() if rows not in expected[minute]}
    assert len(lists) >= 25, "one run a slot, less those that were refused while the last one overran"
    assert min(minute for minute, rows in lists.items() if rows) == "20:56", "20:52:30 and two minutes, and then cron"
    held = [span(events) for events in journal.runs.values() if any(e["kind"] == "acquired" for e in events)]
    overlapping = [later for earlier, later in pairwise(sorted(held)) if later[0] < earlier[1]]
    assert overlapping, "runs overlap in the end"
    assert f"{min(overlapping)[0]:%H:%M}" in ("21:44", "21:46", "21:48"), "twelve rows fill the lease from 21:42 on"
    assert verdict["overlaps"] >= 1
    assert verdict["foreign_deletes"] >= 1, "harmless until rows settle: a run outlived its lease and deleted"
    assert verdict["phantom"] >= 2
    assert verdict["lost"] == 0
    assert not [e for e in verdict["events"] if e["kind"] == "settled" and e["at"] < "2026-02-11T21:50"]


def even_minute(at: str) -> str:
    """The slot of a box's own time, its error allowed for: 20:55:58 by a slow clock is 20:56."""
    moment = datetime.fromisoformat(at) + timedelta(seconds=10)
    return f"{moment.hour}:{moment.minute - moment.minute % 2:02d}"


def span(events: list[dict[str, Any]]) -> tuple[datetime, datetime]:
    """When a run held the lock as it understood it, with its box's error taken out."""
    error = timedelta(seconds=CLOCK_OFFSETS[events[0]["box"]])
    acquired = next(event["at"] for event in events if event["kind"] == "acquired")
    return datetime.fromisoformat(acquired) - error, datetime.fromisoformat(events[-1]["at"]) - error


def arithmetic() -> dict[str, set[int]]:
    """By plain arithmetic, none of it the shop's: how many rows a run that starts in each even minute finds.

    A row every 250 s from 20:52:30, found once it is older than two minutes, and none of them settled before 21:50. A
    run starts within six seconds of its minute, so a row that comes of age in those may be on the list or not.
    """
    rows = [150 + 250 * place for place in range(14)]
    return {
        f"{20 + (50 + minute) // 60}:{(50 + minute) % 60:02d}": {
            sum(60 * minute + late - row > 120 for row in rows) for late in (0, 6)
        }
        for minute in range(0, 60, 2)
    }
