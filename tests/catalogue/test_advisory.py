"""The Wednesday under the advisory lock, as students expect it, and the failure that only this lock knows."""

import json
from contextlib import nullcontext
from itertools import product
from typing import Any, get_args

import pytest
from django.core.management import call_command

from exercises.catalogue.advisory.answers import Refused, State
from exercises.catalogue.advisory.checks import REDIS
from exercises.catalogue.advisory.failure import LONGER_THAN, SILENCE
from exercises.handed.answers import NotAnswers, read
from exercises.handed.checks import Outcome, Result
from exercises.handed.exercise import Known, exercise
from exercises.lab.database import Database
from exercises.scenarios import stop
from exercises.scenarios.boxes import noticed_after
from exercises.scenarios.mishap import Mishap
from exercises.scenarios.replay import play
from exercises.scenarios.wednesday import AFTERMATH, START
from grading.judge import judge
from grading.room import JudgesRoom
from marlow.management.commands import lab
from tests.lab.conftest import database

__all__ = ["database"]
KNOWN = {known.name: known for known in exercise("advisory").known()}
RIGHT = KNOWN["right"].answers
POWER = {"failure": "its box loses power", "keepalives": "the operating system’s defaults"}
PROVIDER = {"failure": "the provider goes dark", "where": "no box", "lasts": 60}


def results(database: Database, *names: str, **answers: Any) -> list[Result]:
    """Of these checks, where the right answer is altered."""
    found, room = exercise("advisory"), JudgesRoom(lambda: nullcontext(database))
    chosen = [check for check in found.checks if check.name in names] if names else None
    return [result for _, result in judge(found, read(found.answers, altered(answers)), room, chosen)]


def altered(answers: dict[str, Any]) -> dict[str, Any]:
    """A failure that was named anew has no more of the right one than its box and its time."""
    kept = {name: value for name, value in RIGHT.items() if "failure" not in answers or name != "keepalives"}
    return {**kept, **answers}


@pytest.mark.parametrize("known", KNOWN.values(), ids=KNOWN)
def test_known_answers_get_their_verdicts(known: Known, database: Database) -> None:
    found, room = exercise("advisory"), JudgesRoom(lambda: nullcontext(database))
    given = {check.name: result for check, result in judge(found, read(found.answers, known.answers), room)}
    assert {name: (result.outcome.value, result.points) for name, result in given.items()} == known.expected


def test_the_same_answer_has_the_same_evidence(database: Database) -> None:
    first, second = results(database), results(database)
    assert first == second
    assert all(result.evidence.again.startswith("lab wednesday") for result in first)
    assert "the lock refuses both" in first[1].evidence.text


class TestPredictions:
    """One that does not hold is told where to look. What is right there is in the run, and not in the sentence."""

    @pytest.mark.parametrize("wrong", list(product(get_args(State), repeat=2)))
    def test_of_the_boxes(self, database: Database, wrong: tuple[str, str]) -> None:
        (result,) = results(database, "boxes", box_a=wrong[0], box_b=wrong[1])
        if wrong == (RIGHT["box_a"], RIGHT["box_b"]):
            assert result.outcome is Outcome.PASSED
            return
        assert result.sentence.startswith(f"You say that box A {wrong[0]} and box B {wrong[1]}, and the journal has")
        told = [state for state in get_args(State) if state in result.sentence]
        assert set(told) == set(wrong)
        assert f"box A {RIGHT['box_a']} and box B {RIGHT['box_b']}" in result.evidence.text

    @pytest.mark.parametrize("wrong", [who for who in get_args(Refused) if who != RIGHT["refused"]])
    def test_of_who_is_refused(self, database: Database, wrong: str) -> None:
        (result,) = results(database, "refused", refused=wrong)
        assert result.sentence.startswith(f"You say that the lock refuses {wrong}, and the journal has it otherwise.")
        assert "refuses both" not in result.sentence
        assert "refuses both" in result.evidence.text

    @pytest.mark.parametrize("wrong", [(2, 2), (0, 2), (2, 0), (1, 0)])
    def test_of_the_friday(self, database: Database, wrong: tuple[int, int]) -> None:
        (result,) = results(database, "friday", catalogue=wrong[0], shelf=wrong[1])
        assert result.sentence.startswith(f"You have {wrong[0]} in the catalogue and {wrong[1]} on the shelf")
        assert "promises 0" not in result.sentence
        assert "promises 0 of the novel, and the shelf holds 0" in result.evidence.text


