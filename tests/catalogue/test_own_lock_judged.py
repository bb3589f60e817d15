"""Locks that are handed in, in their sandbox and under every order: what is found, and what is said of it."""

from contextlib import AbstractContextManager
from typing import NoReturn

import pytest

from exercises.catalogue.own_lock.answers import Answers
from exercises.catalogue.own_lock.checks import DEAD, EXCLUDES, HONEST, OWN
from exercises.catalogue.own_lock.lock import NAME
from exercises.catalogue.own_lock.port import BESIDES, QUESTIONS
from exercises.handed.answers import read
from exercises.handed.checks import Check, CouldNotDecide, Outcome, Result
from exercises.handed.exercise import Known, exercise
from exercises.lab.database import Database
from exercises.scenarios.boxes import ALL_FORMS, ALL_LOCKS
from grading.judge import decide, judge
from grading.room import JudgesRoom
from grading.sandbox.python import Lane

KNOWN = {known.name: known for known in exercise("own-lock").known()}
RIGHT = KNOWN["right"].answers["source"]
PAUSE, CRASH, FOREIGN = "two-holders-after-a-pause", "stuck-after-a-crash", "foreign-delete"


def no_laboratory() -> AbstractContextManager[Database]:
    raise AssertionError("Nothing here needs a database.")


@pytest.fixture
def room() -> JudgesRoom:
    return JudgesRoom(no_laboratory)


def decided(check: Check, source: str, room: JudgesRoom, claim: str = "nothing") -> Result:
    return decide(check, read(Answers, {"source": source, "cannot_prevent": claim}), room)


@pytest.mark.parametrize("known", KNOWN.values(), ids=KNOWN)
def test_known_answers_get_their_verdicts(known: Known, room: JudgesRoom) -> None:
    found = exercise("own-lock")
    given = {check.name: result for check, result in judge(found, read(found.answers, known.answers), room)}
    assert {name: (result.outcome.value, result.points) for name, result in given.items()} == known.expected


def test_nothing_of_it_is_left_in_the_lists_even_where_it_broke_off(room: JudgesRoom) -> None:
    before = {*ALL_LOCKS}, {*ALL_FORMS}
    decided(EXCLUDES, RIGHT, room)
    decided(DEAD, RIGHT.replace("return", "raise"), room)
    assert ({*ALL_LOCKS}, {*ALL_FORMS}) == before
    assert NAME not in ALL_LOCKS


def test_the_same_lock_has_the_same_evidence_twice(room: JudgesRoom) -> None:
    for name, check in (("wrong_looked_before", EXCLUDES), ("wrong_compared_here", OWN), ("right", HONEST)):
        answers = KNOWN[name].answers
        once, again = (decided(check, answers["source"], room, answers["cannot_prevent"]) for _ in range(2))
        assert once == again
        assert once.evidence.schedule
        assert once.evidence.verdict
        assert once.evidence.steps


def test_two_that_lock_by_different_keys_meet_in_the_shortest_order(room: JudgesRoom) -> None:
    shown = decided(EXCLUDES, KNOWN["wrong_key_of_its_own"].answers["source"], room).evidence
    asked = [(step["who"], step["step"].split()[1]) for step in shown.steps if step["step"].startswith("redis")]
    assert asked == [("box-a/1", "SET"), ("box-b/1", "SET"), ("box-b/1", "DEL"), ("box-a/1", "DEL")]
    assert shown.wrong == ("two runs held the lock at once, and the lease of neither was over",)


def test_the_order_that_is_shown_is_one_in_which_the_other_key_is_deleted(room: JudgesRoom) -> None:
    shown = decided(OWN, KNOWN["wrong_compared_here"].answers["source"], room).evidence
    asked = [(step["who"], step["step"].split()[1]) for step in shown.steps if step["step"].startswith("redis")]
    late = asked.index(("box-a/1", "DEL"))
    others = [who for who, question in asked[:late] if question == "SET" and who not in ("box-a/1", "box-b/1")]
    assert others
    assert (others[-1], "DEL") not in asked[:late]
    assert "pause of box-a" in [step["step"] for step in shown.steps]
    assert shown.verdict is not None
    assert shown.verdict["foreign_deletes"] == 1


