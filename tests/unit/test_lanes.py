"""A picture by steps, and the servers' lanes below the boxes'."""

import itertools
import uuid
from datetime import timedelta
from typing import Any

import pytest

from sweeper import timeline
from sweeper.calls import COMMIT, QUESTION, RESUMED, STATEMENT, Call, held
from sweeper.events import Event, Kind
from sweeper.findings import Span
from sweeper.lanes import CROWDED, LONGEST, Below
from sweeper.scale import GUTTER, RIGHT, Scale, Steps, moment_of
from sweeper.shapes import WIDTH, Picture
from sweeper.timeline import draw
from tests.unit.test_timeline import START, at, event, span, wednesday

__all__ = ["wednesday"]

TIMES = [at(0), at(0), at(120), at(120), at(120)]


def call(number: int, run: Span, server: str = "postgres", kind: str = STATEMENT, **more: Any) -> Call:
    words = more.pop("words", f"step {number}")
    moment = more.pop("moment", moment_of(number))
    return Call(number, moment, f"{run.box}/1", run.box, run.run, server, kind, words, words, **more)


def test_a_picture_by_steps_has_a_place_for_each_step_whatever_the_time():
    scale = Steps(times=TIMES)
    places = [scale.x(moment_of(number)) for number in range(7)]
    assert places[0] == GUTTER
    assert places[6] == WIDTH - RIGHT
    assert {round(two - one, 1) for one, two in itertools.pairwise(places)} == {round(scale.unit, 1)}
    assert [tick.text for tick in scale.ticks()] == ["1", "2", "3", "4", "5"]


def test_a_picture_by_steps_says_where_time_goes_on():
    scale = Steps(times=[*TIMES, at(120) + timedelta(milliseconds=1)])
    assert [moment.text for moment in scale.moments()] == ["21:50:00", "21:52:00", "21:52:00.001"]
    assert scale.moments()[1].x == scale.x(moment_of(2.5))


def test_many_steps_have_fewer_ticks_with_room_for_their_numbers():
    ticks = Steps(times=[at(0)] * 300).ticks()
    assert [tick.text for tick in ticks[:3]] == ["1", "10", "20"]
    assert all(two.x - one.x >= 20 for one, two in itertools.pairwise(ticks))


def test_a_deadline_stands_between_the_steps_it_lies_between_and_is_told_as_a_time():
    scale = Steps(times=TIMES)
    early, late, never = scale.after(at(60)), scale.after(at(61)), scale.after(at(400))
    assert moment_of(2) < early < late < moment_of(2.5)
    assert scale.clock(early) == "21:51:00.0"
    assert scale.after(at(60)) == early
    assert not scale.shows(never)


@pytest.mark.parametrize(
    ("place", "words"),
    [(0, "before step 1"), (1, "step 1 (21:50:00.0)"), (3.2, "step 3 (21:52:00.0)"), (6, "after the last step")],
)
def test_a_place_is_told_by_its_step_and_the_time_of_that(place, words):
    assert Steps(times=TIMES).clock(moment_of(place)) == words


def holders(events: list[Event], lock: str = "redis-naive") -> list[tuple[str, float, float | None, str]]:
    deadlines = [event.at + timedelta(seconds=120) if event.data.get("until") else None for event in events]
    stretches = held(events, deadlines, lock)
    return [
        (
            stretch.box,
            (stretch.start - START).total_seconds(),
            None if stretch.over is None else (stretch.over - START).total_seconds(),
            stretch.taken_by,
        )
        for stretch in stretches
    ]


def test_the_key_is_whose_the_server_had_it(wednesday):
    """Box B's runs out; box A's is deleted by box B; and what box A then finds deletes nothing."""
    _, events = wednesday
    lasting = [Event(e.at, e.box, e.run, e.kind, e.order, data={**e.data, "until": True}) for e in events]
    assert holders(lasting) == [("box-b", 0, 120, ""), ("box-a", 123, 140, "box-b")]


def test_a_key_is_let_go_by_its_own_run_and_the_next_begins():
    one, other = span("box-a", 0, 20), span("box-b", 30, 50)
    events = [
        event(one, 0, Kind.ACQUIRED),
        event(one, 20, Kind.RELEASED, released="ours", deleted=False),
        event(other, 30, Kind.ACQUIRED),
    ]
    assert holders(events) == [("box-a", 0, 20, ""), ("box-b", 30, None, "")]
    assert holders(events, "none") == holders(events, "skip-locked") == []


def test_a_key_that_was_lost_is_the_next_one_s_from_then_on():
    """A failover: the second was told yes while the first had its lease."""
    one, other = span("box-a", 0, 20), span("box-b", 10, 30)
    events = [event(one, 0, Kind.ACQUIRED, until=True), event(other, 10, Kind.ACQUIRED, until=True)]
    assert holders(events) == [("box-a", 0, 10, ""), ("box-b", 10, 130, "")]


