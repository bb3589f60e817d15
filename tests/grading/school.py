"""A class with its people, an exercise given to it, and attempts that a judge has been through; the queue is the real
one, and only what the checks say is written by hand."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.apps import apps
from django.contrib.auth.models import Group, User

from exercises.handed.checks import Check, Evidence, Outcome, Result, Shown
from grading import queue
from grading.handin import hand_in
from grading.models import Assignment, Attempt, Class, Enrolment, Judging, Regrade
from marlow import roles

OPENS = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
DUE = datetime(2026, 3, 13, 17, 0, tzinfo=UTC)
NOON = datetime(2026, 3, 10, 12, 0, tzinfo=UTC)  # of a day on which everything is open
MINUTE, DAY = timedelta(minutes=1), timedelta(days=1)
AFTER = DUE + 30 * DAY

RIGHT = {
    "box_a": "has nothing to do",
    "box_b": "is in the middle of a run",
    "refused": "both",
    "catalogue": 0,
    "shelf": 0,
    "failure": "the box freezes",
    "where": "box B",
    "at": "21:51:00",
    "lasts": 600,
    "keepalives": None,
}
VERSIONS = {"checks_version": 1, "digest": "0123456789abcdef", "marlow": "0.1.0", "seed": 7}


@dataclass(frozen=True)
class Said:
    """What one check says: its outcome, the points it gives and could give, and when it is shown."""

    outcome: Outcome
    points: int
    of: int
    shown: Shown = Shown.ALWAYS

    def of_check(self, name: str) -> tuple[Check, Result]:
        check = Check(name, f"The {name}", self.of, decide=lambda answers, room: self.result(name), shown=self.shown)
        return check, self.result(name)

    def result(self, name: str) -> Result:
        evidence = Evidence(f"the evening of {name}", again="lab wednesday", schedule="a b")
        return Result(self.outcome, f"What {name} teaches.", self.points, evidence)


PASSED, FAILED, UNDECIDED, INSTRUCTOR = Outcome.PASSED, Outcome.FAILED, Outcome.UNDECIDED, Outcome.INSTRUCTOR
WELL = {"boxes": Said(PASSED, 3, 3), "refused": Said(FAILED, 0, 2), "friday": Said(PASSED, 3, 3)}


# Commits are real and others see them. The database is emptied afterwards, roles and all: `role` makes those anew.
real_commits = pytest.mark.django_db(transaction=True)


def role(name: str) -> Group:
    if not Group.objects.filter(name=name).exists():
        roles.apply(apps)
    return Group.objects.get(name=name)


def person(name: str, of: str = "Student", **fields: Any) -> User:
    made = User.objects.create(username=name, is_staff=True, **fields)
    made.groups.add(role(of))
    return made


@dataclass
class School:
    """One class, its instructor and its students; `assignment` is the advisory lock's exercise."""

    name: str = "Wednesday"
    rules: dict[str, Any] = field(default_factory=dict)
    zone: str = "Europe/London"

    def __post_init__(self) -> None:
        self.of = Class.objects.create(name=self.name, zone=self.zone)
        self.teacher = person(f"teacher-{self.name}", "Instructor")
        self.of.instructors.add(self.teacher)
        self.student = self.enrolled(f"student-{self.name}")
        given = {"exercise": "advisory", "opens_at": OPENS, "due_at": DUE, **self.rules}
        self.assignment = Assignment.objects.create(of=self.of, **given)

    def enrolled(self, name: str) -> User:
        made = person(name)
        Enrolment.objects.create(of=self.of, student=made, since=OPENS)
        return made

    def hand_in(self, now: datetime = NOON, student: User | None = None) -> Attempt:
        return hand_in(student or self.student, self.assignment, RIGHT, now=now, through="form")

    def judged(
        self, says: dict[str, Said] | None = None, now: datetime = NOON, student: User | None = None
    ) -> Attempt:
        attempt = self.hand_in(now, student)
        judge(attempt, WELL if says is None else says, now)
        return Attempt.objects.get(pk=attempt.pk)


def both(school: School, other: School) -> User:
    """An instructor of the other class who is a student of this one."""
    made = school.enrolled("of-both")
    made.groups.set([role("Instructor")])
    other.of.instructors.add(made)
    return made


def crowd(school: School, number: int) -> list[Attempt]:
    """Attempts of so many students, a second apart."""
    moments = [NOON + timedelta(seconds=n) for n in range(number)]
    return [school.hand_in(moment, school.enrolled(f"student {n}")) for n, moment in enumerate(moments)]


def told(says: dict[str, Said] = WELL) -> list[tuple[Check, Result]]:
    """What a judging brings to the queue."""
    return [said.of_check(name) for name, said in says.items()]


def claimed(now: datetime = NOON, box: str = "box-a") -> Judging:
    taken = queue.claim(box, now)
    assert taken is not None
    return taken


def judge(attempt: Attempt, says: dict[str, Said], now: datetime = NOON, regrade: Regrade | None = None) -> Judging:
    """Goes through the queue as a worker does, until this attempt's judging has reached its end."""
    mine = attempt.judgings.get(regrade=regrade)

    def end(taken: Judging, moment: datetime) -> None:
        queue.finish(taken, told(says if taken.pk == mine.pk else WELL), VERSIONS, moment)

    return _ended(mine, now, end)


def break_off(attempt: Attempt, now: datetime = NOON) -> Judging:
    """The judge fails each time, before any check has said anything: the attempt is parked."""

    def end(taken: Judging, moment: datetime) -> None:
        queue.give_back(taken, "The desk stopped.", moment)

    return _ended(attempt.judgings.get(regrade=None), now, end)


def _ended(mine: Judging, now: datetime, end: Callable[[Judging, datetime], None]) -> Judging:
    for hours in range(20):
        if mine.state not in ("waiting", "running"):
            return mine
        moment = now + hours * timedelta(hours=1)
        end(claimed(moment), moment)
        mine.refresh_from_db()
    raise AssertionError("twenty tries, and no end")


def state(attempt: Attempt) -> str:
    return str(attempt.judgings.get(counts=True).state)
