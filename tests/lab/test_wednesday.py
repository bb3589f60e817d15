"""The Wednesday in virtual time: FACTS' table, to the second."""

import pytest

from exercises.lab.database import Database
from exercises.scenarios.boxes import Setting
from exercises.scenarios.replay import Outcome, play
from sweeper.events import Event, Kind
from sweeper.locks import LOCKS

KEPT_ALIVE = {"postgres-advisory", "etcd", "zookeeper"}
# lock: phantom copies, rows settled more than once, unguarded. All others: none and none.
UNGUARDED = {"none": (18, 14), **dict.fromkeys(("redis-naive", "redis-token", "slot", "redlock"), (2, 2))}


@pytest.fixture(scope="module")
def evening(database: Database) -> Outcome:
    """As the shop shipped it."""
    return play(database, Setting())


def told(outcome: Outcome) -> tuple[int, ...]:
    return tuple(outcome.verdict[name] for name in ("phantom", "lost", "double_settles", "foreign_deletes"))


def when(event: Event) -> str:
    return f"{event.at:%H:%M:%S}"


@pytest.mark.parametrize("lock", LOCKS)
def test_unguarded_it_comes_out_as_the_lesson_has_it(database: Database, lock: str) -> None:
    """Friday included: two copies are sold and shipped, and the shelf is short by what came back twice."""
    outcome = play(database, Setting(lock=lock))
    phantom, twice = UNGUARDED.get(lock, (0, 0))
    assert told(outcome) == (phantom, 0, twice, int(lock == "redis-naive"))
    assert outcome.errors == {}


@pytest.mark.parametrize("lock", LOCKS)
def test_guarded_nothing_is_made_up_under_any_lock(database: Database, lock: str) -> None:
    """Only the naive lock's plain DEL is as foreign as before."""
    assert told(play(database, Setting(lock=lock, settle="guarded"))) == (0, 0, 0, int(lock == "redis-naive"))


@pytest.mark.parametrize("settle", ["fenced", "fenced+guarded"])
@pytest.mark.parametrize("lock", ["slot", "etcd", "zookeeper"])
def test_fenced_the_stale_holder_is_refused(database: Database, lock: str, settle: str) -> None:
    """Where the lock lets a second run in at all, the first is told that it was overtaken, and by which token."""
    outcome = play(database, Setting(lock=lock, settle=settle))
    assert told(outcome) == (0, 0, 0, 0)
    stale = [event for event in outcome.events if event.kind is Kind.STALE]
    if lock in KEPT_ALIVE:
        assert stale == []
    else:
        assert [(when(event), event.token) for event in stale] == [("21:52:10", stale[0].token)]
        assert stale[0].data["highest"] == (stale[0].token or 0) + 1


class TestToTheSecond:
    def test_box_b_holds_the_key_and_a_is_refused(self, evening: Outcome) -> None:
        """At 21:50:00."""
        first = [event for event in evening.events if event.kind in (Kind.ACQUIRED, Kind.REFUSED)][:2]
        assert [(event.box, event.kind, when(event)) for event in first] == [
            ("box-b", Kind.ACQUIRED, "21:50:00"),
            ("box-a", Kind.REFUSED, "21:50:00"),
        ]

    def test_box_a_starts_at_21_52_on_the_two_rows_that_are_left(self, evening: Outcome) -> None:
        """B's twelfth answer is settled in the same second, before A reads its list."""
        listed = [event for event in evening.events if event.kind is Kind.LISTED]
        assert [(event.box, when(event), event.data["rows"]) for event in listed] == [
            ("box-b", "21:50:00", 14),
            ("box-a", "21:52:00", 2),
        ]
        assert listed[1].data["orders"] == ["W-13", "W-14"]

    def test_each_of_the_two_rows_is_settled_by_both_boxes(self, evening: Outcome) -> None:
        """Row 13 at 21:52:10, row 14 ten seconds later."""
        settled = [event for event in evening.events if event.kind is Kind.SETTLED and event.order >= "W-13"]
        assert sorted((event.order, event.box, when(event)) for event in settled) == [
            ("W-13", "box-a", "21:52:10"),
            ("W-13", "box-b", "21:52:10"),
            ("W-14", "box-a", "21:52:20"),
            ("W-14", "box-b", "21:52:20"),
        ]

    def test_b_deletes_the_key_that_is_a_s_by_then(self, evening: Outcome) -> None:
        """At 21:52:20, and nothing was logged: nothing had failed."""
        released = [event for event in evening.events if event.kind is Kind.RELEASED]
        assert [(event.box, when(event), event.data["deleted"]) for event in released] == [
            ("box-b", "21:52:20", True),
            ("box-a", "21:52:20", False),
        ]

    def test_it_is_the_same_to_the_letter_when_played_again(self, database: Database, evening: Outcome) -> None:
        """The journal, the choices and what they were among."""
        again = play(database, Setting())
        assert [event.as_json() for event in again.events] == [event.as_json() for event in evening.events]
        assert [taken.option.step.label for taken in again.taken] == [
            taken.option.step.label for taken in evening.taken
        ]


def test_skip_locked_the_boxes_share_the_rows(database: Database) -> None:
    """From 21:50:00, and are done by 21:51:10."""
    events = play(database, Setting(lock="skip-locked")).events
    settled = [event for event in events if event.kind is Kind.SETTLED]
    assert len({event.order for event in settled}) == len(settled) == 14
    assert {box: sum(event.box == box for event in settled) for box in ("box-a", "box-b")} == {"box-a": 7, "box-b": 7}
    assert when(settled[-1]) == "21:51:10"


@pytest.mark.parametrize(("lock", "known"), [("redis-token", "21:52:10"), ("redlock", "21:52:00")])
def test_who_stops_on_a_lost_lease_makes_nothing_up(database: Database, lock: str, known: str) -> None:
    """In calm weather: B knows by its own clock, before its next question or write. Redlock gives its lease up a
    little before the servers do, so its twelfth row is left to the next run as well.
    """
    outcome = play(database, Setting(lock=lock, stop_on_lost_lease=True))
    assert told(outcome) == (0, 0, 0, 0)
    assert [(event.box, when(event)) for event in outcome.events if event.kind is Kind.LOST] == [("box-b", known)]
