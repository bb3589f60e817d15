"""The picture of an evening is geometry: where things go can be told without drawing them."""

import itertools
import uuid
from datetime import UTC, datetime, timedelta

import pytest

from sweeper import timeline
from sweeper.events import Event, Kind
from sweeper.findings import DOUBLE, FOREIGN, LEASE, STILL, TOGETHER, Finding, Span, find, harm
from sweeper.scale import GUTTER, RIGHT, Scale
from sweeper.shapes import WIDTH
from sweeper.telling import tell
from sweeper.timeline import draw
from sweeper.window import AFTER, BEFORE, LONGEST, Window, asked_for, focus

START = datetime(2026, 2, 11, 21, 50, tzinfo=UTC)


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def span(
    box: str, start: float, end: float | None, held: bool = True, lease: float | None = 120, lock: str = ""
) -> Span:
    until = at(start + lease) if held and lease else None
    finish = None if end is None else at(end)
    return Span(uuid.uuid4(), box, "finished", at(start), finish, at(start) if held else None, until, 2, lock)


def event(span: Span, seconds: float, kind: Kind, order: str = "", **data: object) -> Event:
    return Event(at(seconds), span.box, span.run, kind, order, data=data)


def keys(*lines: tuple[Span, float, Kind]) -> list[Event]:
    """Locks taken and let go, in the order in which it really happened; each moment by its box's own clock."""
    return [event(run, moment, kind, deleted=kind is Kind.RELEASED) for run, moment, kind in lines]


def met(first: Span, second: Span, when: float = 0) -> list[Event]:
    """The second took the lock while the first was at work, and outlived it."""
    lines = [(first, Kind.ACQUIRED), (second, Kind.ACQUIRED), (first, Kind.FINISHED), (second, Kind.FINISHED)]
    return keys(*((run, when + 5 * n, kind) for n, (run, kind) in enumerate(lines)))


def kinds(findings: list[Finding]) -> list[str]:
    return [finding.kind for finding in findings]


@pytest.fixture
def wednesday() -> tuple[list[Span], list[Event]]:
    """Box B settles rows 12 to 14, box A 13 and 14 again; B deletes A's key."""
    b, a, refused = span("box-b", 0, 140), span("box-a", 123, 143), span("box-a", 3, 3, held=False)
    events = [
        event(b, 0, Kind.ACQUIRED),
        event(b, 120, Kind.SETTLED, "WED-12", outcome="released"),
        event(a, 123, Kind.ACQUIRED),
        event(b, 130, Kind.SETTLED, "WED-13", outcome="released"),
        event(a, 133, Kind.SETTLED, "WED-13", outcome="released"),
        event(b, 140, Kind.SETTLED, "WED-14", outcome="released"),
        event(b, 140, Kind.RELEASED, released="unknown", deleted=True),
        event(a, 143, Kind.SETTLED, "WED-14", outcome="released"),
        event(a, 143, Kind.RELEASED, released="not_ours", deleted=False),
    ]
    return [b, a, refused], events


def test_the_findings_are_the_evening_in_order(wednesday):
    spans, events = wednesday
    found = find(spans, events, events)
    assert [(finding.kind, finding.at) for finding in found] == [
        (LEASE, at(120)),
        (TOGETHER, at(123)),
        (DOUBLE, at(133)),
        (FOREIGN, at(140)),
        (DOUBLE, at(143)),
    ]
    assert "two sweeps at once until 21:52:20" in found[1].text
    assert "WED-13 was settled twice: by box-b at 21:52:10 and box-a at 21:52:13" in found[2].text
    assert "gave back 2" in found[2].text


def test_a_calm_run_has_nothing_to_show_for_itself():
    calm = span("box-a", 0, 20)
    events = [
        event(calm, 0, Kind.ACQUIRED),
        event(calm, 10, Kind.SETTLED, "W-1", outcome="completed"),
        event(calm, 20, Kind.RELEASED, released="ours", deleted=True),
    ]
    assert find([calm], events, events) == []


def test_a_run_that_waited_for_the_lock_was_not_at_work_meanwhile():
    """It began while the other was at work, and took the lock after the other's release."""
    one, waited = span("box-a", 0, 20), span("box-b", 5, 40)
    lines = keys((one, 0, Kind.ACQUIRED), (one, 20, Kind.RELEASED), (waited, 20, Kind.ACQUIRED))
    assert find([one, waited], [], lines) == []


