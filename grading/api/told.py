"""Rows as the interface tells them. What is withheld was decided in `grading.sight` before it comes here."""

from datetime import datetime
from typing import Any

from exercises.handed.exercise import exercise, there
from grading.grade import counted
from grading.handin import Refused, standing
from grading.models import Assignment, Attempt, GradeChange, State, Thread
from grading.sight import Seen, SeenCheck

GONE = "This exercise is not to be had just now."


def assignment(one: Assignment, viewer: Any, now: datetime) -> dict[str, Any]:
    found = there(one.exercise)
    return {
        "id": one.pk,
        "class_name": one.of.name,
        "exercise": one.exercise,
        "title": found.title if found else GONE,
        "points": found.points if found else 0,
        "opens_at": one.opens_at,
        "standing": _standing(one, viewer, now),
    }


def asked(one: Assignment, reads: bool) -> dict[str, Any]:
    """What its students are asked, where this viewer may read it by now. Raises NoExercise."""
    found = exercise(one.exercise)
    return {
        "statement": found.statement if reads else None,
        "answers_version": found.answers.VERSION,
        "answers_schema": found.answers.model_json_schema() if reads else None,
    }


def _standing(one: Assignment, viewer: Any, now: datetime) -> dict[str, Any] | None:
    try:
        found = standing(viewer, one, now)
    except Refused:
        return None
    return {**vars(found), "open": found.open}


def receipt(one: Attempt) -> dict[str, Any]:
    given = one.submission.assignment
    return {
        "receipt": one.receipt,
        "assignment": given.pk,
        "exercise": given.exercise,
        "class_name": given.of.name,
        "student": one.submission.student.get_username(),
        **{name: getattr(one, name) for name in ("number", "sha256", "received_at", "late", "through")},
    }


def attempt(one: Attempt) -> dict[str, Any]:
    judging = counted(one)
    return {**receipt(one), "state": judging.state if judging else State.WAITING}


def seen(one: Attempt, found: Seen) -> dict[str, Any]:
    same = ("state", "doing", "position", "of", "points", "complete", "comment", "versions")
    return {
        **receipt(one),
        **{name: getattr(found, name) for name in same},
        "answers": one.answers,
        "checks": [check(each) for each in found.checks],
        "taken_off_for_lateness": found.late,
        "changes": [_change(each) for each in found.changes],
    }


def check(one: SeenCheck) -> dict[str, Any]:
    names = ("name", "title", "of", "outcome", "sentence", "points", "reason", "evidence", "withheld")
    return {name: getattr(one, name) for name in names}


def _change(one: GradeChange) -> dict[str, Any]:
    words = {name: getattr(one, name) for name in ("what", "before", "after", "why", "at")}
    return {**words, "by": one.by.get_username() if one.by else None}


def thread(one: Thread) -> dict[str, Any]:
    return {
        "id": one.pk,
        "receipt": one.attempt.receipt,
        "check": one.check_name,
        "open": one.open,
        "opened_at": one.opened_at,
        "posts": [{"by": post.by.get_username(), "text": post.text, "at": post.at} for post in one.posts.all()],
    }
