"""Handing in. What was acknowledged is in the database: the receipt is told after the commit, never before.

Arbiters: the submission's row lock numbers the attempts, and `attempts_are_numbered` would refuse a second one of a
number; the rules (open, attempts left, cooldown) are read under that lock. A receipt that whoever hands in has chosen
stands for one attempt: its unique constraint decides between students, and the row lock between two of one student.

    one                          the same again              another student, the same receipt
    locks the row, finds none    waits for the row           locks a row of their own, finds none
    inserts                                                  waits for the constraint
    commits                      finds it, and returns it    is refused
"""

import hashlib
import json
import uuid
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.contrib.auth.models import AbstractBaseUser
from django.db import IntegrityError, transaction

from exercises.handed.answers import Answers, read
from exercises.handed.exercise import NoExercise, exercise
from grading import queue
from grading.deadline import closes_for, days_late, due_for
from grading.models import Assignment, Attempt, Enrolment, Extension, Submission
from grading.sight import attempts


class NoReceipt(LookupError):
    """Nothing that this person may see was acknowledged so."""


class Refused(Exception):
    """It was not taken, with a sentence. `code`: stranger, gone, not open yet, closed, no attempts left, too soon,
    receipt taken, other answers.
    """

    def __init__(self, code: str, sentence: str) -> None:
        super().__init__(sentence)
        self.code = code


@dataclass(frozen=True)
class Standing:
    """Where one student stands with one assignment. `left`: attempts, None: any number; `code` is empty where the
    next attempt would be taken now, else as `Refused` has it; `days_late`: what it would be charged now.
    """

    due: datetime
    closes: datetime
    zone: str
    made: int
    left: int | None
    not_before: datetime | None
    days_late: int
    code: str = ""
    why: str = ""

    @property
    def open(self) -> bool:
        return not self.code


def hand_in(
    student: Any, assignment: Assignment, given: Any, *, now: datetime, through: str, receipt: uuid.UUID | None = None
) -> Attempt:
    """Takes these answers, and returns once they are committed and in the queue. Raises NotAnswers, Refused.

    `receipt`: chosen by whoever hands in, who can then send the same again where no answer came. If it was taken
    before, that attempt is returned, whatever the rules say by now: its `received_at` is not this `now`.

    Not to be called within a transaction: an acknowledgement could then be rolled back.
    """
    try:
        return _handed_in(student, assignment, given, now, through, receipt)
    except IntegrityError as refused:
        if receipt is None or not Attempt.objects.filter(receipt=receipt).exists():
            raise
        raise Refused("receipt taken", "This receipt is taken: hand in under a fresh one.") from refused


def _handed_in(
    student: Any, assignment: Assignment, given: Any, now: datetime, through: str, receipt: uuid.UUID | None
) -> Attempt:
    with transaction.atomic(durable=True):
        submission = _locked(student, assignment)
        if (before := _before(submission, given, receipt)) is not None:
            return before
        standing = _standing(submission, now)
        if not standing.open:
            raise Refused(standing.code, standing.why)
        answers = read(_type(assignment), given)
        attempt = Attempt.objects.create(
            submission=submission,
            number=_next(submission),
            receipt=receipt or uuid.uuid4(),
            answers=answers.model_dump(mode="json"),
            answers_version=answers.VERSION,
            sha256=digest(answers),
            through=through,
            received_at=now,
            late=standing.days_late,
        )
        queue.ask(attempt, now)
    return attempt


def _before(submission: Submission, given: Any, receipt: uuid.UUID | None) -> Attempt | None:
    """What was made under this receipt. A form that the browser went back to has the receipt of before, and may say
    something else by now: that is not passed over in silence. Raises NotAnswers, Refused.
    """
    made = submission.made.filter(receipt=receipt).first() if receipt else None
    if made is not None and digest(read(_type(submission.assignment), given)) != made.sha256:
        sentence = f"Attempt {made.number} has this receipt, and other answers: hand these in under a fresh one."
        raise Refused("other answers", sentence)
    return made


def receipt(viewer: Any, number: Any) -> Attempt:
    """The attempt that was acknowledged with this number: its `number`, `sha256` and `received_at` are the receipt's.
    Raises NoReceipt.
    """
    try:
        found = attempts(viewer).filter(receipt=uuid.UUID(str(number))).first()
    except ValueError:
        found = None
    if found is None:
        raise NoReceipt("There is no such receipt of yours: copy its number as it was shown, hyphens and all.")
    return found


def _type(assignment: Assignment) -> type[Answers]:
    try:
        return exercise(assignment.exercise).answers
    except NoExercise as gone:
        raise Refused("gone", "This exercise is not to be had just now: tell your instructor.") from gone


def digest(answers: Answers) -> str:
    """SHA-256 of the answers as canonical JSON: sorted names, no spaces, UTF-8."""
    text = json.dumps(answers.model_dump(mode="json"), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def standing(student: Any, assignment: Assignment, now: datetime) -> Standing:
    """What the next attempt would meet. Raises Refused for who is not enrolled."""
    _demand_enrolled(student, assignment)
    submission = Submission.objects.filter(assignment=assignment, student=student).first()
    return _standing(submission or Submission(assignment=assignment, student=student), now)


def _demand_enrolled(student: AbstractBaseUser, assignment: Assignment) -> None:
    if not (student.is_active and Enrolment.objects.filter(of=assignment.of_id, student=student.pk).exists()):
        raise Refused("stranger", "You are not in this class: ask its instructor to enrol you.")


def _locked(student: Any, assignment: Assignment) -> Submission:
    """The student's one submission, made where there is none, with its row locked until the end."""
    _demand_enrolled(student, assignment)
    Submission.objects.bulk_create([Submission(assignment=assignment, student=student)], ignore_conflicts=True)
    locked = Submission.objects.select_for_update(of=("self",), no_key=True).select_related("assignment__of")
    return locked.get(assignment=assignment, student=student)


def _next(submission: Submission) -> int:
    last = submission.made.order_by("-number").values_list("number", flat=True).first()
    return (last or 0) + 1


def _standing(submission: Submission, now: datetime) -> Standing:
    assignment, zone = submission.assignment, submission.assignment.of.zone
    extension = Extension.objects.filter(assignment=assignment, student=submission.student_id).first()
    due, closes = due_for(assignment, extension), closes_for(assignment, extension)
    made = list(submission.made.order_by("-number")) if submission.pk else []
    cost = sum(attempt.costs for attempt in made)
    allowed = None if assignment.attempts is None else assignment.attempts + (extension.attempts if extension else 0)
    left = None if allowed is None else max(0, allowed - cost)
    # Also after one that cost no number: whoever makes a judge fail could otherwise do so without end.
    wait = made[0].received_at + timedelta(seconds=assignment.cooldown) if made and assignment.cooldown else None
    not_before = wait if wait is not None and wait > now else None
    code, why = _refusal(assignment, now, closes, left, not_before)
    return Standing(due, closes, zone, len(made), left, not_before, days_late(due, now, zone), code, why)


def _refusal(
    assignment: Assignment, now: datetime, closes: datetime, left: int | None, not_before: datetime | None
) -> tuple[str, str]:
    if now < assignment.opens_at:
        return "not open yet", "This exercise is not open yet: come back when it is."
    if now > closes:
        return "closed", "The deadline is over and nothing is taken any more: ask your instructor for an extension."
    if left == 0:
        return "no attempts left", "You have no attempts left: ask your instructor for more."
    if not_before is not None:
        seconds = int((not_before - now).total_seconds()) + 1
        return "too soon", f"Your last attempt was a moment ago: hand in again in {seconds} s."
    return "", ""
