"""The Wednesday under the advisory lock, as students expect it."""

from contextlib import nullcontext

import pytest

from exercises.handed.answers import NotAnswers, read
from exercises.handed.exercise import Known, exercise
from exercises.lab.database import Database
from grading.judge import judge
from grading.room import JudgesRoom
from tests.lab.conftest import database

__all__ = ["database"]
KNOWN = {known.name: known for known in exercise("advisory").known()}
RIGHT = KNOWN["right"].answers


@pytest.mark.parametrize("known", KNOWN.values(), ids=KNOWN)
def test_known_answers_get_their_verdicts(known: Known, database: Database) -> None:
    found, room = exercise("advisory"), JudgesRoom(lambda: nullcontext(database))
    given = {check.name: result for check, result in judge(found, read(found.answers, known.answers), room)}
    assert {name: (result.outcome.value, result.points) for name, result in given.items()} == known.expected


def test_the_same_answer_has_the_same_evidence(database: Database) -> None:
    found, room = exercise("advisory"), JudgesRoom(lambda: nullcontext(database))
    answers = read(found.answers, RIGHT)
    first, second = ([result for _, result in judge(found, answers, room)] for _ in range(2))
    assert first == second
    assert all(result.evidence.again.startswith("lab wednesday") for result in first)
    assert "the lock refuses both" in first[1].evidence.text


@pytest.mark.parametrize(
    "wrong", [{"box_a": "sleeps"}, {"refused": ""}, {"catalogue": -1}, {"shelf": "0"}, {"shelf": 0.5}, {"box_c": "-"}]
)
def test_what_can_be_no_answer_is_told_by_its_field(wrong: dict[str, object]) -> None:
    with pytest.raises(NotAnswers) as refused:
        read(exercise("advisory").answers, {**RIGHT, **wrong})
    assert list(refused.value.problems) == list(wrong)
