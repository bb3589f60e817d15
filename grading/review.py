"""What people make of an attempt, and when students see it. Each change writes its history in the same transaction.

Arbiter: the attempt's row lock, so that two at once both stand in the history, one after the other.
"""

from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import Q

from grading import queue
from grading.grade import items_of, results_of, told
from grading.models import Assignment, Attempt, Class, GradeChange, Judging, Release, Review, ReviewItem
from grading.sight import demand_teaches

LONGEST = {"reason": 400, "comment": 10_000}  # characters


class NotAReview(ValueError):
    """It makes no sense. Says what would."""


def override(attempt: Attempt, check_name: str, points: int, reason: str, *, by: Any, now: datetime) -> ReviewItem:
    """These points instead of the machine's, with a reason. The same twice changes nothing. Raises NotYours,
    NotAReview.
    """
    demand_teaches(by, attempt.submission.assignment.of)
    reason = _text(reason, "reason")
    if not reason:
        raise NotAReview("Say why: a student may ask.")
    with transaction.atomic():
        attempt = _locked(attempt)
        result = next((one for one in results_of(attempt) if one.name == check_name), None)
        if result is None:
            raise NotAReview(f"There is no check {check_name!r} in this attempt’s results.")
        if not 0 <= points <= result.of:
            raise NotAReview(f"{points} points are not to be had: give from 0 to {result.of}.")
        old = items_of(attempt).get(check_name)
        if old is not None and (old.points, old.reason, old.disagrees) == (points, reason, False):
            return old
        review, _ = Review.objects.get_or_create(attempt=attempt, defaults={"by": by, "at": now})
        item, _ = ReviewItem.objects.update_or_create(
            review=review,
            check_name=check_name,
            defaults={
                "points": points,
                "of": result.of,
                "reason": reason,
                "outcome": result.outcome,
                "machine": result.points,
                "disagrees": False,
            },
        )
        Review.objects.filter(pk=review.pk).update(by=by, at=now)
        before = f"{old.points} of {old.of}" if old else told(result)
        _enter(attempt, check_name, before, f"{points} of {result.of}", reason, by, now)
    return item


def withdraw(attempt: Attempt, check_name: str, reason: str, *, by: Any, now: datetime) -> None:
    """The machine's points again. Raises NotYours, NotAReview."""
    demand_teaches(by, attempt.submission.assignment.of)
    if not (reason := _text(reason, "reason")):
        raise NotAReview("Say why: a student may ask.")
    with transaction.atomic():
        attempt = _locked(attempt)
        item = items_of(attempt).get(check_name)
        if item is None:
            return
        item.delete()
        result = next((one for one in results_of(attempt) if one.name == check_name), None)
        after = told(result) or "nothing"
        _enter(attempt, check_name, f"{item.points} of {item.of}", after, reason, by, now)


def comment(attempt: Attempt, text: str, *, by: Any, now: datetime) -> None:
    """For the student, with the release. The same text changes nothing. Raises NotYours, NotAReview."""
    demand_teaches(by, attempt.submission.assignment.of)
    text = _text(text, "comment")
    with transaction.atomic():
        attempt = _locked(attempt)
        review = Review.objects.filter(attempt=attempt).first() or Review(attempt=attempt)
        if (before := review.comment) == text:
            return
        review.comment, review.by, review.at = text, by, now
        review.save()
        after = "written" if text else "taken back"
        _enter(attempt, "comment", "written" if before else "", after, "a comment", by, now)


def again(judging: Judging, *, by: Any, now: datetime) -> bool:
    """Let the machine try a parked judging once more. False: it is not parked, or would not be asked for any more,
    since a later one counts or its regrade is over. Raises NotYours.
    """
    demand_teaches(by, judging.attempt.submission.assignment.of)
    open_ = Q(regrade__isnull=False, regrade__applied_at=None, regrade__dropped_at=None)
    rows = Judging.objects.select_for_update(of=("self",), no_key=True)
    with transaction.atomic():
        held = rows.filter(Q(counts=True) | open_, pk=judging.pk).first()
        return held is not None and queue.unpark(held, now)


def release(assignment: Assignment, *, by: Any, now: datetime) -> Release:
    """Show its grades. Those that are shown already stay so: `released_once` decides, and the assignment's row lock
    between this and a taking back. Raises NotYours.
    """
    demand_teaches(by, assignment.of)
    with transaction.atomic():
        _lock(assignment)
        Release.objects.bulk_create([Release(assignment=assignment, by=by, at=now)], ignore_conflicts=True)
        return Release.objects.get(assignment=assignment, undone_at=None)


def release_all(of: Class, *, by: Any, now: datetime) -> list[Release]:
    """The grades of every assignment of a class, at once. Raises NotYours."""
    demand_teaches(by, of)
    with transaction.atomic():
        return [release(assignment, by=by, now=now) for assignment in of.assignments.order_by("pk")]


def take_back(assignment: Assignment, *, by: Any, now: datetime) -> bool:
    """Hide the grades again; the release stays on record. False: they were hidden. Raises NotYours."""
    demand_teaches(by, assignment.of)
    with transaction.atomic():
        _lock(assignment)
        return bool(Release.objects.filter(assignment=assignment, undone_at=None).update(undone_at=now, undone_by=by))


def _lock(assignment: Assignment) -> None:
    Assignment.objects.select_for_update(of=("self",), no_key=True).get(pk=assignment.pk)


def _locked(attempt: Attempt) -> Attempt:
    rows = Attempt.objects.select_for_update(of=("self",), no_key=True)
    return rows.select_related("submission__assignment").get(pk=attempt.pk)


def _text(text: str, what: str) -> str:
    text = text.replace("\x00", "").strip()
    if len(text) > LONGEST[what]:
        raise NotAReview(f"This {what} is {len(text):,} characters long: {LONGEST[what]:,} are taken at the most.")
    return text


def _enter(attempt: Attempt, what: str, before: str, after: str, why: str, by: Any, now: datetime) -> None:
    GradeChange.objects.create(attempt=attempt, what=what, before=before, after=after, why=why, by=by, at=now)