def test_a_clock_that_is_late_makes_no_two_sweeps_at_once():
    """Box A's clock is ten seconds behind: by the clocks the two overlap, and in truth they took turns."""
    b, a = span("box-b", 0, 20), span("box-a", 12, 32)
    lines = keys((b, 0, Kind.ACQUIRED), (b, 20, Kind.RELEASED), (a, 12, Kind.ACQUIRED), (a, 32, Kind.RELEASED))
    found = find([b, a], [], lines)
    assert found == []
    assert draw(Scale(at(-10), at(60)), [b, a], [], found).bands == []


def test_a_clock_that_is_early_hides_no_two_sweeps_at_once():
    """By the clocks box A began when box B was done; in truth B was still at work."""
    b, a = span("box-b", 0, 20), span("box-a", 25, 45)
    lines = keys((b, 0, Kind.ACQUIRED), (a, 25, Kind.ACQUIRED), (b, 20, Kind.RELEASED), (a, 45, Kind.RELEASED))
    assert set(kinds(find([b, a], [], lines))) == {TOGETHER, FOREIGN}


def test_two_that_are_both_still_at_work_have_no_end_yet():
    one, other = span("box-a", 0, None), span("box-b", 5, None)
    (finding,) = find([one, other], [], keys((one, 0, Kind.ACQUIRED), (other, 5, Kind.ACQUIRED)))
    assert (finding.kind, finding.until) == (TOGETHER, STILL)
    assert finding.text == "box-b went to work while box-a was still at it: two sweeps at once."
    assert finding.within(at(600), at(700))
    assert not finding.within(at(-60), at(0))


def test_rows_shared_on_purpose_are_nothing_to_point_at():
    one, other = span("box-a", 0, 10, lock="skip-locked"), span("box-b", 5, 15, lock="skip-locked")
    assert find([one, other], [], met(one, other)) == []
    one, other = span("box-a", 0, 10, lock="redis-naive"), span("box-b", 5, 15, lock="redis-naive")
    found = find([one, other], [], met(one, other))
    assert (kinds(found), harm(found)) == ([TOGETHER], False)


def test_rows_shared_on_purpose_are_pointed_at_when_one_was_settled_twice():
    one, other = span("box-a", 0, 10, lock="skip-locked"), span("box-b", 5, 15, lock="skip-locked")
    events = [event(run, 8, Kind.SETTLED, "W-1", outcome="released") for run in (one, other)]
    found = find([one, other], events, met(one, other))
    assert (kinds(found), harm(found)) == ([TOGETHER, DOUBLE], True)


def test_money_written_down_as_due_back_is_no_settle():
    """The order was settled once, by whoever abandoned it; the second look found its money."""
    one = span("box-a", 0, 20)
    events = [
        event(one, 5, Kind.SETTLED, "W-1", outcome="released"),
        event(one, 9, Kind.OWED, "W-1", amount_minor=1299),
    ]
    assert find([one], events, []) == []
    assert tell(events[1]) == "wrote down £12.99 as due back: somebody else had abandoned the order"
    marks = draw(Scale(at(-10), at(30)), [one], events).marks
    assert [(mark.kind, mark.often) for mark in marks] == [("settled", 1), ("owed", 1)]


@pytest.mark.parametrize(
    ("released", "deleted", "words"),
    [
        ("ours", True, "let the lock go"),
        ("ours", False, "let the lock go"),
        ("not_ours", False, "went to let the lock go and found that it was no longer its own"),
        ("unknown", True, "deleted the lock's key without looking whose it was"),
        ("unknown", False, "tried to let the lock go, and can't tell whether it did"),
    ],
)
def test_a_release_is_told_by_what_it_deleted(released, deleted, words):
    assert tell(event(span("box-a", 0, 1), 1, Kind.RELEASED, released=released, deleted=deleted)) == words


def test_every_kind_of_event_has_its_words():
    assert all(tell(event(span("box-a", 0, 1), 1, kind)) for kind in Kind)


def test_a_settle_known_from_its_row_alone_counts(wednesday):
    """The box died between COMMIT and its event: the settlement row knows better than the journal."""
    spans, events = wednesday
    found = find(spans, events[1:2], [], doubled={"WED-12"})
    assert [finding.order for finding in found if finding.kind == DOUBLE] == ["WED-12"]


