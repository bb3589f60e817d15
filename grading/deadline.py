"""Until when, and how late. Moments are UTC; days are added on the calendar of the class's zone, so that a night in
which the clocks change charges nobody a day.
"""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from grading.models import Assignment, Extension


def days_later(moment: datetime, days: int, zone: str) -> datetime:
    """The same time of day so many days later, in that zone."""
    return (moment.astimezone(ZoneInfo(zone)) + timedelta(days=days)).astimezone(UTC)


def in_zone(moment: datetime, zone: str, seconds: bool = False) -> str:
    """`Fri 13 Mar 2026, 17:00 (Europe/London)`."""
    here = moment.astimezone(ZoneInfo(zone))
    clock = f"{here:%H:%M:%S}" if seconds else f"{here:%H:%M}"
    return f"{here:%a} {here.day} {here:%b %Y}, {clock} ({zone})"


def due_for(assignment: Assignment, extension: Extension | None) -> datetime:
    """The deadline of one student."""
    return days_later(assignment.due_at, extension.days if extension else 0, assignment.of.zone)


def closes_for(assignment: Assignment, extension: Extension | None) -> datetime:
    """The last moment at which anything is taken from them, late or not."""
    days = assignment.late_days + (extension.days if extension else 0)
    return days_later(assignment.due_at, days, assignment.of.zone)


def days_late(due: datetime, received: datetime, zone: str) -> int:
    """Days begun after the deadline; the deadline's own moment is in time."""
    days = max(0, (received - due).days - 1)
    while received > days_later(due, days, zone):
        days += 1
    return days
