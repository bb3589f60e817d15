"""What the oracles read from a journal."""

import uuid
from datetime import timedelta

from sweeper.events import Event, Kind
from sweeper.verdict import foreign_deletes, overlaps
from tests.fakes import WEDNESDAY

B1, A2, B2 = uuid.UUID(int=1), uuid.UUID(int=2), uuid.UUID(int=3)
BOXES = {B1: "box-b", A2: "box-a", B2: "box-b"}


def journal(*lines: tuple[uuid.UUID, Kind] | tuple[uuid.UUID, Kind, bool]) -> list[Event]:
    return [
        Event(WEDNESDAY + timedelta(seconds=at), BOXES[run], run, kind, data={"deleted": bool(deleted)})
        for at, (run, kind, *deleted) in enumerate(lines)
    ]


def test_a_delete_of_the_next_run_s_key_is_foreign() -> None:
    """B's key had expired, and the key it removed was A's."""
    events = journal((B1, Kind.ACQUIRED), (A2, Kind.ACQUIRED), (B1, Kind.RELEASED, True), (A2, Kind.RELEASED))
    assert [event.run for event in foreign_deletes(events)] == [B1]


def test_a_delete_of_the_same_box_s_next_run_is_foreign_too() -> None:
    """A hostname can't tell them apart; a run's id can."""
    events = journal((B1, Kind.ACQUIRED), (B2, Kind.ACQUIRED), (B1, Kind.RELEASED, True))
    assert len(foreign_deletes(events)) == 1


def test_a_delete_of_one_s_own_key_is_not_foreign() -> None:
    """Nobody came in between."""
    events = journal((B1, Kind.ACQUIRED), (B1, Kind.RELEASED, True), (A2, Kind.ACQUIRED), (A2, Kind.RELEASED, True))
    assert foreign_deletes(events) == []


def test_a_delete_that_removed_nothing_is_not_foreign() -> None:
    """The compare-and-delete that found another value did nothing."""
    events = journal((B1, Kind.ACQUIRED), (A2, Kind.ACQUIRED), (B1, Kind.RELEASED))
    assert foreign_deletes(events) == []


def test_runs_overlap_when_the_second_acquires_before_the_first_ends() -> None:
    """As pairs: three at once are three pairs."""
    events = journal((B1, Kind.ACQUIRED), (A2, Kind.ACQUIRED), (B2, Kind.ACQUIRED), (B1, Kind.FINISHED))
    assert overlaps(events) == [(B1, A2), (B1, B2), (A2, B2)]


def test_runs_one_after_the_other_do_not_overlap() -> None:
    """Neither do refused ones."""
    events = journal((B1, Kind.ACQUIRED), (A2, Kind.REFUSED), (B1, Kind.FINISHED), (B2, Kind.ACQUIRED))
    assert overlaps(events) == []