def test_a_key_that_goes_before_its_lease_is_seen_by_whoever_comes_a_moment_early(room: JudgesRoom) -> None:
    short = RIGHT.replace("milliseconds)\n\n", "milliseconds - 2)\n\n")
    assert short != RIGHT
    assert decided(EXCLUDES, RIGHT, room).outcome is Outcome.PASSED
    found = decided(EXCLUDES, short, room)
    assert found.outcome is Outcome.FAILED
    assert "With box A stopped for a while, in one order of two boxes: two runs held the lock" in found.sentence


def test_one_that_lives_longer_than_its_lease_stops_the_other_box(room: JudgesRoom) -> None:
    found = decided(DEAD, RIGHT.replace("milliseconds)\n\n", "milliseconds + 1)\n\n"), room)
    assert found.outcome is Outcome.FAILED
    assert "With box A killed, in one order of two boxes: a run was told no" in found.sentence


def test_whoever_takes_over_what_is_over_lays_hands_on_nobody(room: JudgesRoom) -> None:
    source = """
class Lock:
    def __init__(self, port):
        self.port = port

    def acquire(self, name, milliseconds):
        there = self.port.get(name)
        if there is not None and int(there.split()[0]) < self.port.now():
            self.port.delete_if_equal(name, there)
        self.value = f"{self.port.now() + milliseconds} {self.port.new_value()}"
        return self.port.set_if_absent(name, self.value)

    def release(self, name):
        self.port.delete_if_equal(name, self.value)
"""
    results = [decided(check, source, room, PAUSE) for check in exercise("own-lock").checks]
    assert [result.outcome for result in results] == [Outcome.PASSED] * 5
    hasty = [decided(OWN, source.replace(" < self", " > self"), room)]
    assert hasty[0].outcome is Outcome.FAILED


def test_whoever_has_begun_to_let_go_holds_no_more(room: JudgesRoom) -> None:
    looks = RIGHT.replace("def release(self, name):\n", "def release(self, name):\n        self.port.get(name)\n")
    looks += "        self.port.get(name)\n"
    assert decided(EXCLUDES, looks, room).outcome is Outcome.PASSED
    assert decided(OWN, looks, room).outcome is Outcome.PASSED


def test_a_release_that_asks_nothing_may_come_late_as_well(room: JudgesRoom) -> None:
    hasty = RIGHT.replace("return self.port.set_if_absent(name, self.value, milliseconds)", "return self.take(name)")
    hasty = hasty.replace("self.port.delete_if_equal(name, self.value)", "pass")
    hasty += """
    def take(self, name):
        return self.port.set_if_absent(name, self.value, 1) and self.port.delete(name)
"""
    found = decided(EXCLUDES, hasty, room)
    assert found.evidence.wrong == ("two runs held the lock at once, and the lease of neither was over",)
    assert "lets go, and asks nothing" in found.evidence.text


def test_no_program_knows_what_it_will_be_given(room: JudgesRoom) -> None:
    """Or it could tell the box that is struck from the other one."""
    source = KNOWN["wrong_key_of_its_own"].answers["source"]
    one, other = (decided(EXCLUDES, source + more, room).evidence for more in ("", "# another\n"))
    assert [len(evidence.steps) for evidence in (one, other)] == [6, 6]
    assert one.steps[0]["step"] != other.steps[0]["step"]


@pytest.mark.parametrize(
    ("acquire", "says"),
    [
        ("while self.port.get('other') is None: pass", "more than 20 questions in one call"),
        ("return self.port.lock(name)", "Your lock asked 'lock': a port has set_if_absent"),
        ("return self.port.get()", "asked get with 0 values: it takes key."),
        ("return self.port.now(1)", "asked now with 1 values: it takes none."),
        ("return self.port.set_if_absent(name, 5, 9)", "with a value that is none"),
        ("return self.port.set_if_absent('a\\nb', 'x', 9)", "with a key that is none"),
        ("return self.port.set_if_absent(name, 'x', 0)", "with an expiry that is none"),
        ("return self.port.set_if_absent(name, 'x', True)", "with an expiry that is none"),
        ("return self.port.set_if_absent(name, 'x', 10**9)", "a day at the most"),
        ("return self.port.expire_if_equal(name, 'x')", "asked expire_if_equal with 2 values"),
        (
            "return self.port.set(name, 'x', 9, None)",
            "Your lock asked set with 4 values: it takes key, value, milliseconds.",
        ),
        ("return self.port.set_if_absent(name, 'x', 9, 9, None)", "asked set_if_absent with 5 values"),
        ("return self.port.set(None)", "asked set with 1 values: it takes key, value, milliseconds."),
        ("return self.port.set(name, None)", "asked set with a value that is none"),
        ("return self.port.expire_if_equal(name, 'x', None)", "asked expire_if_equal with an expiry that is none"),
        ("return 'yes'", "Your acquire returned 'yes': return True or False."),
        ("return 1 / 0", "Your program raised ZeroDivisionError in line 5: division by zero."),
        ("while True: pass", "used up its 2 s of CPU time"),
        ("import time; return self.port.set_if_absent(name, str(time.time_ns()), 9)", "did not do the same"),
    ],
)
def test_a_lock_that_fails_of_itself_is_told_so(acquire: str, says: str, room: JudgesRoom) -> None:
    source = "class Lock:\n  def __init__(self, port): self.port = port\n  def release(self, name): pass\n"
    source += f"  def acquire(self, name, milliseconds):\n    {acquire}\n"
    for check in (EXCLUDES, DEAD):
        result = decided(check, source, room)
        assert (result.outcome, result.points) == (Outcome.FAILED, 0)
        assert says in result.sentence


