"""A journal kept in a verdict, read back: what two real boxes did, and what nonsense it can hold."""

import itertools
import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from sweeper import refusals
from sweeper.admin.scene import Scene, kept_scene
from sweeper.events import Event, Kind
from sweeper.findings import DIED, DOUBLE, FOREIGN, LEASE, TOGETHER, Span
from sweeper.kept import CUT_OFF, events_of, raw_events, spans_of, with_ends
from sweeper.scale import RIGHT, Scale
from sweeper.shapes import WIDTH
from sweeper.timeline import draw
from sweeper.window import LONGEST, YEARS, closely
from tests import proofs

AT = datetime(2026, 12, 1, 20, 0, tzinfo=UTC)
GOOD = {"at": AT.isoformat(), "box": "box-a", "run": str(uuid.UUID(int=1)), "kind": "acquired"}


def at(seconds: float) -> datetime:
    return AT + timedelta(seconds=seconds)


def pause() -> Scene:
    cell = proofs.recorded("pause")
    return kept_scene(cell["seen"], cell["lock"])


def kill() -> Scene:
    cell = proofs.recorded("kill")
    return kept_scene(cell["seen"], cell["lock"])


def test_events_are_read_back_to_the_letter():
    seen = proofs.recorded("pause")["seen"]
    assert [event.as_json() for event in events_of(seen)] == seen["events"]


def test_a_pause_is_told_as_the_verdict_judged_it():
    shown, seen = pause(), proofs.recorded("pause")["seen"]
    kinds = [finding.kind for finding in shown.findings]
    assert kinds == [LEASE, TOGETHER, FOREIGN, DOUBLE]
    assert kinds.count(FOREIGN) == seen["foreign_deletes"]
    assert kinds.count(DOUBLE) == seen["double_settles"]
    assert kinds.count(TOGETHER) == seen["overlaps"]


def test_runs_are_found_again_in_their_events():
    (b, *_) = spans = pause().spans
    assert (b.box, b.state, b.rows, b.lock) == ("box-b", "finished", 1, "redis-naive")
    assert b.acquired is not None
    assert b.lease_until is not None
    assert 0.9 < (b.lease_until - b.acquired).total_seconds() < 1.1
    refused = [span for span in spans if span.state == "refused"]
    assert refused
    assert not any(span.held for span in refused)


def test_a_box_that_was_killed_meets_nobody_afterwards():
    """It never said that it ended, and the next one took the lock when its lease was over."""
    shown = kill()
    b = next(span for span in shown.spans if span.box == "box-b")
    assert (b.state, b.end) == (CUT_OFF, max(event.at for event in shown.events if event.run == b.run))
    (finding,) = shown.findings
    assert (finding.kind, finding.at, finding.runs) == (DIED, b.end, (b.run,))
    assert finding.text.endswith("box-b’s run was not heard of again.")


def test_a_run_that_goes_on_after_another_began_has_met_it():
    """Neither has an end on record; both are heard of after the second took the lock."""
    one, other = uuid.UUID(int=1), uuid.UUID(int=2)
    lines = [(one, Kind.ACQUIRED), (other, Kind.ACQUIRED), (one, Kind.ASKED), (other, Kind.ASKED)]
    events = [Event(at(n), f"box-{run.int}", run, kind).as_json() for n, (run, kind) in enumerate(lines)]
    assert [finding.kind for finding in kept_scene({"events": events}).findings] == [TOGETHER, DIED, DIED]


def test_an_end_is_added_only_where_there_is_none():
    events = pause().events
    assert with_ends(events) == events
    cut = events[:-1]
    (added,) = [event for event in with_ends(cut) if event not in cut]
    assert (added.run, added.kind) == (events[-1].run, Kind.DIED)


@pytest.mark.parametrize(
    "odd",
    [
        *(None, 7, "started", [], {}),
        *({key: value for key, value in GOOD.items() if key != missing} for missing in GOOD),
        {**GOOD, "at": "soon"},
        {**GOOD, "at": "2026-12-01T20:00:00"},
        {**GOOD, "at": "0001-01-01T00:00:00+23:59"},
        {**GOOD, "at": "9999-12-31T23:59:59+00:00"},
        {**GOOD, "at": 7},
        {**GOOD, "box": None},
        {**GOOD, "run": "nobody"},
        {**GOOD, "run": 7},
        {**GOOD, "kind": "exploded"},
        {**GOOD, "kind": []},
        {**GOOD, "order": 7},
        {**GOOD, "answer": {}},
        {**GOOD, "deadline": "later"},
        {**GOOD, "deadline": 7},
        {**GOOD, "deadline": "2026-12-01T20:00:00"},
        {**GOOD, "deadline": "9999-12-31T23:59:59+00:00"},
        {**GOOD, "kind": "listed", "rows": "many"},
        {**GOOD, "kind": "finished", "settled": []},
        {**GOOD, "kind": "settling", "outcome": []},
        {**GOOD, "kind": "owed", "amount_minor": "much"},
    ],
)
def test_an_event_that_cannot_be_read_or_told_is_left_out(odd: Any):
    shown = kept_scene({"events": [odd, GOOD]})
    assert [event.as_json() for event in shown.events] == [GOOD]
    assert len(shown.lines()) == 1
    assert draw(Scale(at(-1), at(1)), shown.spans, shown.events).bars


