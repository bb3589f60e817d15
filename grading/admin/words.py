"""States and moments of handed-in work, in the words of its pages."""

from exercises.handed.checks import Outcome
from exercises.handed.exercise import there
from grading.deadline import in_zone as in_zone
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


def title_of(slug: str) -> str:
    found = there(slug)
    return found.title if found else slug


def state_of(attempt: Attempt) -> tuple[str, str]:
    """In words, and their tone."""
    judging = counted(attempt)
    return STATES[State(judging.state)] if judging else STATES[State.WAITING]
