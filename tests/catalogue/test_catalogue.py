"""An exercise is a folder: whoever adds one edits nothing else."""

import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from exercises import catalogue as package
from exercises.handed.answers import MOST, NotAnswers, read
from exercises.handed.checks import Outcome, Result
from exercises.handed.exercise import Exercise, NoExercise, catalogue, exercise, there, unreadable
from exercises.handed.paper import NotAPaper, answers_in, on_paper
from exercises.lab.database import Database
from grading.judge import judge
from grading.room import JudgesRoom
from marlow.servers.launcher import ServerError

ANSWERS = '''
"""How many."""

from typing import Annotated

from pydantic import Field

from exercises.handed.answers import Answers as Base


class Answers(Base):
    copies: Annotated[int, Field(ge=0, le=9, title="Copies")]
'''
CHECKS = '''
"""Two."""

from exercises.handed.checks import Check, CouldNotDecide, Evidence

VERSION, PLACE = 3, 900


def two(answers, room):
    if answers.copies == 2:
        return CHECKS[0].passed("Two it is.", Evidence("2"))
    if answers.copies == 8:
        raise CouldNotDecide("The shelf is out of sight.")
    if answers.copies == 9:
        raise ZeroDivisionError(answers.copies)
    return CHECKS[0].failed("The shelf has two.", Evidence(str(answers.copies)), 7 if answers.copies == 7 else 0)


CHECKS = [Check("two", "Counting", 5, two)]
'''
RIGHT = 'kind = "right"\nabout = "Two."\n[answers]\ncopies = 2\n[expected.two]\noutcome = "passed"\npoints = 5\n'


@pytest.fixture
def counting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Exercise]:
    """An exercise in a folder that is not the project's."""
    folder = tmp_path / "counting_copies"
    (folder / "known").mkdir(parents=True)
    for name, text in (("__init__.py", ""), ("answers.py", ANSWERS), ("checks.py", CHECKS)):
        (folder / name).write_text(text)
    (folder / "statement.md").write_text("# Counting copies\n\nHow many are there?\n")
    (folder / "known" / "right.toml").write_text(RIGHT)
    monkeypatch.setattr(package, "__path__", [*package.__path__, str(tmp_path)])
    yield exercise("counting-copies")
    forget()


def forget() -> None:
    """What was read of the folder is read anew."""
    for name in [name for name in sys.modules if name.startswith(f"{package.__name__}.counting_copies")]:
        del sys.modules[name]


def unopened() -> AbstractContextManager[Database]:
    raise AssertionError("counting needs no laboratory")


def verdict(exercise: Exercise, copies: int) -> Result:
    ((_, result),) = judge(exercise, read(exercise.answers, {"copies": copies}), JudgesRoom(unopened))
    return result


def test_a_folder_is_an_exercise(counting: Exercise) -> None:
    assert counting.title == "Counting copies"
    assert (counting.version, counting.points) == (3, 5)
    assert list(catalogue())[-1] == "counting-copies"
    assert [known.kind for known in counting.known()] == ["right"]
    assert verdict(counting, 2).outcome is Outcome.PASSED
    assert verdict(counting, 3).sentence == "The shelf has two."


@pytest.mark.parametrize(
    ("copies", "sentence"),
    [
        (7, "The check gave 7 of 5 points with 'failed'."),
        (8, "The shelf is out of sight."),
        (9, "The check broke off: ZeroDivisionError."),
    ],
)
def test_a_check_that_breaks_off_decides_nothing(counting: Exercise, copies: int, sentence: str) -> None:
    result = verdict(counting, copies)
    assert (result.outcome, result.points, result.sentence) == (Outcome.UNDECIDED, 0, sentence)


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({}, "copies"),
        ({"copies": "many"}, "copies"),
        ({"copies": 10}, "copies"),
        ({"copies": 2, "more": 1}, "more"),
        ("two", "answers"),
        (None, "answers"),
    ],
)
def test_what_is_no_answer_is_told_field_by_field(counting: Exercise, given: object, field: str) -> None:
    with pytest.raises(NotAnswers) as wrong:
        read(counting.answers, given)
    assert field in wrong.value.problems
    assert all(sentence.endswith(".") for sentence in wrong.value.problems.values())


