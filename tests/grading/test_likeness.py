"""Alike programs are a hint for the class's instructors: found through new names, blind to what everybody has."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Annotated, Any

import pytest
from django.contrib.auth.models import User

from exercises.handed.answers import Answers, Code, Part
from grading import likeness as module
from grading import queue
from grading.handin import digest
from grading.likeness import Pair, likeness, programs
from grading.models import Attempt, Submission
from tests.grading.school import NOON, PASSED, Said, School, both, judge, person

pytestmark = pytest.mark.django_db

SHOWN = """class Lock:
    def __init__(self, port):
        self.port = port
        self.token = port.random()
        self.name = "lock:sweeper"
"""
TAKEN = """    def acquire(self):
        # whoever comes first
        answer = self.port.set(self.name, self.token, nx=True, px=120_000)
        if answer is None:
            return False
        return self.port.get(self.name) == self.token

    def release(self):
        if self.port.get(self.name) == self.token:
            return self.port.delete(self.name) == 1
        return False
"""
RENAMED = TAKEN.replace("answer", "what_it_said").replace("# whoever comes first\n", "# mine, all mine\n\n\n")
OTHER = """    def acquire(self):
        for attempt in range(3):
            try:
                with self.port.transaction() as pipe:
                    pipe.watch("key")
                    pipe.multi(); pipe.incr("counter"); pipe.expire("key", 30)
            except ConnectionError as broken:
                print(f"{attempt}: {broken}")
        raise TimeoutError([value ** 2 for value in range(10) if value % 2])

    release = acquire
"""
STATEMENT = f"# Mine\n\nBegin so:\n\n```python\n{SHOWN}```\n\nand go on.\n"


class Step(Part):
    statement: Annotated[str, Code("sql")]
    note: str = ""


class Lock(Answers):
    source: Annotated[str, Code("python")]
    old: Annotated[str, Code("python")] | None = None
    steps: list[Step] = []
    why: str = ""


LOCK = SimpleNamespace(slug="mine", answers=Lock, statement=STATEMENT)


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> Iterator[School]:
    monkeypatch.setattr(module, "there", lambda slug: LOCK)
    return class_of("Wednesday")


def class_of(name: str, exercise: str = "mine") -> School:
    return School(name, rules={"exercise": exercise})


def handed(here: School, name: str, source: str, number: int = 1, **more: Any) -> Attempt:
    """As `hand_in` writes it; the exercise is this test's alone."""
    answers = Lock(source=source, **more)
    student = User.objects.filter(username=name).first() or person(name)
    submission, _ = Submission.objects.get_or_create(assignment=here.assignment, student=student)
    return Attempt.objects.create(
        submission=submission,
        number=number,
        answers=answers.model_dump(mode="json"),
        answers_version=1,
        sha256=digest(answers),
        through="form",
        received_at=NOON,
    )


def found(here: School) -> list[tuple[str, str, str]]:
    pairs = likeness("mine", by=here.teacher)
    return [
        (pair.one.submission.student.username, pair.other.submission.student.username, pair.field) for pair in pairs
    ]


def test_a_program_with_other_names_and_comments_is_found_and_one_of_their_own_is_not(here):
    handed(here, "anna", SHOWN + TAKEN)
    handed(here, "ben", SHOWN + RENAMED)
    handed(here, "cleo", SHOWN + OTHER)
    (pair,) = likeness("mine", by=here.teacher)
    assert {pair.one.submission.student.username, pair.other.submission.student.username} == {"anna", "ben"}
    assert (pair.of_one, pair.of_other, pair.field) == (100, 100, "source")


def test_what_the_statement_shows_is_no_hint(here):
    handed(here, "anna", SHOWN)
    handed(here, "ben", SHOWN)
    assert found(here) == []


def test_a_part_taken_over_is_told_of_each(here):
    handed(here, "anna", TAKEN)
    handed(here, "ben", TAKEN + "\n\n" + OTHER)
    (pair,) = likeness("mine", by=here.teacher)
    small, large = sorted((pair.of_one, pair.of_other))
    assert large > 90
    assert small < 60


def judged(attempt: Attempt, points: int) -> None:
    queue.ask(attempt, NOON)
    judge(attempt, {"boxes": Said(PASSED, points, 3)})


def names(pair: Pair) -> set[tuple[str, str]]:
    """Whose, and of which classes."""
    each = (pair.one.submission, pair.other.submission)
    return {(one.student.username, one.assignment.of.name) for one in each}


def test_what_is_compared_is_the_attempt_that_is_the_grade(here):
    """Something else that is handed in after it hides nothing."""
    handed(here, "anna", TAKEN)
    judged(handed(here, "ben", TAKEN, number=1), points=3)
    judged(handed(here, "ben", OTHER, number=2), points=0)
    handed(here, "ben", OTHER, number=3)
    (pair,) = likeness("mine", by=here.teacher)
    assert names(pair) == {("anna", "Wednesday"), ("ben", "Wednesday")}
    assert pair.other.number == 1


def test_all_classes_that_one_teaches_are_compared_with_each_other(here):
    other, elsewhere = class_of("Thursday"), class_of("Friday", "another")
    for school in (other, elsewhere):
        school.of.instructors.add(here.teacher)
    handed(here, "anna", TAKEN)
    handed(other, "ben", RENAMED)
    handed(elsewhere, "cleo", TAKEN)
    (pair,) = likeness("mine", by=here.teacher)
    assert names(pair) == {("anna", "Wednesday"), ("ben", "Thursday")}


