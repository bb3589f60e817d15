"""The evening from 20:50 in virtual time, against a table of its own: a page of plain arithmetic, none of it the
shop's, the sweeper's or the scenario's. Moments are milliseconds since 20:50:00.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from heapq import heappop, heappush
from typing import Any

import pytest

from exercises.lab.database import Database
from exercises.scenarios.boxes import Setting
from exercises.scenarios.replay import Outcome, play
from sweeper.verdict import foreign_deletes

START = datetime.fromisoformat("2026-02-11T20:50:00+00:00")
SECOND, MINUTE = 1000, 60_000
CAME = {f"W-{place + 1:02d}": (150 + 250 * place) * SECOND for place in range(14)}  # when each row was left pending
ANSWERED = (
    60 * MINUTE
)  # from 21:50:00 on a question is answered; before, it is given up; after ten seconds either way
LEASED, KEPT_ALIVE = {"redis-naive", "redis-token", "redlock"}, {"postgres-advisory", "etcd", "zookeeper"}


@dataclass
class Line:
    """One run in the table."""

    box: str
    fires: int
    began: int = 0
    taken: bool = False
    rows: list[str] = field(default_factory=list)
    settled: list[tuple[str, int]] = field(default_factory=list)
    stale: list[int] = field(default_factory=list)  # when the fence refused it
    deleted: bool = False  # something lay under the lock's key when it let go, and was removed
    ended: int = 0


class Table:
    """Both boxes at every even minute, A a millisecond behind B; what is due in one moment is done by whoever fired
    first. `processes`: runs at a time on one box; a message that comes meanwhile waits.
    """

    def __init__(self, lock: str, settle: str = "unguarded", processes: int = 2) -> None:
        self.lock, self.guarded, self.fenced = lock, "guarded" in settle.split("+"), "fenced" in settle
        fired = [(minute * MINUTE + late, box) for minute in range(0, 64, 2) for late, box in ((0, "b"), (1, "a"))]
        self.lines = [Line(f"box-{box}", fires) for fires, box in fired]
        self.now, self.deadline, self.fence = 0, 0, -1
        self.holder: Line | None = None  # whose key it is; a lease's key lives up to its deadline, and at it
        self.slots, self.settled, self.worked_on = set[int](), list[str](), set[str]()
        self.holding, self.overlaps, self.foreign = list[Line](), 0, list[Line]()
        self._fill(processes)

    def _fill(self, processes: int) -> None:
        due = [(line.fires, place) for place, line in enumerate(self.lines)]
        runs = [self._run(line, place) for place, line in enumerate(self.lines)]
        free, waiting = Counter({"box-a": processes, "box-b": processes}), defaultdict[str, list[int]](list)
        begun = set[int]()
        while due:
            self.now, place = heappop(due)
            box = self.lines[place].box
            if place not in begun:
                if not free[box]:
                    waiting[box].append(place)
                    continue
                free[box] -= 1
                begun.add(place)
            if (again := next(runs[place], None)) is not None:
                heappush(due, (again, place))
                continue
            free[box] += 1
            if waiting[box]:
                heappush(due, (self.now, waiting[box].pop(0)))

    def _run(self, line: Line, place: int) -> Iterator[int]:
        """Yields when it goes on."""
        line.began = self.now
        line.taken = self._take(line)
        if line.taken:
            self.overlaps += len(self.holding)
            self.holding.append(line)
            line.rows = [
                row for row, came in CAME.items() if self.now - came > 2 * MINUTE and row not in self.settled
            ]
            self.fence = place
            yield from self._ask(line, place)
            self.holding.remove(line)
            self._let_go(line)
        line.ended = self.now

    def _ask(self, line: Line, place: int) -> Iterator[int]:
        for row in line.rows:
            if self.lock == "skip-locked" and (row in self.worked_on or row in self.settled):
                continue
            self.worked_on.add(row)
            asked = self.now
            yield asked + 10 * SECOND
            self.worked_on.discard(row)
            if asked < ANSWERED:
                continue
            if self.fenced and self.fence != place:
                line.stale.append(self.now)
                return
            if not (self.guarded and row in self.settled):
                self.settled.append(row)
                line.settled.append((row, self.now))

    def _take(self, line: Line) -> bool:
        if self.lock == "slot":
            slot = self.now // (2 * MINUTE)
            free = slot not in self.slots
            self.slots.add(slot)
            return free
        free = self.holder is None or (self.lock in LEASED and self.now > self.deadline)
        if free and self.lock in LEASED | KEPT_ALIVE:
            self.holder, self.deadline = line, self.now + 2 * MINUTE
        return free

    def _let_go(self, line: Line) -> None:
        there = self.holder is not None and not (self.lock in LEASED and self.now > self.deadline)
        line.deleted = there and (self.lock == "redis-naive" or self.holder is line)
        if line.deleted:
            if self.holder is not line:
                self.foreign.append(line)
            self.holder = None

    def counts(self) -> dict[str, int]:
        times = Counter(self.settled)
        return {
            "phantom": len(self.settled) - len(times),
            "lost": 0,
            "double_settles": sum(settles > 1 for settles in times.values()),
            "foreign_deletes": len(self.foreign),
            "overlaps": self.overlaps,
        }


def in_order(lines: Iterable[Line]) -> list[dict[str, Any]]:
    """By when they began. When a message was sent is no event."""
    told = [{name: value for name, value in asdict(line).items() if name != "fires"} for line in lines]
    return sorted(told, key=lambda line: (line["began"], line["box"]))


def journalled(outcome: Outcome) -> Iterable[Line]:
    """The laboratory's journal in the table's form."""
    lines: dict[str, Line] = {}
    for event in outcome.verdict["events"]:
        at = round((datetime.fromisoformat(event["at"]) - START) / timedelta(milliseconds=1))
        line = lines.setdefault(event["run"], Line(event["box"], 0, at))
        line.ended = at
        match event["kind"]:
            case "acquired":
                line.taken = True
            case "listed":
                line.rows = event["orders"]
            case "settled":
                line.settled.append((event["order"], at))
            case "stale":
                line.stale.append(at)
            case "released":
                line.deleted = event["deleted"]
    return lines.values()


Runs = dict[tuple[str, str], Line]


def clock(moment: int) -> str:
    return f"{START + timedelta(milliseconds=moment):%H:%M:%S}"


# Worked out by hand: phantom copies, rows settled twice, foreign deletes, pairs of runs that overlap.
COUNTS = {
    ("redis-naive", "unguarded"): (2, 2, 2, 3),
    ("redis-naive", "guarded"): (0, 0, 2, 3),
    ("redis-token", "unguarded"): (0, 0, 0, 1),
    ("redlock", "unguarded"): (0, 0, 0, 1),
    ("slot", "unguarded"): (2, 2, 0, 3),
    ("slot", "guarded"): (0, 0, 0, 3),
    ("slot", "fenced"): (0, 0, 0, 3),
    ("postgres-advisory", "unguarded"): (0, 0, 0, 0),
    ("etcd", "fenced"): (0, 0, 0, 0),
    ("zookeeper", "fenced+guarded"): (0, 0, 0, 0),
    ("none", "unguarded"): (18, 14, 0, 43),
    ("none", "guarded"): (0, 0, 0, 43),
    ("skip-locked", "unguarded"): (0, 0, 0, 28),
}


@pytest.mark.parametrize(("lock", "settle"), COUNTS)
def test_the_journal_is_the_table(database: Database, lock: str, settle: str) -> None:
    """Every run: when it begins and ends, whether it is told yes, its list, its settles, and what its DEL removes."""
    table = Table(lock, settle)
    outcome = play(database, Setting(lock=lock, settle=settle), start=START)
    assert outcome.errors == {}
    assert in_order(journalled(outcome)) == in_order(table.lines)
    assert {name: outcome.verdict[name] for name in table.counts()} == table.counts()
    phantom, twice, foreign, overlaps = COUNTS[lock, settle]
    assert table.counts() == {
        "phantom": phantom,
        "lost": 0,
        "double_settles": twice,
        "foreign_deletes": foreign,
        "overlaps": overlaps,
    }


@pytest.fixture(scope="module")
def shipped(database: Database) -> Outcome:
    """As the shop shipped it."""
    return play(database, Setting(), start=START)


@pytest.fixture(scope="module")
def runs(shipped: Outcome) -> Runs:
    """By box and beginning."""
    return {(line.box, clock(line.began)): line for line in journalled(shipped)}


class TestAsItShipped:
    """The journal's moments that can be worked out in one's head, without the table."""

    def test_the_first_row_comes_at_20_52_30_and_is_found_at_20_56(self, runs: Runs) -> None:
        """Two minutes and cron later; from then on the list only grows, to fourteen."""
        lists = [(began, len(line.rows)) for (_, began), line in runs.items() if line.rows and began < "21:52:00"]
        assert lists[0] == ("20:56:00", 1)
        assert lists[-1] == ("21:50:00", 14)
        assert lists == sorted(lists, key=lambda told: told[1])

    def test_twelve_rows_fill_the_lease_at_21_42_and_thirteen_overrun_it_at_21_46(self, runs: Runs) -> None:
        """Runs of twelve end in the very millisecond in which their key would; so the first overlap is at 21:48."""
        filled, overran = runs["box-b", "21:42:00"], runs["box-b", "21:46:00"]
        assert (len(filled.rows), filled.ended - filled.began) == (12, 2 * MINUTE)
        assert (len(overran.rows), clock(overran.ended)) == (13, "21:48:10")
        assert [began for (box, began), line in runs.items() if box == "box-a" and line.rows] == ["21:48:00"]

    def test_the_first_foreign_delete_is_harmless(self, shipped: Outcome) -> None:
        """B's at 21:48:10, of A's key: nothing settles before 21:50:10. A's at 21:50:10 is of B's key in turn."""
        foreign = [(event.box, f"{event.at:%H:%M:%S}") for event in foreign_deletes(shipped.events)]
        assert foreign == [("box-b", "21:48:10"), ("box-a", "21:50:10")]

    def test_the_novel_s_two_copies_come_back_four_times(self, runs: Runs) -> None:
        """The last at 21:52:20."""
        settles = [(row, box, began, clock(at)) for (box, began), line in runs.items() for row, at in line.settled]
        assert min(at for _, _, _, at in settles) == "21:50:10"
        assert sorted(settle for settle in settles if settle[0] >= "W-13") == [
            ("W-13", "box-a", "21:48:00", "21:50:10"),
            ("W-13", "box-b", "21:50:00", "21:52:10"),
            ("W-14", "box-b", "21:50:00", "21:52:20"),
            ("W-14", "box-b", "21:52:00", "21:52:10"),
        ]


def test_a_message_that_finds_its_box_busy_waits(database: Database) -> None:
    """One process a box, and no lock: thirteen rows from 21:46 on, and the run of 21:48 begins at 21:48:10."""
    table = Table("none", processes=1)
    late = [line for line in table.lines if line.began > line.fires]
    assert (late[0].box, clock(late[0].fires), clock(late[0].began)) == ("box-b", "21:48:00", "21:48:10")
    outcome = play(database, Setting(lock="none"), start=START, processes=1)
    assert in_order(journalled(outcome)) == in_order(table.lines)
