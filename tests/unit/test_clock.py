"""The one place where time is read and divided."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from marlow.clock import ClockError, Dial, RealClock, ScaledClock, real_now

START = datetime(2026, 2, 11, 21, 50, tzinfo=UTC)


@pytest.fixture
def dial(tmp_path: Path) -> Dial:
    dial = Dial(tmp_path / "clock.json")
    dial.set(START, 20)
    return dial


def test_a_clock_that_is_not_started_stands_at_its_epoch(dial: Dial) -> None:
    """Boxes may be up long before the evening begins."""
    clock = ScaledClock(dial)
    assert (clock.now(), clock.ticking()) == (START, False)


def test_a_started_clock_runs_at_its_scale_from_ahead_of_the_epoch(dial: Dial) -> None:
    """Twenty virtual seconds a real one, from one second past the mark."""
    before = real_now()
    dial.start(ahead=1.0)
    clock = ScaledClock(dial)
    later = real_now() + timedelta(seconds=3)
    passed = (clock.at(later) - START).total_seconds()
    assert passed == pytest.approx(1 + 20 * (later - before).total_seconds(), abs=2)
    assert clock.ticking()


def test_a_moment_before_the_start_maps_to_the_epoch(dial: Dial) -> None:
    """What a beat did before the clock ran happened, virtually, at the epoch."""
    earlier = real_now() - timedelta(seconds=5)
    dial.start(ahead=1.0)
    assert ScaledClock(dial).at(earlier) == START


def test_a_stopped_clock_stands_where_it_was_stopped(dial: Dial) -> None:
    """After the verdict nothing moves any more."""
    dial.start()
    dial.stop()
    clock = ScaledClock(dial)
    first = clock.now()
    assert clock.now() == first >= START
    assert not clock.ticking()


def test_every_duration_is_divided_by_the_scale_once(dial: Dial) -> None:
    """Two virtual minutes are six real seconds at twenty times the speed."""
    assert ScaledClock(dial).real(120) == 6
    assert RealClock().real(120) == 120


def test_a_box_s_own_error_shifts_what_it_reads_and_nothing_else(dial: Dial) -> None:
    """Three seconds behind, at the same speed."""
    slow = ScaledClock(dial, offset=-3)
    assert slow.now() == START - timedelta(seconds=3)
    assert slow.real(120) == 6
    assert abs(RealClock(offset=60).now() - real_now() - timedelta(seconds=60)) < timedelta(seconds=1)


def test_all_readers_of_a_dial_see_it_set_anew(dial: Dial) -> None:
    """Another process moves the hands; a reader that has looked before sees it."""
    reader = ScaledClock(Dial(dial.path))
    assert reader.now() == START
    dial.set(START + timedelta(days=2), 20)
    assert reader.now() == START + timedelta(days=2)


def test_a_dial_is_replaced_whole(dial: Dial) -> None:
    """Nobody reads half a face: the file is valid at any moment and no draft is left."""
    dial.start()
    assert json.loads(dial.path.read_text())["scale"] == 20
    assert [path.name for path in dial.path.parent.iterdir()] == ["clock.json"]


def test_a_missing_dial_says_what_to_do(tmp_path: Path) -> None:
    """Not a bare FileNotFoundError."""
    with pytest.raises(ClockError, match="MARLOW_TIME_SCALE=1"):
        ScaledClock(Dial(tmp_path / "none.json")).now()
