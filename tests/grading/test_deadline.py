"""Days are added on the calendar of the class's zone; lateness is counted from what the server received."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from grading.deadline import closes_for, days_late, days_later, due_for
from grading.models import Assignment, Class, Extension

LONDON = "Europe/London"
SECOND = timedelta(seconds=1)


def london(day: int, hour: int, minute: int = 0) -> datetime:
    """A moment in March 2026; the clocks go forward on the 29th."""
    return datetime(2026, 3, day, hour, minute, tzinfo=ZoneInfo(LONDON))


def test_the_deadlines_own_moment_is_in_time():
    due = london(13, 17)
    assert days_late(due, due, LONDON) == 0
    assert days_late(due, due - 40 * timedelta(days=1), LONDON) == 0


def test_each_day_begun_is_charged():
    due = london(13, 17)
    assert days_late(due, due + SECOND, LONDON) == 1
    assert days_late(due, london(14, 17), LONDON) == 1
    assert days_late(due, london(14, 17) + SECOND, LONDON) == 2
    assert days_late(due, london(20, 17), LONDON) == 7


def test_a_day_of_23_hours_is_one_day():
    """Due on Saturday at 17:00; Sunday at 17:00 is 23 hours later, and Monday's 16:30 is the second day still."""
    due = london(28, 17)
    assert days_later(due, 1, LONDON) - due == timedelta(hours=23)
    assert days_late(due, london(29, 17), LONDON) == 1
    assert days_late(due, london(29, 17) + SECOND, LONDON) == 2
    assert days_late(due, london(30, 16, 30), LONDON) == 2


def test_the_night_in_which_the_clocks_go_back_charges_nobody_a_day():
    """Due on Saturday 24 October 2026 at 17:00 in London; Sunday at 17:00 there is 25 hours later."""
    due = datetime(2026, 10, 24, 16, 0, tzinfo=UTC)
    assert days_late(due, due + timedelta(hours=25), LONDON) == 1
    assert days_late(due, due + timedelta(hours=25) + SECOND, LONDON) == 2


def test_a_zone_without_summer_time_has_days_of_24_hours():
    due = datetime(2026, 3, 28, 17, 0, tzinfo=UTC)
    assert days_late(due, due + timedelta(hours=24), "Asia/Tokyo") == 1
    assert days_late(due, due + timedelta(hours=24) + SECOND, "Asia/Tokyo") == 2


def test_a_deadline_in_the_hour_that_is_left_out_falls_after_it():
    assert days_later(london(28, 1, 30), 1, LONDON) == datetime(2026, 3, 29, 1, 30, tzinfo=UTC)


@pytest.mark.parametrize("days", [0, 1, 2])
def test_an_extension_over_the_change_ends_at_the_same_time_of_day(days):
    assignment = Assignment(of=Class(zone=LONDON), due_at=london(28, 17), late_days=1)
    extension = Extension(assignment=assignment, days=days)
    later = timedelta(hours=[0, 23, 47][days])
    assert due_for(assignment, extension) == london(28, 17).astimezone(UTC) + later
    assert due_for(assignment, extension).tzinfo is UTC
    assert closes_for(assignment, extension).astimezone(ZoneInfo(LONDON)).hour == 17
    assert closes_for(assignment, extension) == days_later(london(28, 17), days + 1, LONDON)