@pytest.mark.parametrize("verdict", [None, [], "x", 7, {}, {"events": None}, {"events": {}}, {"error": "Lost"}])
def test_a_verdict_without_events_has_no_scene(verdict: Any):
    assert raw_events(verdict) == []
    assert kept_scene(verdict) == Scene([], [], [], kept=True)
    assert spans_of([]) == []


def test_events_of_all_times_can_be_drawn():
    """From one end of time to the other: cut to what a picture can hold."""
    ends = [{**GOOD, "at": f"{year}-06-01T00:00:00+00:00"} for year in (YEARS[0], YEARS[-1])]
    shown = kept_scene({"events": ends})
    window = closely(shown.spans)
    assert window.length <= LONGEST * 1.21
    assert shown.picture(window).bars


def test_a_window_fits_closely_about_runs_that_take_a_second():
    shown = pause()
    window = closely(shown.spans)
    assert window.start < min(span.start for span in shown.spans)
    assert window.end > max(span.end for span in shown.spans if span.end)
    assert window.length < timedelta(seconds=3)
    instant = Span(uuid.UUID(int=1), "box-a", "refused", AT, AT)
    assert closely([instant]).length == timedelta(seconds=1.2)


@pytest.mark.parametrize("length", [1.2, 2, 3.3, 5, 9, 14])
def test_ticks_of_a_close_window_are_round_tenths_with_room_for_their_words(length: float):
    drawn = Scale(at(-0.07), at(length - 0.07)).ticks()
    assert len(drawn) >= 4
    assert all(two.x - one.x >= 90 for one, two in itertools.pairwise(drawn))
    assert len({tick.text for tick in drawn}) == len(drawn)
    assert drawn[0].text in ("20:00:00", "20:00:00.0")


def test_times_that_share_a_second_are_told_apart():
    shown = pause()
    picture = shown.picture(closely(shown.spans))
    settles = [mark.title[:10] for mark in picture.marks if mark.kind == "double"]
    assert len(set(settles)) == 2
    assert all(title[8] == "." for title in settles)
    (double,) = [finding for finding in shown.findings if finding.kind == DOUBLE]
    assert all(f"at {time}" in double.text for time in settles)
    acquired = next(line for line in shown.lines() if line.event.kind is Kind.ACQUIRED)
    until = spans_of(shown.events)[0].lease_until
    assert until is not None
    assert acquired.text == f"took the lock, until {until:%H:%M:%S}.{until.microsecond // 100_000}"


def test_a_long_window_tells_whole_seconds():
    assert not Scale(at(0), at(20)).tenths
    assert Scale(at(0), at(19)).tenths


def test_nothing_of_the_picture_of_a_cell_is_beside_the_paper():
    for shown in (pause(), kill()):
        picture = shown.picture(closely(shown.spans))
        places = [place.x for places in (picture.marks, picture.notes, picture.ticks) for place in places]
        assert all(0 < x <= WIDTH - RIGHT for x in places)
        assert {mark.kind for mark in picture.marks} >= {"refused", "asked", "answered"}


def knocks(*seconds: float, then: float | None = None) -> tuple[list[Event], dict[uuid.UUID, float]]:
    """Refused runs of one row, and one that took the lock."""
    lines = [(moment, Kind.REFUSED) for moment in seconds] + ([(then, Kind.ACQUIRED)] if then is not None else [])
    events = [Event(at(moment), "box-a", uuid.UUID(int=n), kind) for n, (moment, kind) in enumerate(lines)]
    return events, {event.run: 0.0 for event in events}


@pytest.mark.parametrize(
    ("seconds", "then", "beside", "above"),
    [
        ((0,), None, ["refused"], []),
        ((0,), 9, ["refused"], []),
        ((0,), 2, [], ["refused"]),
        ((0, 9), None, ["refused", "refused"], []),
        ((0, 3, 6, 9), 12, [], ["refused 4 times"]),
        ((0, 3, 20), None, ["refused"], ["refused twice"]),
    ],
)
def test_many_knocks_in_a_row_do_not_write_over_each_other(seconds, then, beside, above):
    """Ten units a second; the word needs fifty-six."""
    events, rows = knocks(*seconds, then=then)
    found = refusals.words(events, rows, lambda moment: (moment - AT).total_seconds() * 10).values()
    assert [words.beside for words in found if words.beside] == beside
    assert [words.above for words in found if words.above] == above


def test_knocks_of_other_rows_are_no_neighbours():
    events, rows = knocks(0, 1)
    rows[events[1].run] = 88.0
    found = refusals.words(events, rows, lambda moment: (moment - AT).total_seconds() * 10)
    assert [words.beside for words in found.values()] == ["refused", "refused"]
