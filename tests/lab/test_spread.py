"""One exploration over many workers: the same findings, whoever explores what, and however often."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import pytest

from exercises.lab.database import Database
from exercises.lab.scheduler import LabError
from exercises.models import Exploration as Row
from exercises.models import ExplorationPart
from exercises.scenarios import spread as spreading
from exercises.scenarios.boxes import Setting, Unplayable
from exercises.scenarios.corner import Corner
from exercises.scenarios.exploration import Bounds, Exploration, Found
from exercises.scenarios.faults import Kind
from exercises.scenarios.spread import Overtaken, PartFailed, Spread, explore_part

CORNER = Corner(Setting(lock="none"), orders=1)
BOUNDS = Bounds(faults=1, kinds=(Kind.CRASH, Kind.UNKNOWN_DONE))
Laboratory = Callable[[], AbstractContextManager[Database]]


@pytest.fixture
def laboratory(database: Database, monkeypatch: pytest.MonkeyPatch) -> Iterator[Laboratory]:
    """The tests' own, which is open already; small parts, so that there are many."""
    monkeypatch.setattr(spreading, "A_PART", 7)

    @contextmanager
    def opened() -> Iterator[Database]:
        yield database

    yield opened
    Row.objects.all().delete()


def spread_with(laboratory: Laboratory, work: Callable[[list[int]], object], **others: Any) -> Found:
    """Merged by one, explored by `work`, which is given the numbers of what was sent meanwhile."""
    sent: list[int] = []
    spread = Spread.begin(CORNER, BOUNDS, sent.append, **others)

    def wait() -> None:
        todo, sent[:] = list(sent), []
        work(todo)

    return spread.go(wait)


def all_of(laboratory: Laboratory) -> Callable[[list[int]], object]:
    return lambda todo: [explore_part(pk, laboratory) for pk in todo]


def test_it_finds_what_one_alone_finds(database: Database, laboratory: Laboratory) -> None:
    """The same ends and the same failures, of the same faults; a part is never larger than it was told."""
    alone = Exploration(database, CORNER, BOUNDS).go()
    found = spread_with(laboratory, all_of(laboratory))
    assert found.outcomes == alone.outcomes
    assert set(found.failures) == set(alone.failures)
    assert found.plans == alone.plans
    assert max(part.tally["schedules"] for part in ExplorationPart.objects.all()) == 7


def test_a_part_that_is_explored_twice_counts_once(laboratory: Laboratory) -> None:
    """A message may come twice, and two workers may have the same one."""
    once = spread_with(laboratory, all_of(laboratory))
    twice = spread_with(laboratory, lambda todo: [explore_part(pk, laboratory) for pk in [*todo, *todo]])
    assert (twice.schedules, twice.failures) == (once.schedules, once.failures)


def test_a_part_whose_worker_is_gone_is_sent_again(laboratory: Laboratory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every message is lost once: nothing is missing at the end."""
    once = spread_with(laboratory, all_of(laboratory))
    monkeypatch.setattr(spreading, "PATIENCE", spreading.PATIENCE * 0)
    seen: set[int] = set()

    def loses_the_first(todo: list[int]) -> None:
        for pk in todo:
            if pk in seen:
                explore_part(pk, laboratory)
            seen.add(pk)

    found = spread_with(laboratory, loses_the_first)
    assert (found.schedules, found.failures) == (once.schedules, once.failures)


def test_it_goes_on_where_whoever_merged_broke_off(laboratory: Laboratory) -> None:
    """Killed after a few merges: the next one takes over, and the old one is refused if it was only slow."""
    once, sent = spread_with(laboratory, all_of(laboratory)), list[int]()

    def breaks_off(found: Found) -> None:
        if found.schedules > 20:
            raise KeyboardInterrupt

    killed = Spread.begin(CORNER, BOUNDS, sent.append, breaks_off)
    with pytest.raises(KeyboardInterrupt):
        killed.go(lambda: [explore_part(sent.pop(0), laboratory)])
    again = Spread.resume(killed.exploration.pk, sent.append)
    killed.progress = lambda found: None
    with pytest.raises(Overtaken):
        killed.go(lambda: [explore_part(sent.pop(0), laboratory)])
    killed.stop()
    with pytest.raises(Overtaken):  # nor may it end what is another's
        killed.go(lambda: None)
    found = again.go(lambda: [explore_part(sent.pop(0), laboratory)])
    assert (found.schedules, found.failures) == (once.schedules, once.failures)
    with pytest.raises(Unplayable, match="has ended"):
        Spread.resume(killed.exploration.pk, sent.append)


def test_a_worker_that_can_t_is_tried_a_few_times(laboratory: Laboratory) -> None:
    """And then it says what the last one died of."""

    @contextmanager
    def broken() -> Iterator[Database]:
        raise OSError("no such server")
        yield

    def tries(todo: list[int]) -> None:
        for pk in todo:
            with pytest.raises(OSError, match="no such server"):
                explore_part(pk, broken)

    with pytest.raises(PartFailed, match="no such server"):
        spread_with(laboratory, tries)


def test_a_part_that_no_laboratory_can_play_says_why(laboratory: Laboratory, monkeypatch: pytest.MonkeyPatch) -> None:
    """At once: another worker would come to the same."""

    def refuses(*anything: object) -> None:
        raise LabError("reads time by itself")

    monkeypatch.setattr(spreading, "explore", refuses)
    with pytest.raises(PartFailed, match="reads time by itself"):
        spread_with(laboratory, all_of(laboratory))


def test_what_was_stopped_is_explored_by_nobody(laboratory: Laboratory) -> None:
    """Messages that are still on their way find that it has ended."""
    sent: list[int] = []
    spread = Spread.begin(CORNER, BOUNDS, sent.append)
    spread.progress = lambda found: spread.stop()
    found = spread.go(lambda: explore_part(sent.pop(0), laboratory))
    assert (found.exhausted, found.stopped) == (False, "it was stopped by hand")
    done = ExplorationPart.objects.exclude(done_at=None).count()
    for pk in sent:
        explore_part(pk, laboratory)
    assert ExplorationPart.objects.exclude(done_at=None).count() == done


def test_only_reduction_can_be_spread() -> None:
    with pytest.raises(Unplayable, match="--policy all"):
        Spread.begin(CORNER, Bounds(policy="random"), lambda pk: None)
