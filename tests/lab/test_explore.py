"""Every order in which two boxes can meet: reduced and unreduced alike, and what must be found is found."""

from collections.abc import Callable, Sequence
from itertools import count
from typing import Any

import pytest

from exercises.lab.database import Database
from exercises.lab.explore import every_order, plain
from exercises.lab.policies import Chance, Diverged, Priorities
from exercises.lab.schedule import Schedule, Unreadable
from exercises.lab.scheduler import Policy, Taken
from exercises.lab.steady import Unsteady
from exercises.scenarios.boxes import Setting, Unplayable, as_told
from exercises.scenarios.corner import Corner, play
from exercises.scenarios.exploration import Bounds, CannotReplay, Exploration, Found, read, replay, written
from exercises.scenarios.faults import Fault
from exercises.scenarios.provider import ProviderPort
from exercises.wrong_fences import WRONG_FENCES
from exercises.wrong_locks import WRONG_LOCKS
from exercises.wrong_settles import SETTLES
from shop.provider.answers import Answer, Verdict

PHANTOM = "the catalogue promises copies that no shelf holds (1)"
TWICE = "a row was settled more than once (1)"


def explored(database: Database, corner: Corner, **bounds: Any) -> Found:
    return Exploration(database, corner, Bounds(**bounds)).go()


def overrun(lock: str, settle: str = "unguarded") -> Corner:
    """Two rows, ten seconds each, under a lease of ten: the second row is beyond it."""
    return Corner(Setting(lock=lock, settle=settle, ttl=10.0, every=10.0), messages=2, latency=10.0)


@pytest.mark.parametrize(
    ("lock", "settle"),
    [
        ("none", "unguarded"),
        ("none", "guarded"),
        ("redis-naive", "unguarded"),
        ("slot", "unguarded"),
        ("postgres-advisory", "unguarded"),
        ("skip-locked", "unguarded"),
    ],
)
def test_the_reduction_misses_nothing_that_all_orders_have(database: Database, lock: str, settle: str) -> None:
    """With one order plain search finishes: the same ends and the same findings, in far fewer runs."""
    corner = Corner(Setting(lock=lock, settle=settle), orders=1)
    reduced, whole = explored(database, corner), explored(database, corner, policy="plain")
    assert reduced.exhausted
    assert whole.exhausted
    assert reduced.outcomes == whole.outcomes
    assert reduced.schedules * 4 <= whole.schedules


@pytest.mark.parametrize(
    ("lock", "settle"),
    [
        *(("slot", fence) for fence in WRONG_FENCES),
        *(("none", form) for form in SETTLES),
        *((lock, "unguarded") for lock in WRONG_LOCKS),
    ],
)
def test_the_reduction_misses_nothing_of_any_wrong_variant(database: Database, lock: str, settle: str) -> None:
    """The same ends as all orders have, in no more runs."""
    corner = Corner(Setting(lock=lock, settle=settle), orders=1)
    reduced, whole = explored(database, corner), explored(database, corner, policy="plain")
    assert reduced.exhausted
    assert whole.exhausted
    assert reduced.outcomes == whole.outcomes
    assert reduced.schedules <= whole.schedules


def test_an_unguarded_settle_without_a_lock_makes_a_copy_up(database: Database) -> None:
    """And the shortest order that does is one in which one box goes on once where it could have waited."""
    found = explored(database, Corner(Setting(lock="none"), orders=1))
    assert set(found.failures) == {(PHANTOM, TWICE)}
    assert found.shortest is not None
    assert len(read(found.shortest[0])[2].turns) == 1


def test_a_guarded_settle_never_fails_in_any_order(database: Database) -> None:
    """Two boxes, two orders, no lock at all: exhausted, and nothing found."""
    found = explored(database, Corner(Setting(lock="none", settle="guarded")))
    assert found.exhausted
    assert found.failures == {}
    assert found.schedules > 20


@pytest.mark.parametrize("lock", ["redis-naive", "redis-token", "slot", "redlock"])
def test_a_run_that_outlives_its_lease_or_slot_is_found(database: Database, lock: str) -> None:
    """Without any fault: the next one finds the key free. The naive lock deletes another's key besides."""
    found = explored(database, overrun(lock))
    assert found.exhausted
    foreign = ("a run deleted another run's key (1)",) if lock == "redis-naive" else ()
    assert set(found.failures) == {(PHANTOM, TWICE, *foreign)}


