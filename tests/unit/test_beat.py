"""Both boxes fire at every even minute of their own clock, like a crontab."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pytest_django import Settings

from marlow import celery as box
from marlow.clock import Dial, ScaledClock, real_now

START = datetime(2026, 2, 11, 21, 50, tzinfo=UTC)


@pytest.fixture
def dial(tmp_path: Path) -> Dial:
    dial = Dial(tmp_path / "clock.json")
    dial.set(START, 20)
    return dial


@pytest.fixture
def clock(dial: Dial, monkeypatch: pytest.MonkeyPatch) -> ScaledClock:
    clock = ScaledClock(dial)
    monkeypatch.setattr(box, "live", lambda: clock)
    return clock


def test_a_clock_started_on_a_mark_fires_at_once(dial: Dial, clock: ScaledClock) -> None:
    """21:50:00 is an even minute, and nobody has swept it."""
    booted = real_now() - timedelta(seconds=4)
    dial.start(ahead=1.0)
    due, wait = box.Aligned(120).is_due(booted)
    assert due
    assert wait == pytest.approx((120 - 1) / 20, abs=0.3)


def test_a_box_behind_the_mark_waits_for_it(dial: Dial, clock: ScaledClock) -> None:
    """Three seconds slow: its own 21:50:00 is two virtual seconds away."""
    booted = real_now() - timedelta(seconds=4)
    clock.offset = timedelta(seconds=-3)
    dial.start(ahead=1.0)
    due, wait = box.Aligned(120).is_due(booted)
    assert not due
    assert 0 < wait <= 2 / 20


def test_a_mark_fires_once(dial: Dial, clock: ScaledClock) -> None:
    """What was just fired is not due again before the next mark."""
    dial.start(ahead=1.0)
    due, wait = box.Aligned(120).is_due(real_now())
    assert not due
    assert wait <= 119 / 20


def test_an_offset_moves_the_marks(dial: Dial, clock: ScaledClock) -> None:
    """The reconcile job keeps out of the sweep's minute."""
    booted = real_now() - timedelta(seconds=4)
    dial.start(ahead=1.0)
    due, wait = box.Aligned(120, 60).is_due(booted)
    assert not due
    assert wait == pytest.approx(59 / 20, abs=0.3)


def test_beat_stands_still_with_the_clock(clock: ScaledClock, settings: Settings, tmp_path: Path) -> None:
    """Before the start and after the stop nothing is sent, and the box says that its beat is up."""
    settings.STATE_DIR, settings.MARLOW_BOX = tmp_path, "box-x"
    scheduler = box.ClockScheduler(box.app, lazy=True)
    sent: list[object] = []
    scheduler.apply_async = lambda *args, **kwargs: sent.append(args)
    assert 0 < scheduler.tick() < 0.1
    assert sent == []
    assert (tmp_path / "ready" / "box-x.beat").exists()


def test_each_box_has_its_own_queue_and_a_message_s_patience_exceeds_any_run() -> None:
    """On a shared queue either worker takes either message; a run outlived by its message is never started twice."""
    conf = box.app.conf
    assert conf.task_default_queue == conf.beat_schedule["sweep"]["options"]["queue"] == "box-a"
    assert conf.task_acks_late
    assert conf.broker_transport_options["visibility_timeout"] > conf.task_time_limit > conf.task_soft_time_limit
