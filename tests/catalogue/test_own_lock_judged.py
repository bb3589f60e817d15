"""Locks that are handed in, in their sandbox and under every order: what is found, and what is said of it."""

from collections.abc import Callable
from contextlib import nullcontext

import pytest

from exercises.catalogue.own_lock.answers import Answers
from exercises.catalogue.own_lock.checks import DEAD, EXCLUDES, HONEST, OWN
from exercises.catalogue.own_lock.lock import NAME
from exercises.handed.answers import read
from exercises.handed.checks import Check, CouldNotDecide, Outcome, Result
from exercises.handed.exercise import Known, exercise
from exercises.lab.database import Database
from exercises.scenarios.boxes import ALL_LOCKS
from grading.judge import decide, judge
from grading.room import JudgesRoom
from tests.lab.conftest import database

__all__ = ["database"]
KNOWN = {known.name: known for known in exercise("own-lock").known()}
RIGHT = KNOWN["right"].answers["source"]
Judge = Callable[..., Result]


@pytest.fixture
def room(database: Database) -> JudgesRoom:
    return JudgesRoom(lambda: nullcontext(database))


@pytest.mark.parametrize("known", KNOWN.values(), ids=KNOWN)
def test_known_answers_get_their_verdicts(known: Known, room: JudgesRoom) -> None:
    found = exercise("own-lock")
    given = {check.name: result for check, result in judge(found, read(found.answers, known.answers), room)}
    assert {name: (result.outcome.value, result.points) for name, result in given.items()} == known.expected
    assert NAME not in ALL_LOCKS


def decided(check: Check, source: str, room: JudgesRoom, claim: str = "nothing") -> Result:
    return decide(check, read(Answers, {"source": source, "cannot_prevent": claim}), room)


def test_the_same_lock_has_the_same_evidence_twice(room: JudgesRoom) -> None:
    for name, check in (("wrong_looked_before", EXCLUDES), ("wrong_compared_here", OWN), ("right", HONEST)):
        answers = KNOWN[name].answers
        once, again = (decided(check, answers["source"], room, answers["cannot_prevent"]) for _ in range(2))
        assert once.evidence == again.evidence
        assert once.evidence.schedule
        assert once.evidence.verdict
        assert once.evidence.steps


def test_the_order_that_is_shown_is_one_in_which_the_other_key_is_deleted(room: JudgesRoom) -> None:
    shown = decided(OWN, KNOWN["wrong_compared_here"].answers["source"], room).evidence
    asked = [step["step"] for step in shown.steps if "redis" in step["step"]]
    assert asked[-1].startswith("redis DEL")
    assert [event["kind"] for event in shown.verdict["events"]].count("acquired") >= 2  # type: ignore[index]


@pytest.mark.parametrize(
    ("acquire", "says"),
    [
        ("while not self.port.set_if_absent(name, 'x', 9): pass", "more than 20 questions in one call"),
        ("return self.port.lock(name)", "Your lock asked 'lock': a port has set_if_absent"),
        ("return self.port.set_if_absent(name, 5, 9)", "with a value that is none"),
        ("return self.port.set_if_absent(name, 'x', 0)", "with an expiry that is none"),
        ("return self.port.set_if_absent(name, 'x', 10**9)", "a day at the most"),
        ("return 'yes'", "Your acquire returned 'yes': return True or False."),
        ("return 1 / 0", "Your program raised ZeroDivisionError in line 5: division by zero."),
        ("while True: pass", "used up its 2 s of CPU time"),
    ],
)
def test_a_lock_that_fails_of_itself_is_told_so(acquire: str, says: str, room: JudgesRoom) -> None:
    source = "class Lock:\n  def __init__(self, port): self.port = port\n  def release(self, name): pass\n"
    source += f"  def acquire(self, name, milliseconds):\n    {acquire}\n"
    for check in (EXCLUDES, DEAD):
        result = decided(check, source, room)
        assert (result.outcome, result.points) == (Outcome.FAILED, 0)
        assert says in result.sentence


def test_where_there_is_no_sandbox_nothing_is_decided(room: JudgesRoom, monkeypatch: pytest.MonkeyPatch) -> None:
    def none(source: str, name: str) -> None:
        raise CouldNotDecide("There is no sandbox here.")

    monkeypatch.setattr(JudgesRoom, "python", lambda self, source, name: none(source, name))
    for check in exercise("own-lock").checks:
        result = decided(check, RIGHT, room)
        assert (result.outcome, result.sentence) == (Outcome.UNDECIDED, "There is no sandbox here.")


def test_a_sandbox_that_ends_in_the_middle_of_an_order_decides_nothing(
    room: JudgesRoom, monkeypatch: pytest.MonkeyPatch
) -> None:
    from grading.sandbox.python import Lane

    calls = iter(range(10**6))
    real = Lane.call

    def breaking(self: Lane, *given: object) -> object:
        if next(calls) == 7:
            raise CouldNotDecide("The sandbox went away.")
        return real(self, *given)  # type: ignore[arg-type]

    monkeypatch.setattr(Lane, "call", breaking)
    result = decided(EXCLUDES, RIGHT, room)
    assert (result.outcome, result.sentence) == (Outcome.UNDECIDED, "The sandbox went away.")


def test_a_claim_that_its_own_lock_does_not_show_is_not_honest(room: JudgesRoom) -> None:
    result = decided(HONEST, RIGHT, room, "stuck-after-a-crash")
    assert result.outcome is Outcome.FAILED
    assert "never shows it" in result.sentence
