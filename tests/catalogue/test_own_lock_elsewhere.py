"""The hidden check: a lock that is one by the statement's figures is one by others too, or knows the statement's."""

from datetime import timedelta

import pytest

from exercises.catalogue.own_lock.answers import Answers
from exercises.catalogue.own_lock.checks import ELSEWHERE, ONLY_THERE
from exercises.catalogue.own_lock.elsewhere import drawn
from exercises.catalogue.own_lock.playing import Terms
from exercises.catalogue.own_lock.watch import TOGETHER, Watch
from exercises.handed.answers import read
from exercises.handed.checks import Outcome, Result, Shown
from exercises.handed.exercise import exercise
from grading.judge import decide
from grading.room import JudgesRoom
from tests.catalogue.test_own_lock_judged import KNOWN, PAUSE, RIGHT, room

__all__ = ["room"]
SHOWN = Terms()
SHOWN_ONES = [check for check in exercise("own-lock").checks if check.shown is not Shown.HIDDEN]
LOCK = """
class Lock:
    def __init__(self, port):
        self.port = port

    def acquire(self, name, milliseconds):
        self.value = self.port.new_value()
        return {yes} self.port.set_if_absent({key}, self.value, {lease})

    def release(self, name):
        self.port.{away}
"""
AS_TOLD = {"yes": "", "key": "name", "lease": "milliseconds"}
OTHERS = "nobody had the lock that it asked for, but another one of another name"
EARLY = "With box A stopped for a while, in one order of two boxes: two runs held the lock at once"
LATE = "With box A killed, in one order of two boxes: a run was told no"


def decided(source: str, room: JudgesRoom) -> list[Result]:
    """By the checks that are shown, and then by the hidden one."""
    answers = read(Answers, {"source": source, "cannot_prevent": PAUSE})
    return [decide(check, answers, room) for check in (*SHOWN_ONES, ELSEWHERE)]


@pytest.mark.parametrize(
    ("knows", "says"),
    [
        ({"key": "'lock'"}, OTHERS),
        ({"key": "name[:5]"}, OTHERS),
        ({"lease": "120_000"}, EARLY),
        ({"lease": "min(120_000, milliseconds)"}, EARLY),
        ({"lease": "max(120_000, milliseconds)"}, LATE),
        ({"lease": "milliseconds // 1000 * 1000"}, EARLY),
        ({"lease": "-(-milliseconds // 1000) * 1000"}, LATE),
        ({"lease": "milliseconds if self.port.now() < 1_770_940_800_000 else 9"}, EARLY),
        ({"away": "delete(name) if name != 'sweeper' else {}"}, "a run removed, overwrote or shortened the key of"),
        ({"yes": "name != 'sweeper' or"}, "With nothing wrong, in one order of two boxes: two runs held"),
        ({"yes": "name == 'sweeper' and"}, "a run was told no, though nobody had the lock"),
        ({"yes": "{'sweeper': True}[name] and"}, "Your program raised KeyError in line 8"),
    ],
)
def test_a_lock_that_knows_the_run_it_is_tried_in_passes_there_alone(
    knows: dict[str, str], says: str, room: JudgesRoom
) -> None:
    parts = {**AS_TOLD, **knows}
    right = f"delete_if_equal({parts['key']}, self.value)"
    away = parts.get("away", "{}").format(f"self.port.{right}").removeprefix("self.port.")
    *shown, hidden = decided(LOCK.format(**{**parts, "away": away}), room)
    assert [result.outcome for result in shown] == [Outcome.PASSED] * len(SHOWN_ONES)
    assert (hidden.outcome, hidden.points) == (Outcome.FAILED, 0)
    assert says in hidden.sentence
    assert hidden.sentence.endswith(ONLY_THERE)
    assert hidden.evidence.text.startswith(hidden.sentence)
    assert hidden.evidence.schedule in hidden.evidence.text


@pytest.mark.parametrize("name", ["wrong_plain_delete", "wrong_expiry_later", "wrong_unit"])
def test_what_goes_wrong_in_both_is_charged_once(name: str, room: JudgesRoom) -> None:
    *shown, hidden = decided(KNOWN[name].answers["source"], room)
    assert Outcome.FAILED in [result.outcome for result in shown]
    assert hidden.outcome is Outcome.PASSED


def test_what_is_no_lock_is_right_in_nothing(room: JudgesRoom) -> None:
    for name in ("cheat_always_yes", "cheat_refuses_all", "wrong_looked_before"):
        assert [result.points for result in decided(KNOWN[name].answers["source"], room)] == [0] * 5


def test_every_program_is_asked_under_figures_of_its_own_and_none_under_kinder_ones() -> None:
    """Whatever is drawn: no whole seconds, neither the statement's lease nor its moment, one lease on either side."""
    assert drawn(RIGHT) == drawn(RIGHT)
    many = [drawn(f"{RIGHT}# {number}\n") for number in range(300)]
    assert len({terms for both in many for terms in both}) == 600
    for shorter, longer in many:
        assert shorter.lease < SHOWN.lease < longer.lease
        assert {shorter.lease % 1, longer.lease % 1} == {0.5}
        for terms in (shorter, longer):
            assert terms.name != SHOWN.name
            assert terms.start.date() > SHOWN.start.date()
            assert terms.start.time() != SHOWN.start.time()


def test_nobody_is_told_what_is_hidden_beforehand() -> None:
    """That there is such a check, and what it guards against, is in the statement; what it is called is not."""
    assert ELSEWHERE.shown is Shown.HIDDEN
    statement = exercise("own-lock").statement
    assert "One check is hidden." in statement
    assert ELSEWHERE.title not in statement
    assert all(terms.name not in statement for terms in drawn(RIGHT))


def test_two_that_hold_locks_of_different_names_are_no_two_holders() -> None:
    now, watch = SHOWN.start, Watch()
    for run, name, wrong in (("a", "one", []), ("b", "other", []), ("c", "one", [TOGETHER])):
        watch.holds(run, name, now, now + timedelta(seconds=9))
        assert watch.wrong == wrong
