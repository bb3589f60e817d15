"""Who may see what: page, interface, command, export, history and evidence all ask here, and nowhere else.

A student sees their own work in the classes they are enrolled in; an instructor everything of the classes they
teach; a superuser everything; everybody else nothing. Before the release a student sees no points, no comment and no
history; of a hidden check its outcome with the release, and what it ran never.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar

from django.core.exceptions import PermissionDenied
from django.db.models import Model, Q, QuerySet

from exercises.handed.checks import Shown
from exercises.handed.exercise import there
from grading import queue
from grading.deadline import closes_for
from grading.grade import OPEN, WORK, counted, given, items_of, points_of, results_of
from grading.models import (
    Assignment,
    Attempt,
    CheckResult,
    Class,
    Extension,
    GradeChange,
    Judging,
    Release,
    ReviewItem,
    State,
    Submission,
    Thread,
)

LATER, WITH_RELEASE, NEVER = (
    "shown when nothing is taken any more",
    "shown with the grades",
    "a hidden check: what it ran is not shown",
)


A_HIDDEN_CHECK = "A hidden check"

Rows = TypeVar("Rows", bound=Model)


class NotYours(PermissionDenied):
    """This is somebody else's to see or to do. Says whose."""


@dataclass(frozen=True)
class SeenCheck:
    """As this viewer sees it; None is withheld, and `withheld` says until when. `points` are a person's where there
    are some, with their `reason`, nobody's where the machine decided nothing; `disagrees`: it says otherwise since.
    """

    name: str
    title: str
    of: int
    outcome: str | None = None
    sentence: str | None = None
    points: int | None = None
    machine: int | None = None
    reason: str | None = None
    disagrees: bool = False
    evidence: dict[str, Any] | None = None
    withheld: str = ""

    @property
    def decided(self) -> bool:
        """By the machine."""
        return self.outcome is not None and self.outcome not in OPEN


@dataclass(frozen=True)
class Seen:
    """One attempt as this viewer sees it. `versions`: by which checks it was judged, with which seed."""

    state: str
    doing: str
    position: int | None
    checks: Sequence[SeenCheck]
    of: int
    points: int | None = None
    late: int | None = None
    complete: bool | None = None
    comment: str | None = None
    changes: Sequence[GradeChange] = ()
    versions: str = ""
    teaching: bool = False
    released: bool = False

    def check(self, name: str) -> SeenCheck | None:
        return next((one for one in self.checks if one.name == name), None)


def classes(viewer: Any) -> QuerySet[Class]:
    return _of(Class.objects.all(), viewer, "")


def taught(viewer: Any) -> QuerySet[Class]:
    """Where they may grade."""
    if not viewer.is_active:
        return Class.objects.none()
    return Class.objects.all() if viewer.is_superuser else Class.objects.filter(instructors=viewer.pk)


def assignments(viewer: Any) -> QuerySet[Assignment]:
    return _of(Assignment.objects.select_related("of"), viewer, "of__")


def assigned(viewer: Any) -> QuerySet[Assignment]:
    """To the classes that they teach."""
    return assignments(viewer).filter(of__in=taught(viewer))


def submissions(viewer: Any) -> QuerySet[Submission]:
    return _work(Submission.objects.select_related("assignment__of", "student"), viewer, "")


def attempts(viewer: Any) -> QuerySet[Attempt]:
    rows = Attempt.objects.select_related("submission__assignment__of", "submission__student")
    return _work(rows, viewer, "submission__")


def judgings(viewer: Any) -> QuerySet[Judging]:
    """A student sees the one that counts: not what a regrade would say, and not what said something before it. Its
    results are shown by `seen` alone, and its `failed` is for who `teaches`.
    """
    rows = Judging.objects.select_related("attempt__submission__assignment")
    return _work(rows, viewer, "attempt__submission__", counts=True)


def threads(viewer: Any) -> QuerySet[Thread]:
    return _work(
        Thread.objects.select_related("attempt__submission__assignment__of"), viewer, "attempt__submission__"
    )


def awaits(viewer: Any) -> list[Attempt]:
    """Attempts of the classes that they teach on which somebody waits for them, the longest wait first: a second look
    is open, or the judge is done with it and a check has nobody's points.
    """
    rows = Attempt.objects.filter(submission__assignment__of__in=taught(viewer)).order_by("received_at", "pk")
    asked = rows.filter(threads__closed_at=None, threads__isnull=False)
    left = Q(judgings__results__outcome__in=OPEN) | Q(judgings__state=State.PARKED)
    undecided = rows.filter(left, judgings__counts=True, judgings__state__in=[State.DONE, State.PARKED])
    found = rows.filter(Q(pk__in=asked) | Q(pk__in=undecided)).select_related("submission__assignment__of")
    wait = set(asked.values_list("pk", flat=True))
    return [
        one
        for one in found.select_related("submission__student").prefetch_related(*WORK)
        if one.pk in wait or not points_of(one).complete
    ]


def teaches(viewer: Any, of: Class) -> bool:
    return bool(taught(viewer).filter(pk=of.pk).exists())


def demand_teaches(viewer: Any, of: Class) -> None:
    """Raises NotYours."""
    if not teaches(viewer, of):
        raise NotYours(f"Only an instructor of {of} may do this.")


