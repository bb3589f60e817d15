"""The benchmark of the locks measures what it says and prints what it promises. Nothing here tests a speed."""

import json
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

from bench.locks.contest import FLOOR, Race, Row, WentWrong, run
from bench.locks.report import document

ROOT = Path(__file__).resolve().parents[2]


def race(**changes: object) -> Race:
    whole = {"lock": "a", "path": "acquired", "commands": "SET", "floor": lambda: True, "ours": lambda: True}
    return Race(**{**whole, **changes})  # type: ignore[arg-type]


def row(ours: float, **peers: float) -> Row:
    return Row(race(), 1.0, ours, peers)


def test_prints_a_row_for_each_path_of_a_lock() -> None:
    """The last line of `--json`, with times in seconds; the exit status says whether a goal was missed."""
    command = [sys.executable, "-m", "bench.locks", "--rounds", "2", "--json", "--only", "redis-naive"]
    played = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    rows = json.loads(played.stdout.splitlines()[-1])
    assert [(each["name"], each["path"]) for each in rows] == [
        ("redis-naive", "acquired"),
        ("redis-naive", "refused"),
    ]
    for each in rows:
        assert each["ratio"] == pytest.approx(each["ours"] / each["floor"])
        assert set(each["peers"]) == {"redis-py", "python-redis-lock", "pottery x1"}
        assert all(0 < seconds < 10 for seconds in (each["ours"], each["floor"], *each["peers"].values()))
    assert played.returncode == int(any(each["missed"] for each in rows))


def test_every_contestant_plays_every_round_in_an_order_of_its_own() -> None:
    """So that what else the machine does falls on all alike; the turns of the first rounds do not count."""
    played: list[str] = []
    contestants = {name: lambda name=name: played.append(name) or True for name in ("floor", "ours", "theirs")}
    run(
        race(floor=contestants["floor"], ours=contestants["ours"], peers={"theirs": contestants["theirs"]}),
        20,
        Random(1),
    )
    turns = played[::4]
    rounds = [tuple(turns[at : at + 3]) for at in range(0, len(turns), 3)]
    assert len(rounds) == 22
    assert all(sorted(each) == [FLOOR, "ours", "theirs"] for each in rounds)
    assert len(set(rounds)) > 3


def test_a_contestant_that_did_not_do_it_has_no_time() -> None:
    """A lock that was refused where it should have been granted would look fast."""
    with pytest.raises(WentWrong, match=r"ours \(a, acquired\)"):
        run(race(ours=lambda: False), 2, Random(1))


@pytest.mark.parametrize(
    ("ours", "theirs", "missed"),
    [
        (1.15, 1.2, ""),
        (1.16, 1.2, "more than 1.15 of the floor"),
        (1.0, 0.99, ""),
        (1.0, 0.9, "slower than theirs"),
        (2.0, 0.9, "more than 1.15 of the floor, slower than theirs"),
    ],
)
def test_a_goal_is_missed_by_the_floor_or_by_another_s_lock(ours: float, theirs: float, missed: str) -> None:
    """And said in words."""
    assert row(ours, theirs=theirs).missed == missed


def test_the_document_tells_what_was_left_out() -> None:
    """With what to install; the table has a line for each row."""
    written = document([row(1.07, theirs=1.5)], {"etcd": "No etcd here: install it."}, {"Valkey": "9.1.2"}, 300)
    assert "| a | acquired | SET | 1000000 | 1070000 | 1.07 | theirs 1.50 | met |" in written
    assert "Left out: etcd. No etcd here: install it." in written
    assert "Servers: Valkey 9.1.2." in written