def test_there_is_a_sentence_for_an_exercise_that_is_not_there() -> None:
    with pytest.raises(NoExercise, match="There is no exercise 'courier-9': take one of "):
        exercise("courier-9")


@pytest.mark.parametrize(
    ("file", "content", "cause"),
    [
        ("checks.py", b"VERSION = (", "SyntaxError: '(' was never closed"),
        ("checks.py", b"import nothing_of_the_kind", "ModuleNotFoundError: No module named"),
        ("checks.py", b"VERSION, PLACE = 1, 2", "has no attribute 'CHECKS'"),
        ("answers.py", b"1 / 0", "ZeroDivisionError: division by zero"),
        ("answers.py", b"", "has no attribute 'Answers'"),
        ("statement.md", b"# \xff", "UnicodeDecodeError"),
    ],
)
def test_a_folder_that_can_not_be_read_takes_no_other_with_it(
    counting: Exercise, file: str, content: bytes, cause: str, caplog: pytest.LogCaptureFixture
) -> None:
    """It is left out, the log says so once, and whoever asks for it is told the cause."""
    others = [slug for slug in catalogue() if slug != counting.slug]
    (counting.folder / file).write_bytes(content)
    forget()
    assert list(catalogue()) == list(catalogue()) == others
    assert [exercise(slug).slug for slug in others] == others
    with pytest.raises(NoExercise, match="The exercise 'counting-copies' can't be read: ") as wrong:
        exercise("counting-copies")
    assert cause in str(wrong.value)
    assert there("counting-copies") is None
    assert unreadable() == {"counting-copies": str(wrong.value)}
    assert [record.getMessage() for record in caplog.records] == [str(wrong.value)]


def test_a_folder_that_is_mended_is_there_again(counting: Exercise) -> None:
    (counting.folder / "checks.py").write_text("unheard_of")
    forget()
    assert there("counting-copies") is None
    (counting.folder / "checks.py").write_text(CHECKS)
    assert list(catalogue())[-1] == "counting-copies"


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("a.toml", "exercise = ", "is no TOML"),
        ("a.json", "{", "is no JSON"),
        ("a.json", "[" * 100_000, "is no JSON"),
        ("a.toml", "[answers]", "names no exercise"),
        ("a.toml", 'exercise = "counting-copies"', "has no answers"),
        ("a.toml", "#" * 5 * MOST, "is longer than any answer"),
    ],
)
def test_a_file_that_is_no_answer_says_what_one_looks_like(tmp_path: Path, name: str, text: str, says: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(NotAPaper, match=says):
        answers_in(tmp_path / name)


def test_an_answer_comes_from_toml_or_json(counting: Exercise, tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text('exercise = "counting-copies"\n[answers]\ncopies = 2\n')
    (tmp_path / "a.json").write_text('{"exercise": "counting-copies", "answers": {"copies": 2}}')
    assert answers_in(tmp_path / "a.toml") == answers_in(tmp_path / "a.json")


def test_every_exercise_has_its_known_answers() -> None:
    """At least one right, three wrong in different ways, and one cheat."""
    for found in catalogue().values():
        kinds = [known.kind for known in found.known()]
        assert kinds.count("right") >= 1, found.slug
        assert kinds.count("wrong") >= 3, found.slug
        assert kinds.count("cheat") >= 1, found.slug
        assert set(kinds) <= {"right", "wrong", "cheat"}, found.slug
        names = {check.name for check in found.checks}
        assert all(on_paper(file)[0] == found for file in (found.folder / "known").glob("*.toml")), found.slug
        assert all(set(known.expected) == names for known in found.known()), found.slug


def test_a_laboratory_that_does_not_open_decides_nothing() -> None:
    def gone() -> AbstractContextManager[Database]:
        raise ServerError("It does not start.")

    found, answers = answers_in(exercise("advisory").folder / "known" / "right.toml")
    for _, result in judge(found, answers, JudgesRoom(gone)):
        assert (result.outcome, result.points) == (Outcome.UNDECIDED, 0)
        assert result.sentence == "The laboratory could not be opened: It does not start."