@pytest.mark.parametrize("lock", ["postgres-advisory", "etcd", "zookeeper"])
def test_a_lock_that_is_kept_alive_outlasts_the_run(database: Database, lock: str) -> None:
    """In every order: the others are refused."""
    found = explored(database, overrun(lock), runs=400)
    assert found.failures == {}


class TestAScheduleAsText:
    def test_replays_to_the_letter(self, database: Database) -> None:
        """A failure, its text, the text played: the same journal, byte for byte."""
        found = explored(database, Corner(Setting(lock="none"), orders=2), runs=40)
        assert found.shortest is not None
        text, played = found.shortest
        again = replay(database, text)
        assert again.verdict == played.verdict
        assert again.wrong == played.wrong
        assert written(*read(text)[:2], again.taken) == text

    def test_of_any_run_does(self, database: Database) -> None:
        """By chance, by priorities, with a fault."""
        corner = Corner(Setting(lock="etcd", settle="fenced"), orders=1, messages=2)
        faults = (Fault.read("pause@box-b:4"),)
        for policy in (Chance(7), Priorities(7, 3, 40)):
            first = play(database, corner, policy, faults)
            assert replay(database, written(corner, faults, first.taken)).verdict == first.verdict

    def test_that_is_another_s_is_refused(self, database: Database) -> None:
        """It was recorded of other code: it says so, and does not pass for the same."""
        corner = Corner(Setting(lock="none"), orders=1)
        taken = play(database, corner, Chance(1)).taken
        text = written(corner, (), taken)
        with pytest.raises(Diverged, match="record"):
            replay(database, text[:-8] + "00000000")
        with pytest.raises(Diverged, match="record"):
            replay(
                database,
                text.replace(f"{Schedule.of(taken)}", "2=box-z/9~00000000") if "=" in text else text[:-1] + "x",
            )

    @pytest.mark.parametrize(
        "text",
        [
            "",
            "corner",
            "corner;none;unguarded;lookup;2;2;1;0;120;;",
            "corner;none;unguarded;lookup;2;2;1;0;120;;~",
            "evening;a;b;c;1;1;1;0;1;;~a",
        ],
    )
    def test_that_is_none_is_told_apart(self, database: Database, text: str) -> None:
        """With what to do, and no traceback."""
        with pytest.raises((CannotReplay, Unreadable), match=r"copy|replay"):
            replay(database, text)


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda: Setting(lock="redis-navie"), "no lock 'redis-navie'"),
        (lambda: Setting(settle="gaurded"), "no form 'gaurded'"),
        (lambda: Setting(lock="redis-token", settle="fenced"), "mints none: take one of slot"),
        (lambda: Setting(question="ask"), "lookup or cancel"),
        (lambda: Setting(ttl=float("nan")), "lease of nan s"),
        (lambda: Corner(Setting(), boxes=9), "from 1 to 8"),
        (lambda: Corner(Setting(), orders=0), "from 1 to 50"),
        (lambda: Corner(Setting(), latency=10.5), "from 0 to 10"),
        (lambda: Setting(lock="none", renew=True), "leave out --renew"),
        (lambda: Bounds(seconds=float("nan")), "seconds must be 1"),
        (lambda: Bounds(seconds=0), "seconds must be 1"),
        (lambda: Bounds(preemptions=-1), "preemptions must be 0"),
    ],
)
def test_what_makes_no_scenario_is_refused(make: Callable[[], object], why: str) -> None:
    """Before anything is played, with what to do."""
    with pytest.raises(Unplayable, match=why):
        make()


def test_the_shortest_failure_has_no_order_too_many(database: Database) -> None:
    """Found with two rows, told with one."""
    found = explored(database, Corner(Setting(lock="none")), runs=40)
    assert found.shortest is not None
    assert read(found.shortest[0])[0].orders == 1