def test_a_release_that_found_another_s_key_ends_nothing():
    one, other = span("box-a", 0, 20), span("box-b", 10, 30)
    events = [
        event(one, 0, Kind.ACQUIRED, until=True),
        event(other, 121, Kind.ACQUIRED, until=True),
        event(one, 130, Kind.RELEASED, released="not_ours", deleted=False),
    ]
    assert holders(events)[1] == ("box-b", 121, 241, "")


def drawn(calls: list[Call], spans: list[Span], events: list[Event], steps: int = 0) -> Picture:
    scale = Steps(times=[at(0)] * steps) if steps else Scale(at(-10), at(200))
    deadlines = [event.at + timedelta(seconds=120) for event in events]
    return draw(scale, spans, events, below=Below(calls, held(events, deadlines, "redis-naive")))


def test_the_servers_that_were_asked_stand_below_the_boxes_and_the_lock_s_first(wednesday):
    spans, events = wednesday
    asked = [
        call(1, spans[0], "provider", QUESTION, moment=at(0)),
        call(2, spans[0], "redis", QUESTION, moment=at(0)),
        call(3, spans[0], moment=at(10)),
    ]
    picture = drawn(asked, spans, events)
    assert [lane.name for lane in picture.servers] == ["Redis", "Postgres", "Provider"]
    tops = [lane.y for lane in (*picture.lanes, *picture.servers)]
    assert tops == sorted(tops)
    assert picture.servers[0].y > picture.foot
    assert picture.height >= picture.ruled == picture.servers[-1].y + picture.servers[-1].height
    assert [(key.ending, key.words) for key in picture.keys] == [("expired", ""), ("deleted", "deleted by box-b")]
    assert all(picture.servers[0].y < key.y < picture.servers[1].y for key in picture.keys)


def test_a_picture_of_which_no_steps_are_known_has_no_servers(wednesday):
    spans, events = wednesday
    picture = draw(Scale(at(-10), at(200)), spans, events)
    assert (picture.servers, picture.trips, picture.keys) == ([], [], [])
    assert picture.ruled == picture.height


def test_a_lock_without_a_server_of_its_own_is_held_in_postgres(wednesday):
    spans, events = wednesday
    picture = drawn([call(1, spans[0], moment=at(0))], spans, events)
    assert [lane.name for lane in picture.servers] == ["Postgres"]
    assert picture.keys[0].text == "box-b’s lock, until 21:52:00"


def test_a_question_is_tied_to_the_run_that_asked(wednesday):
    spans, events = wednesday
    picture = drawn([call(1, run, moment=at(130), kind=COMMIT) for run in spans[:2]], spans, events)
    feet = {bar.run: bar.y + timeline.BAR_TOP + timeline.BAR for bar in picture.bars}
    assert [trip.top for trip in picture.trips] == [feet[run.run] for run in spans[:2]]
    assert [trip.lane for trip in picture.trips] == [2, 1]
    assert picture.trips[1].y < picture.trips[0].y, "each row of runs has a line of its own, in their order"


def test_of_many_statements_only_those_that_end_something_are_drawn_by_the_clock(wednesday):
    spans, events = wednesday
    many = [
        call(number, spans[0], moment=at(number), kind=COMMIT if number % 10 == 0 else STATEMENT)
        for number in range(1, 41)
    ]
    assert [trip.kind for trip in drawn(many, spans, events).trips] == [COMMIT] * 4
    assert len(drawn(many[:20], spans, events).trips) == 20
    locking = [*many, call(41, spans[0], moment=at(41), takes_lock=True)]
    assert len(drawn(locking, spans, events).trips) == 5


def test_a_statement_that_waited_has_a_bar_from_its_asking_to_its_going_on():
    one = Span(uuid.uuid4(), "box-a", "finished", moment_of(0.2), moment_of(4.2), moment_of(0.3))
    asked = [call(1, one), call(2, one, kind=COMMIT), call(3, one, kind=RESUMED, since=1), call(4, one)]
    picture = drawn(asked, [one], [], steps=4)
    scale = Steps(times=[at(0)] * 4)
    (wait,) = picture.waits
    assert (wait.x, wait.x + wait.width) == (scale.x(moment_of(1)), pytest.approx(scale.x(moment_of(3))))
    assert [label.text for label in picture.labels] == ["step 1", "step 2", "step 3", "step 4"]


def test_a_crowd_of_steps_has_no_words_below():
    one = Span(uuid.uuid4(), "box-a", "finished", moment_of(0.2), moment_of(60), moment_of(0.3))
    few = [call(number, one, words="x" * 90) for number in range(1, CROWDED + 1)]
    picture = drawn(few, [one], [], steps=CROWDED)
    assert {len(label.text) for label in picture.labels} == {LONGEST + 1}
    crowd = [*few, call(CROWDED + 1, one)]
    assert drawn(crowd, [one], [], steps=CROWDED + 1).labels == []