def test_time_maps_onto_the_width_of_the_picture():
    scale = Scale(at(0), at(100))
    assert scale.x(at(0)) == GUTTER
    assert scale.x(at(100)) == WIDTH - RIGHT
    assert scale.x(at(50)) == pytest.approx((GUTTER + WIDTH - RIGHT) / 2)
    assert scale.clipped(at(-500)) == GUTTER


@pytest.mark.parametrize("length", [20, 90, 300, 3600, 6 * 3600])
def test_ticks_are_round_and_leave_room_for_their_words(length):
    ticks = Scale(at(-7), at(length - 7)).ticks()
    assert len(ticks) >= 2
    assert all(two.x - one.x >= 90 for one, two in itertools.pairwise(ticks))


def test_ticks_are_london_s_in_summer_too():
    july = datetime(2026, 7, 1, 20, 0, tzinfo=UTC)
    texts = [tick.text for tick in Scale(july, july + timedelta(hours=1)).ticks()]
    assert texts[0] == "21:00"


def test_runs_of_one_box_that_overlap_are_stacked_and_others_share_a_row():
    one, inside, later = span("box-b", 0, 140), span("box-b", 120, 150), span("box-b", 200, 210)
    rows = timeline.stack([one, inside, later])
    assert [rows[run.run] for run in (one, inside, later)] == [0, 1, 0]


def test_a_run_that_never_ended_keeps_its_row_for_ever():
    hung, later = span("box-b", 0, None), span("box-b", 5000, 5001)
    assert timeline.stack([hung, later]) == {hung.run: 0, later.run: 1}


def test_every_box_has_one_lane_and_lanes_do_not_overlap(wednesday):
    picture = draw(Scale(at(-10), at(200)), *wednesday)
    assert [lane.box for lane in picture.lanes] == ["box-a", "box-b"]
    first, second = picture.lanes
    assert first.y + first.height <= second.y
    assert picture.height >= second.y + second.height


def test_a_bar_runs_from_start_to_end_and_its_lease_to_its_expiry(wednesday):
    spans, events = wednesday
    scale = Scale(at(-10), at(200))
    bar = next(bar for bar in draw(scale, spans, events).bars if bar.run == spans[0].run)
    assert (bar.x, bar.x + bar.width) == (scale.x(at(0)), pytest.approx(scale.x(at(140))))
    assert bar.lease_over == scale.x(at(120))
    assert bar.lease_text == "lease until 21:52:00"


def test_a_lease_that_outlives_the_window_has_no_end_in_it(wednesday):
    bars = draw(Scale(at(-10), at(60)), *wednesday).bars
    assert bars[0].lease_over is None


def test_a_refused_run_has_no_bar(wednesday):
    spans, events = wednesday
    widths = {bar.run: bar.width for bar in draw(Scale(at(-10), at(200)), spans, events).bars}
    assert widths[spans[2].run] == 0


def test_the_stretch_of_two_sweeps_is_one_band(wednesday):
    scale = Scale(at(-10), at(200))
    spans, events = wednesday
    (band,) = draw(scale, spans, events, find(spans, events, events)).bands
    assert (band.x, band.x + band.width) == (scale.x(at(123)), pytest.approx(scale.x(at(140)), abs=0.02))


def test_stretches_that_touch_are_joined_into_one_band():
    stretches = [(0, 20), (10, 30), (30, 40), (50, 60), (70, 65)]
    findings = [Finding(TOGETHER, at(start), "", "", until=at(end)) for start, end in stretches]
    scale = Scale(at(-10), at(100))
    drawn = timeline.bands(scale, findings)
    assert [(band.x, round(band.end, 2)) for band in drawn] == [
        (scale.x(at(0)), scale.x(at(40))),
        (scale.x(at(50)), scale.x(at(60))),
    ]


def test_orders_settled_twice_are_marked_on_both_lanes_and_tied(wednesday):
    spans, events = wednesday
    picture = draw(Scale(at(-10), at(200)), spans, events, find(spans, events, events))
    doubles = [mark for mark in picture.marks if mark.kind == "double"]
    assert [mark.order for mark in doubles] == ["WED-13", "WED-13", "WED-14", "WED-14"]
    assert all(mark.often == 2 and mark.label for mark in doubles)
    assert [tie.order for tie in picture.ties] == ["WED-13", "WED-14"]
    assert all(tie.y1 != tie.y2 for tie in picture.ties)
    assert [mark.kind for mark in picture.marks if mark.kind in ("foreign", "settled")] == ["settled", "foreign"]


