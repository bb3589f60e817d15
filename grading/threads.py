"""A second look: a student asks about one check, an instructor answers there, and it is closed or open.

Arbiters: `one_thread_a_check`, and the thread's row lock between a post and a close.
"""

from datetime import datetime
from typing import Any

from django.db import transaction

from grading.models import Attempt, Thread, ThreadPost
from grading.sight import NotYours, demand_teaches, seen, teaches

LONGEST = 4000  # characters of one post
MOST = 200  # posts of one thread


class NotAPost(ValueError):
    """It can't be said like this. Says how it can."""


def open_thread(attempt: Attempt, check_name: str, text: str, *, by: Any, now: datetime) -> Thread:
    """Ask about a check that one can see. Where there is a thread already, it goes on there. Raises NotYours,
    NotAPost. The same sent twice is said once.
    """
    if attempt.submission.student_id != by.pk:
        raise NotYours("Only the student whose attempt it is asks for a second look.")
    check = seen(by, attempt, now).check(check_name)
    if check is None or check.outcome is None:
        raise NotAPost("This check shows nothing yet that could be asked about.")
    text = _text(text)
    with transaction.atomic():
        Thread.objects.bulk_create(
            [Thread(attempt=attempt, check_name=check_name, opened_at=now)], ignore_conflicts=True
        )
        return _said(Thread.objects.get(attempt=attempt, check_name=check_name), text, by, now)


def post(thread: Thread, text: str, *, by: Any, now: datetime) -> Thread:
    """A student's post opens a closed thread again. Raises NotYours, NotAPost."""
    submission = thread.attempt.submission
    if submission.student_id != by.pk or not by.is_active:
        demand_teaches(by, submission.assignment.of)
    elif not submission.assignment.of.enrolments.filter(student=by.pk).exists():
        raise NotYours("You are not in this class any more.")
    text = _text(text)
    with transaction.atomic():
        return _said(thread, text, by, now)


def answer(thread: Thread, text: str, *, seen: int | None = None, by: Any, now: datetime) -> Thread:
    """An instructor's last word, and closed with it. `seen`: as for `close`. Raises NotYours, NotAPost."""
    demand_teaches(by, thread.attempt.submission.assignment.of)
    text = _text(text)
    with transaction.atomic():
        if not _sent_twice(held := _locked(thread), text, by):
            _demand_read(held, seen)
            held = _said(held, text, by, now)
        _close(held, by, now)
    return held


def close(thread: Thread, *, seen: int | None = None, by: Any, now: datetime) -> None:
    """Answered. Closed twice stays as it was closed first. `seen`: how many posts whoever closes has read; where
    there are more by now it stays open. Raises NotYours, NotAPost.
    """
    demand_teaches(by, thread.attempt.submission.assignment.of)
    with transaction.atomic():
        held = _locked(thread)
        _demand_read(held, seen)
        _close(held, by, now)


def reopen(thread: Thread, *, by: Any, now: datetime) -> None:
    """For an instructor; a student says something, and that opens it. Raises NotYours."""
    demand_teaches(by, thread.attempt.submission.assignment.of)
    Thread.objects.filter(pk=thread.pk).update(closed_at=None, closed_by=None)


def _locked(thread: Thread) -> Thread:
    return Thread.objects.select_for_update(of=("self",), no_key=True).get(pk=thread.pk)


def _close(held: Thread, by: Any, now: datetime) -> None:
    Thread.objects.filter(pk=held.pk, closed_at=None).update(closed_at=now, closed_by=by)


def _demand_read(held: Thread, seen: int | None) -> None:
    if seen is not None and held.posts.count() > seen:
        raise NotAPost("Somebody has written here since you looked: read it, then close.")


def _sent_twice(held: Thread, text: str, by: Any) -> bool:
    last = held.posts.last()
    return last is not None and (last.by_id, last.text) == (by.pk, text)


def _said(thread: Thread, text: str, by: Any, now: datetime) -> Thread:
    thread = _locked(thread)
    if _sent_twice(thread, text, by):
        return thread
    if thread.posts.count() >= MOST:
        raise NotAPost("This thread is full: speak to your instructor.")
    ThreadPost.objects.create(thread=thread, by=by, text=text, at=now)
    if not thread.open and not teaches(by, thread.attempt.submission.assignment.of):
        thread.closed_at = thread.closed_by = None
        thread.save(update_fields=["closed_at", "closed_by"])
    return thread


def _text(text: str) -> str:
    text = text.replace("\x00", "").strip()
    if not text:
        raise NotAPost("There is nothing in it: write something, then send it.")
    if len(text) > LONGEST:
        raise NotAPost(f"This is {len(text):,} characters long: {LONGEST:,} are taken at the most.")
    return text
