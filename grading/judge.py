"""One answer, its checks, its evidence. Whoever judges (a worker, a command, a test) comes through here."""

from collections.abc import Iterator, Sequence

from exercises.handed.answers import Answers
from exercises.handed.checks import Check, CouldNotDecide, Outcome, Result, Room, undecided
from exercises.handed.exercise import Exercise

POINTLESS = {Outcome.UNDECIDED, Outcome.INSTRUCTOR}


def judge(
    exercise: Exercise, answers: Answers, room: Room, checks: Sequence[Check] | None = None
) -> Iterator[tuple[Check, Result]]:
    """The result of each of these checks (or all), one after another. One that breaks off decides nothing, and the
    next one is asked.
    """
    for check in exercise.checks if checks is None else checks:
        room.say(check.title)
        yield check, decide(check, answers, room)


def decide(check: Check, answers: Answers, room: Room) -> Result:
    """What this check says; what it raises is the judge's own failure, and no verdict."""
    try:
        result = check.decide(answers, room)
    except CouldNotDecide as why:
        return undecided(str(why))
    except Exception as error:
        return undecided(f"The check broke off: {type(error).__name__}.")
    if not 0 <= result.points <= check.points or (result.points and result.outcome in POINTLESS):
        return undecided(f"The check gave {result.points} of {check.points} points with {result.outcome.value!r}.")
    return result