def test_what_was_asked_for_stands_out_and_the_rest_fades(wednesday):
    spans, events = wednesday
    picture = draw(Scale(at(-10), at(200)), spans, events, find(spans, events, events), orders={"WED-13"})
    assert {mark.order for mark in picture.marks if not mark.faded} == {"WED-13"}
    assert [tie.faded for tie in picture.ties] == [False, True]


def test_events_outside_the_window_or_of_unknown_runs_are_left_out(wednesday):
    spans, events = wednesday
    stranger = event(span("box-c", 0, 1), 130, Kind.SETTLED, "WED-99")
    picture = draw(Scale(at(-10), at(125)), spans, [*events, stranger])
    assert [mark.order for mark in picture.marks] == ["WED-12"]


def test_no_leader_line_crosses_another_note_s_words(wednesday):
    spans, events = wednesday
    notes = timeline.notes(Scale(at(-10), at(300)), find(spans, events, events))
    assert len(notes) == 5
    for note in notes:
        for lower in (other for other in notes if other.y > note.y and other.anchor == "start"):
            reach = lower.x + 12 + len(lower.text) * timeline.LETTER_OF_A_NOTE
            assert not lower.x < note.x < reach


def test_a_crowd_of_findings_is_cut_down_to_the_double_settles():
    runs = [span("box-a", n * 10, n * 10 + 15) for n in range(20)]
    events = [event(runs[0], 100 + n, Kind.SETTLED, "W-1", outcome="released") for n in range(2)]
    lines = [line for n, pair in enumerate(itertools.pairwise(runs)) for line in met(*pair, 12 * n)]
    found = find(runs, events, lines)
    assert kinds(found).count(TOGETHER) > timeline.NOTES_AT_MOST
    notes = timeline.notes(Scale(at(0), at(300)), found)
    assert [note.kind for note in notes] == [DOUBLE]


@pytest.mark.parametrize(
    ("references", "prefix"),
    [({"WED-01", "WED-02"}, "WED-"), ({"WED-01", "FRI-01"}, ""), ({"WED-01"}, ""), (set(), ""), ({"A", "B"}, "")],
)
def test_labels_leave_out_what_all_references_share(references, prefix):
    assert timeline.shared_prefix(references) == prefix


def test_labels_that_would_run_into_each_other_are_left_out():
    busy = span("box-a", 0, 100)
    events = [event(busy, n, Kind.SETTLED, f"W-{n:03}") for n in range(100)]
    labels = [mark for mark in draw(Scale(at(0), at(100)), [busy], events).marks if mark.label]
    assert 10 < len(labels) < 100
    assert all(two.x - one.x >= 3 * timeline.LETTER for one, two in itertools.pairwise(labels))


def test_one_looks_first_where_an_order_was_settled_again(wednesday):
    spans, events = wednesday
    quiet = span("box-b", 3000, 3001)
    window = focus([*spans, quiet], find(spans, events, events))
    assert window == Window(at(0) - BEFORE, at(143) + AFTER)


def test_where_nothing_went_wrong_one_sees_the_last_minutes():
    window = focus([span("box-a", n * 120, n * 120 + 1) for n in range(30)], [])
    assert window is not None
    assert window.end == at(29 * 120 + 1) + BEFORE
    assert window.length == timedelta(minutes=10)
    assert focus([], []) is None


@pytest.mark.parametrize(
    ("start", "end"),
    [
        ("", ""),
        ("yesterday", "today"),
        ("2026-02-11T22:00", "2026-02-11T21:00"),
        ("2026-02-11T22:00", ""),
        ("0001-01-01T00:00", "0001-01-02T00:00"),
    ],
)
def test_times_that_make_no_window_are_as_good_as_none(start, end):
    assert asked_for(start, end) is None


def test_a_window_names_its_zone_or_is_london_s():
    assert asked_for("2026-07-01T21:00", "2026-07-01T22:00") == asked_for(
        "2026-07-01T20:00+00:00", "2026-07-01T21:00Z"
    )


def test_a_window_of_a_year_is_cut_to_what_can_be_drawn():
    window = asked_for("2026-01-01T00:00", "2027-01-01T00:00")
    assert window is not None
    assert window.length == LONGEST


def test_closer_and_wider_keep_the_middle():
    window = Window(at(0), at(100))
    assert window.grown(0.5) == Window(at(25), at(75))
    assert window.grown(0.001).length == timedelta(seconds=20)
    assert window.moved(0.5) == Window(at(50), at(150))
