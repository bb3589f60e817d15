"""States and moments of handed-in work, in the words of its pages."""

from datetime import datetime
from zoneinfo import ZoneInfo

from exercises.handed.checks import Outcome
from exercises.handed.exercise import there
from grading.grade import counted
from grading.models import Attempt, State

TONES = {
    Outcome.PASSED.value: "good",
    Outcome.FAILED.value: "bad",
    Outcome.UNDECIDED.value: "warn",
    Outcome.INSTRUCTOR.value: "warn",
}
STATES = {
    State.WAITING: ("waits for the judge", ""),
    State.RUNNING: ("is being judged", ""),
    State.DONE: ("judged", "good"),
    State.PARKED: ("waits for an instructor", "warn"),
}


def in_zone(moment: datetime, zone: str, seconds: bool = False) -> str:
    """`Fri 13 Mar 2026, 17:00 (Europe/London)`."""
    here = moment.astimezone(ZoneInfo(zone))
    clock = f"{here:%H:%M:%S}" if seconds else f"{here:%H:%M}"
    return f"{here:%a} {here.day} {here:%b %Y}, {clock} ({zone})"


def title_of(slug: str) -> str:
    found = there(slug)
    return found.title if found else slug


def state_of(attempt: Attempt) -> tuple[str, str]:
    """In words, and their tone."""
    judging = counted(attempt)
    return STATES[State(judging.state)] if judging else STATES[State.WAITING]