def test_a_stop_leaves_what_was_found_so_far(database: Database) -> None:
    """Between two runs, so that nothing is left lying about; and it is not called exhausted."""
    exploration = Exploration(database, Corner(Setting(lock="none")), Bounds())
    exploration.progress = lambda found: exploration.stop() if found.schedules == 3 else None
    found = exploration.go()
    assert (found.schedules, found.exhausted, found.stopped) == (3, False, "it was stopped by hand")
    assert Exploration(database, Corner(Setting(lock="none"), orders=1), Bounds()).go().exhausted


def test_what_a_killed_exploration_left_is_in_nobody_s_way(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The laboratory's database outlives it, and so do the rows of the order it was killed in."""
    corner = Corner(Setting(lock="none"), orders=1)
    with monkeypatch.context() as killed:
        killed.setattr("exercises.scenarios.corner.CLEAR_ROWS", "select 1")
        first = play(database, corner, Chance(1))
    assert play(database, corner, Chance(1)).verdict == first.verdict


def test_a_run_that_dies_of_itself_is_a_failure(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """Or a laboratory in which nothing ran would find nothing wrong."""

    def breaks(*args: object, **named: object) -> None:
        raise KeyError("a mistake")

    monkeypatch.setattr("exercises.scenarios.boxes.sweep", breaks)
    found = explored(database, Corner(Setting(lock="none"), orders=1))
    assert set(found.failures) == {("a run died of KeyError (1)",)}


def test_every_run_is_the_same_when_played_again(database: Database) -> None:
    """What is chosen is all there is to a run: journals, steps and what they touch."""
    corner = Corner(Setting(lock="skip-locked"), orders=2, messages=2)
    for seed in range(12):
        first, second = (play(database, corner, Chance(seed)) for _ in range(2))
        assert first.verdict == second.verdict
        assert first.taken == second.taken


def test_a_bound_of_preemptions_is_kept_and_said(database: Database) -> None:
    """A bounded search is never called exhausted."""
    corner = Corner(Setting(lock="none"), orders=1)
    spent = list(plain(lambda policy: play(database, corner, policy).taken, 1))
    assert set(spent) == {0, 1}
    bounded = explored(database, corner, policy="plain", preemptions=1)
    assert not bounded.exhausted
    assert bounded.failures, "one preemption is enough for this one"


def test_a_search_by_preemptions_begins_with_none_and_goes_on(database: Database) -> None:
    """As in CHESS: what was stopped is complete up to a number, and says up to which."""
    corner = Corner(Setting(lock="none"), orders=1)
    spent = list(plain(lambda policy: play(database, corner, policy).taken))
    assert spent == sorted(spent)
    runs = spent.index(3) + 1
    stopped = explored(database, corner, policy="plain", runs=runs).stopped
    assert "every order with fewer than 3 preemptions was tried" in stopped


def test_played_twice_what_reads_chance_by_itself_is_named(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The determinism mode: by the step that differed, or by its journal."""
    corner, chance = Corner(Setting(lock="none"), orders=1), count()
    assert explored(database, corner, twice=True).exhausted
    asked = ProviderPort.lookup

    def by_itself(self: ProviderPort, key: str) -> Answer:
        return asked(self, key) if next(chance) % 3 else Answer(Verdict.UNKNOWN, why="a whim")

    monkeypatch.setattr(ProviderPort, "lookup", by_itself)
    with pytest.raises(Unsteady, match="time or chance by itself"):
        explored(database, corner, twice=True)


def test_nobody_s_steps_are_tried_twice(database: Database) -> None:
    """Two runs of the reduced search are two orders: no schedule comes up again."""
    corner, texts = Corner(Setting(lock="none"), orders=1), list[str]()

    def one(policy: Policy) -> Sequence[Taken]:
        taken = play(database, corner, policy).taken
        texts.append(str(Schedule.of(taken)))
        return taken

    assert all(every_order(one))
    assert len(set(texts)) == len(texts)


def test_the_journal_names_runs_and_not_ids(database: Database) -> None:
    """Or no two schedules could be compared."""
    events = play(database, Corner(Setting(lock="none"), orders=1), Chance(3)).verdict["events"]
    assert {event["run"] for event in events} == {"box-a/1", "box-b/1"}
    assert as_told([]) == []
