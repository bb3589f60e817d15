"""The wrong settles and the wrong locks: the laboratory finds the order of each by itself, from a cold start.

One row, two boxes, one fault of the kind that each of them cannot bear; and what is right in its place bears it.
"""

from dataclasses import dataclass

import pytest

from exercises.lab.database import Database
from exercises.scenarios.boxes import Setting
from exercises.scenarios.corner import Corner
from exercises.scenarios.exploration import Bounds, Exploration, Found, read, replay
from exercises.scenarios.faults import Kind
from exercises.wrong_locks import WRONG_LOCKS
from exercises.wrong_settles import SETTLES, WRONG_SETTLES
from marlow.management.commands.lab import Command
from sweeper.locks import LOCKS

PHANTOM = "the catalogue promises copies that no shelf holds (1)"
LOST = "the shelf holds copies that the catalogue does not know (1)"
TWICE = "a row was settled more than once (1)"
FOREIGN = "a run deleted another run's key (1)"


@dataclass(frozen=True)
class Case:
    """What cannot bear this fault, what stands in its place and can, and what comes of the one and not of the other.
    `likewise`: the fault that strikes the right one so, where that is another.
    """

    wrong: Setting
    right: Setting
    fault: Kind
    sentence: str
    likewise: Kind | None = None


CASES = {
    case.wrong.settle if case.wrong.settle in WRONG_SETTLES else case.wrong.lock: case
    for case in (
        Case(Setting("none", "wrong:two-transactions"), Setting("none", "guarded"), Kind.CRASH, LOST),
        Case(Setting("none", "wrong:unlooked-decline"), Setting("none", "guarded"), Kind.LANDS, PHANTOM),
        Case(
            Setting("redis-token", "wrong:retry-unguarded"),
            Setting("redis-token", "guarded-retry"),
            Kind.UNKNOWN_DONE,
            PHANTOM,
        ),
        Case(
            Setting("wrong:advisory-apart", "unguarded"),
            Setting("postgres-advisory", "unguarded"),
            Kind.LOCK_LOST,
            PHANTOM,
            Kind.LOST,  # its session works as well
        ),
        Case(Setting("wrong:client-compare", "guarded"), Setting("redis-token", "guarded"), Kind.CLOCK, FOREIGN),
    )
}


def explored(
    database: Database,
    setting: Setting,
    fault: Kind,
    *,
    boxes: int = 2,
    messages: int = 1,
    find: str = "",
    runs: int = 200,
) -> Found:
    """Orders with this fault at every place, until this sentence is found; so many of them at the most."""
    corner = Corner(setting, boxes, orders=1, messages=messages)
    exploration = Exploration(database, corner, Bounds(1, runs=runs, kinds=(fault,)))

    def look(found: Found) -> None:
        if find in sentences(found):
            exploration.stop()

    exploration.progress = look
    return exploration.go()


def sentences(found: Found) -> set[str]:
    return {sentence for what in found.failures for sentence in what}


def test_none_is_left_out() -> None:
    assert set(CASES) == {*WRONG_SETTLES, *WRONG_LOCKS}


@pytest.mark.parametrize(("option", "names"), [("lock", WRONG_LOCKS), ("settle", SETTLES)])
def test_the_command_offers_them(option: str, names: dict[str, object]) -> None:
    parser = Command().create_parser("manage.py", "lab")
    for name in names:
        assert vars(parser.parse_args(["explore", f"--{option}", name]))[option] == name


@pytest.mark.parametrize("name", CASES)
def test_the_order_of_a_wrong_one_is_found(database: Database, name: str) -> None:
    """What comes of it, an order as short as one row, and a text that plays it again."""
    case = CASES[name]
    found = explored(database, case.wrong, case.fault, find=case.sentence)
    assert case.sentence in sentences(found)
    assert found.shortest is not None
    text, played = found.shortest
    assert read(text)[0].setting == case.wrong
    assert replay(database, text).verdict == played.verdict


@pytest.mark.parametrize("name", CASES)
def test_what_stands_in_its_place_bears_the_same(database: Database, name: str) -> None:
    """The same fault at every place, in as many orders as there is time for."""
    case = CASES[name]
    found = explored(database, case.right, case.likewise or case.fault)
    assert found.plans > 1, "with no fault at all nothing was tried"
    assert case.sentence not in sentences(found)


@pytest.mark.parametrize("name", CASES)
def test_in_calm_weather_nothing_is_wrong_with_it(database: Database, name: str) -> None:
    """Which is why people ship them: every order, exhausted."""
    case = CASES[name]
    found = Exploration(database, Corner(case.wrong, orders=1), Bounds()).go()
    assert found.exhausted
    assert found.failures == {}


@pytest.mark.parametrize("lock", LOCKS)
def test_to_try_again_unguarded_makes_a_copy_up_under_every_lock(database: Database, lock: str) -> None:
    """With one box alone. Under `skip-locked` the COMMIT is the claim's, and nothing is tried again."""
    found = explored(database, Setting(lock, "wrong:retry-unguarded"), Kind.UNKNOWN_DONE, boxes=1)
    assert sentences(found) == (set() if lock == "skip-locked" else {PHANTOM, TWICE})
    assert not found.stopped.startswith("the ceiling")


@pytest.mark.parametrize("lock", LOCKS)
def test_to_try_again_guarded_is_right_under_every_lock(database: Database, lock: str) -> None:
    """Whether the COMMIT was carried out or not."""
    for fault in (Kind.UNKNOWN_DONE, Kind.UNKNOWN_UNDONE):
        found = explored(database, Setting(lock, "guarded-retry"), fault, boxes=1, messages=2)
        assert found.failures == {}
        assert not found.stopped.startswith("the ceiling")