def test_nothing_is_seen_of_a_class_that_one_does_not_teach(here):
    """Whatever else one is to it: each sees the pairs within their own class, a superuser the one across."""
    other = class_of("Thursday")
    handed(here, "anna", TAKEN)
    handed(other, "ben", TAKEN)
    studies = both(here, other)
    for viewer in (here.teacher, other.teacher, studies, here.student, person("operator", "Operator")):
        assert likeness("mine", by=viewer) == [], viewer
    handed(other, "cleo", TAKEN)
    assert [names(pair) for pair in likeness("mine", by=studies)] == [{("ben", "Thursday"), ("cleo", "Thursday")}]
    assert likeness("mine", by=here.teacher) == []
    assert len(likeness("mine", by=person("root", is_superuser=True))) == 3
    other.teacher.is_active = False
    assert likeness("mine", by=other.teacher) == []


def test_nobody_is_compared_with_themselves_in_another_class(here):
    other = class_of("Thursday")
    other.of.instructors.add(here.teacher)
    for school in (here, other):
        handed(school, "anna", TAKEN)
    assert likeness("mine", by=here.teacher) == []


def test_however_many_there_are_it_asks_the_database_as_often(here, django_assert_max_num_queries):
    for name in ("anna", "ben", "cleo", "dora"):
        judged(handed(here, name, TAKEN), points=3)
    with django_assert_max_num_queries(8):
        assert len(found(here)) == 6


def test_where_none_is_judged_the_last_one_is_compared_and_nobody_with_themselves(here):
    handed(here, "anna", TAKEN)
    handed(here, "ben", TAKEN, number=1)
    handed(here, "ben", OTHER, number=2)
    handed(here, "cleo", TAKEN, number=1)
    handed(here, "cleo", TAKEN, number=2)
    (pair,) = likeness("mine", by=here.teacher)
    assert {pair.one.number, pair.other.number} == {1, 2}
    assert {pair.one.submission.student.username, pair.other.submission.student.username} == {"anna", "cleo"}


def test_only_what_is_marked_as_code_is_compared(here):
    handed(here, "anna", OTHER, why=TAKEN)
    handed(here, "ben", TAKEN, why=TAKEN)
    assert found(here) == []


def test_statements_in_a_list_are_one_program(here):
    rows = [
        "update shop_book set stock = stock + 1 where id = :book",
        "delete from shop_hold where order_id = :order",
    ]
    handed(here, "anna", TAKEN, steps=[{"statement": text, "note": "one"} for text in rows])
    handed(here, "ben", OTHER, steps=[{"statement": text.replace("  ", " ")} for text in rows])
    assert [field for _, _, field in found(here)] == ["steps.statement"]


def test_what_is_marked_is_found_wherever_the_type_has_it():
    given = {"source": "a", "old": "b", "steps": [{"statement": "c"}, {"statement": "d", "note": "e"}], "why": "f"}
    told = [(one.field, one.language, one.text) for one in programs(LOCK, given)]
    assert told == [("source", "python", "a"), ("old", "python", "b"), ("steps.statement", "sql", "c\nd")]
    assert programs(LOCK, {"source": 7}) == []


def test_only_an_instructor_of_the_class_is_told(here):
    handed(here, "anna", TAKEN)
    handed(here, "ben", TAKEN)
    for stranger in (here.student, person("somebody", "Instructor"), person("operator", "Operator")):
        assert likeness("mine", by=stranger) == []
    assert len(likeness("mine", by=person("root", is_superuser=True))) == 1


def test_it_is_bounded_in_programs_in_their_length_and_in_what_it_tells(here, monkeypatch):
    for name in ("anna", "ben", "cleo", "dora"):
        handed(here, name, TAKEN)
    monkeypatch.setattr(module, "TOLD", 4)
    assert len(found(here)) == 4
    monkeypatch.setattr(module, "MOST", 2)
    assert len(found(here)) == 1
    monkeypatch.setattr(module, "LONGEST", 10)
    assert found(here) == []


@pytest.mark.parametrize("source", ["", "x", "\"'''", "def (:\n\t))) \\", "é" * 40, "#" * 3000, "(" * 3000])
def test_what_is_hardly_a_program_breaks_nothing(here, source):
    handed(here, "anna", source)
    handed(here, "ben", source)
    handed(here, "cleo", TAKEN)
    assert all({one, other} == {"anna", "ben"} for one, other, _ in found(here))


def test_no_file_of_a_student_s_is_written(here, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    handed(here, "anna", TAKEN)
    handed(here, "ben", TAKEN)
    assert len(found(here)) == 1
    assert list(tmp_path.iterdir()) == []


def test_it_says_the_same_in_every_process():
    """Python's hashes, which the library stands on, are others in each."""
    code = (
        "import io; from copydetect import CodeFingerprint, compare_files; from grading.likeness import SHORTEST, "
        "_fingerprint; from tests.grading import test_likeness as t; "
        "print(compare_files(_fingerprint(t.TAKEN, 'python'), _fingerprint(t.TAKEN + t.OTHER, 'python'))[1])"
    )
    code = "import django; django.setup(); " + code
    root = Path(__file__).resolve().parents[2]
    said = set()
    for seed in ("1", "2", "3"):
        environment = {**os.environ, "PYTHONHASHSEED": seed, "DJANGO_SETTINGS_MODULE": "marlow.settings"}
        ran = subprocess.run(
            [sys.executable, "-c", code], env=environment, cwd=root, capture_output=True, text=True, check=True
        )
        said.add(ran.stdout)
    assert len(said) == 1