def released(assignment: Assignment) -> bool:
    return Release.objects.filter(assignment=assignment, undone_at=None).exists()


def reads(viewer: Any, assignment: Assignment, now: datetime) -> bool:
    """Its statement and its form, of the assignments that they see at all: students from its opening on."""
    return now >= assignment.opens_at or teaches(viewer, assignment.of)


def sees_grades(viewer: Any, assignment: Assignment) -> bool:
    """Of the attempts that they see at all: instructors always, students with the release."""
    return teaches(viewer, assignment.of) or released(assignment)


def seen(viewer: Any, attempt: Attempt, now: datetime) -> Seen:
    """Raises NotYours."""
    light = _light(viewer, attempt, now)
    judging, results, items = counted(attempt), results_of(attempt), items_of(attempt)
    points, review = points_of(attempt), getattr(attempt, "review", None)
    graded = light.grades and bool(results)
    return Seen(
        state=judging.state if judging else State.WAITING,
        doing=judging.doing if judging and judging.state == State.RUNNING and _in_words(attempt, light) else "",
        position=queue.position(judging) if judging else None,
        checks=[_check(one, items.get(one.name), light) for one in results],
        of=points.of or _worth(attempt),
        points=points.total if graded else None,
        late=points.late if graded else None,
        complete=points.complete if graded else None,
        comment=review.comment if light.grades and review else None,
        changes=list(attempt.changes.select_related("by")) if light.grades else (),
        versions=_versions(judging) if judging and judging.state == State.DONE else "",
        teaching=light.teaching,
        released=light.released,
    )


@dataclass(frozen=True)
class Light:
    """What decides how much is seen: who looks, what is released, and whether this student can hand in no more."""

    teaching: bool
    released: bool
    over: bool
    early: bool

    @property
    def grades(self) -> bool:
        return self.teaching or self.released

    def falls_on(self, result: CheckResult) -> bool:
        """Whether anything of it is seen."""
        if self.grades:
            return True
        return result.shown != Shown.HIDDEN and (self.over or (self.early and result.shown == Shown.ALWAYS))


def _light(viewer: Any, attempt: Attempt, now: datetime) -> Light:
    assignment = attempt.submission.assignment
    teaching = teaches(viewer, assignment.of)
    if not teaching and not attempts(viewer).filter(pk=attempt.pk).exists():
        raise NotYours("This attempt is somebody else’s.")
    return Light(teaching, released(assignment), now > _closes(attempt), assignment.checks_before_due)


def _check(result: CheckResult, item: ReviewItem | None, light: Light) -> SeenCheck:
    hidden = result.shown == Shown.HIDDEN and not light.teaching
    if not light.falls_on(result):
        if hidden:
            return SeenCheck(f"hidden-{result.place}", A_HIDDEN_CHECK, result.of, withheld=WITH_RELEASE)
        return SeenCheck(result.name, result.title, result.of, withheld=LATER)
    return SeenCheck(
        result.name,
        result.title,
        result.of,
        outcome=result.outcome,
        sentence=None if hidden else result.sentence,
        points=given(result, item) if light.grades and (item or result.outcome not in OPEN) else None,
        machine=result.points if light.grades and result.outcome not in OPEN else None,
        reason=item.reason if light.grades and item else None,
        disagrees=item.disagrees if light.teaching and item else False,
        evidence=None if hidden else result.evidence,
        withheld=NEVER if hidden else "",
    )


def _in_words(attempt: Attempt, light: Light) -> bool:
    """Whether what is being done may be told: it would name a hidden check while that is at work."""
    found = there(attempt.submission.assignment.exercise)
    return light.teaching or (found is not None and all(check.shown != Shown.HIDDEN for check in found.checks))


def _worth(attempt: Attempt) -> int:
    found = there(attempt.submission.assignment.exercise)
    return found.points if found else 0


def _versions(judging: Judging) -> str:
    return f"checks {judging.checks_version} ({judging.digest}), Marlow {judging.marlow}, seed {judging.seed}"


def _closes(attempt: Attempt) -> datetime:
    submission = attempt.submission
    extension = Extension.objects.filter(assignment=submission.assignment_id, student=submission.student_id).first()
    return closes_for(submission.assignment, extension)


def _of(rows: QuerySet[Rows], viewer: Any, path: str) -> QuerySet[Rows]:
    """Those of the viewer's classes, by whichever role."""
    if not viewer.is_active:
        return rows.none()
    if viewer.is_superuser:
        return rows
    theirs = Class.objects.filter(Q(enrolments__student=viewer.pk) | Q(instructors=viewer.pk))
    return rows.filter(**{f"{path}pk__in": theirs.values("pk")})


def _work(rows: QuerySet[Rows], viewer: Any, path: str, **own: Any) -> QuerySet[Rows]:
    """A student's own, in classes they are in, where `own` holds; all of the classes that an instructor teaches."""
    if not viewer.is_active:
        return rows.none()
    if viewer.is_superuser:
        return rows
    attended = Class.objects.filter(enrolments__student=viewer.pk)
    mine = Q(**{f"{path}student": viewer.pk, f"{path}assignment__of__in": attended}, **own)
    return rows.filter(mine | Q(**{f"{path}assignment__of__in": taught(viewer)}))