class TestFailure:
    @pytest.mark.parametrize(
        ("answers", "said"),
        [
            ({**POWER, "keepalives": "Marlow’s settings"}, "with these keepalives it waits for 60 s"),
            ({**POWER, "where": "box A"}, "At 21:51:00 box A does not have the lock"),
            ({**POWER, "at": "21:52:20"}, "At 21:52:20 box B does not have the lock"),
            ({"failure": "the box freezes", "lasts": 120}, "goes on with a lock that it never lost"),
            ({"failure": "its process is killed"}, "closes its connections"),
            ({"failure": "its lock session is lost"}, "A session that ends takes its lock with it"),
            ({"failure": "Redis fails over", "where": "no box"}, "does not stand in Redis"),
            ({**PROVIDER, "lasts": 3600}, "costs the sweep ten seconds"),
        ],
    )
    def test_each_that_stops_nothing_for_long_has_its_own_lesson(
        self, database: Database, answers: dict[str, Any], said: str
    ) -> None:
        (result,) = results(database, "failure", **answers)
        assert (result.outcome, result.points) == (Outcome.FAILED, 0)
        assert said in result.sentence

    @pytest.mark.parametrize(
        ("answers", "said"),
        [
            (POWER, "From 21:51:00 nobody sweeps for 1140 s, and the evening ends with the lock still held; "),
            ({**POWER, "at": "21:52:19"}, "From 21:52:19 nobody sweeps for 1061 s, and the evening ends"),
            ({"failure": "the box freezes", "lasts": 121}, "From 21:51:00 nobody sweeps for 121 s; "),
            ({"failure": "the box freezes", "lasts": 3600}, "for 1140 s, and the evening ends"),
        ],
    )
    def test_the_new_one_is_told_with_both_evenings(
        self, database: Database, answers: dict[str, Any], said: str
    ) -> None:
        (result,) = results(database, "failure", **answers)
        assert (result.outcome, result.points) == (Outcome.PASSED, 4)
        assert said in result.sentence
        assert "under Redis the key runs out, and somebody sweeps again after " in result.sentence
        under = result.evidence.text.splitlines()
        assert [line.partition(" nobody")[0] for line in under[1:3]] == ["Under the advisory lock", "Under Redis"]
        assert under[3].startswith("The evening under Redis again: manage.py lab wednesday --lock redis-naive ")

    @pytest.mark.parametrize(
        ("keepalives", "outcome"),
        [("Marlow’s settings", Outcome.FAILED), ("the operating system’s defaults", Outcome.PASSED)],
    )
    def test_what_one_lease_may_cost_is_not_longer_than_a_lease(
        self, database: Database, keepalives: str, outcome: Outcome
    ) -> None:
        """At 21:50:00 the key has just been set, and under Redis nobody sweeps until 21:52:00.001 either."""
        (result,) = results(database, "failure", **{**POWER, "at": "21:50:00", "keepalives": keepalives})
        assert result.outcome is outcome
        assert "Under Redis nobody sweeps for 120.001 s at the longest" in result.evidence.text

    @pytest.mark.parametrize("at", ["21:50:00", "21:51:07", "21:52:05"])
    def test_no_failure_that_can_be_named_stops_redis_for_longer(self, database: Database, at: str) -> None:
        """So that whatever stops this lock for longer is new."""
        timed = ("freeze:box-a:3600", "freeze:box-b:130", "freeze:box-b:3600", "power:box-a:7875", "power:box-b:7875")
        for text in (*timed, "kill:box-a", "kill:box-b", "session:box-b", "failover", "dark:150", "dark:3600"):
            mishap = Mishap.read(f"{text}@{at}")
            outcome = play(database, REDIS, mishap=mishap)
            assert stop.longest(outcome.events, mishap.moment(START), AFTERMATH).lasted <= LONGER_THAN, text

    def test_the_evidence_plays_the_very_evening_again(
        self, database: Database, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        (result,) = results(database, "failure")
        monkeypatch.setattr(lab, "laboratory", lambda: nullcontext(database))
        with pytest.raises(SystemExit):
            call_command(*result.evidence.again.split(), "--json")
        again = json.loads(capsys.readouterr().out.splitlines()[-1])["events"]
        verdict = result.evidence.verdict or {}
        assert again == [
            {name: told for name, told in event.items() if name != "step"} for event in verdict["events"]
        ]
        assert any(step["step"] == "box-b loses its power" for step in result.evidence.steps)

    def test_marlows_keepalives_are_those_that_it_ships_with(self) -> None:
        assert noticed_after() == SILENCE["Marlow’s settings"] == 60


@pytest.mark.parametrize(
    "wrong",
    [
        {"box_a": "sleeps"},
        {"refused": ""},
        {"catalogue": -1},
        {"shelf": "0"},
        {"shelf": 0.5},
        {"box_c": "-"},
        {"failure": "the box burns"},
        {"where": "box C"},
        {"at": "21:5O:00"},
        {"at": "21:51"},
    ],
)
def test_what_can_be_no_answer_is_told_by_its_field(wrong: dict[str, object]) -> None:
    assert list(problems(wrong)) == list(wrong)


@pytest.mark.parametrize(
    ("wrong", "field", "said"),
    [
        ({"where": "no box"}, "where", "This failure strikes a box: choose which."),
        ({**PROVIDER, "where": "box A"}, "where", "Where the provider goes dark, no box is struck: choose “no box”."),
        ({"at": "21:49:59"}, "at", "Name a time from 21:50:00 to 22:00:00."),
        ({"at": "22:00:01"}, "at", "Name a time from 21:50:00 to 22:00:00."),
        ({**PROVIDER, "lasts": None}, "lasts", "Say for how many seconds the provider goes dark."),
        ({"failure": "the box freezes"}, "lasts", "Say for how many seconds the box freezes."),
        ({"failure": "the box freezes", "lasts": 0}, "lasts", "This should be greater than or equal to 1."),
        ({"failure": "the box freezes", "lasts": 3601}, "lasts", "This should be less than or equal to 3600."),
        (
            {"lasts": 60},
            "lasts",
            "Where its box loses power, nothing of it has a length of yours: leave this empty.",
        ),
        (
            {"keepalives": None},
            "keepalives",
            "Say by whose keepalives Postgres finds out that the box is gone.",
        ),
        (
            {**PROVIDER, "keepalives": "Marlow’s settings"},
            "keepalives",
            "Only a box that loses power is missed by keepalives: leave this empty.",
        ),
    ],
)
def test_parts_of_a_failure_that_do_not_go_together_are_told_by_their_field(
    wrong: dict[str, Any], field: str, said: str
) -> None:
    assert problems(wrong) == {field: said}


def problems(wrong: dict[str, Any]) -> dict[str, str]:
    with pytest.raises(NotAnswers) as refused:
        read(exercise("advisory").answers, altered(wrong))
    return refused.value.problems