def test_one_that_only_fails_after_a_pause_is_told_so_with_the_order(room: JudgesRoom) -> None:
    late = RIGHT.replace("        self.port.delete_if_equal(", "        assert self.port.delete_if_equal(")
    assert decided(DEAD, late, room).outcome is Outcome.PASSED
    found = decided(OWN, late, room)
    assert found.outcome is Outcome.FAILED
    assert found.sentence.startswith("Your program raised AssertionError in line ")
    assert "pause of box-a" in found.evidence.text


def test_where_there_is_no_sandbox_nothing_is_decided(room: JudgesRoom, monkeypatch: pytest.MonkeyPatch) -> None:
    def none(self: JudgesRoom, source: str, name: str) -> NoReturn:
        raise CouldNotDecide("There is no sandbox here.")

    monkeypatch.setattr(JudgesRoom, "python", none)
    for check in exercise("own-lock").checks:
        result = decided(check, RIGHT, room)
        assert (result.outcome, result.sentence) == (Outcome.UNDECIDED, "There is no sandbox here.")


def test_a_sandbox_that_ends_in_the_middle_of_an_order_decides_nothing(
    room: JudgesRoom, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = iter(range(10**6))
    real = Lane.call

    def breaking(self: Lane, *given: object) -> object:
        if next(calls) == 7:
            raise CouldNotDecide("The sandbox went away.")
        return real(self, *given)  # type: ignore[arg-type]

    monkeypatch.setattr(Lane, "call", breaking)
    result = decided(EXCLUDES, RIGHT, room)
    assert (result.outcome, result.sentence) == (Outcome.UNDECIDED, "The sandbox went away.")


@pytest.mark.parametrize(
    ("name", "claim", "outcome", "says"),
    [
        ("right", PAUSE, Outcome.PASSED, "Here it is. With box A stopped for a while"),
        ("right", CRASH, Outcome.FAILED, "that is prevented, and something else is left"),
        ("right", FOREIGN, Outcome.FAILED, "that is prevented, and something else is left"),
        ("right", "nothing", Outcome.FAILED, "Something is left"),
        ("wrong_plain_delete", FOREIGN, Outcome.FAILED, "This does happen to your lock, and need not: set a value"),
        ("wrong_expiry_later", CRASH, Outcome.FAILED, "This does happen to your lock, and need not: give the key"),
        ("wrong_no_expiry", CRASH, Outcome.PASSED, "Here it is. With box A killed"),
        ("wrong_no_expiry", PAUSE, Outcome.FAILED, "look at what a crash leaves of it"),
    ],
)
def test_what_is_left_is_what_this_very_lock_shows(
    name: str, claim: str, outcome: Outcome, says: str, room: JudgesRoom
) -> None:
    result = decided(HONEST, KNOWN[name].answers["source"], room, claim)
    assert result.outcome is outcome
    assert says in result.sentence
    assert bool(result.evidence.steps) == ("happen" in says or "Here it is" in says)


def test_the_statement_lists_what_a_port_has() -> None:
    statement = exercise("own-lock").statement
    for name, (_, takes) in QUESTIONS.items():
        assert f"| `{name}({', '.join(takes)})` |" in statement
    for name in BESIDES:
        assert f"`{name}()`" in statement
