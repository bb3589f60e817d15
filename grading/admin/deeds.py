"""What can be done on an attempt's page: each deed with the permission it needs. Whose attempt it is, the rooms
behind these doors ask for themselves.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest
from django.shortcuts import get_object_or_404

from grading import review, sight, threads
from grading.grade import MADE, counting, points_of
from grading.models import Attempt, Submission, Thread
from grading.review import NotAReview
from grading.threads import NotAPost
from marlow.clock import real_now


@dataclass(frozen=True)
class Slip:
    """What was refused, with the sentence and all that had been typed."""

    deed: str
    problem: str
    check: str
    text: str
    points: str
    reason: str


@dataclass(frozen=True)
class Deed:
    """`do` returns what was done, in words. Raises NotAReview, NotAPost, PermissionDenied."""

    needs: str
    do: Callable[[HttpRequest, Attempt], str]


def done(request: HttpRequest, attempt: Attempt) -> tuple[str, Slip | None]:
    """What was done, or why it was not. Raises PermissionDenied."""
    said = request.POST
    name = said.get("do", "")
    if name not in DEEDS:
        return "", _slip(name, "Nothing was done: use one of the buttons of this page.", said)
    if not request.user.has_perm(DEEDS[name].needs):
        raise PermissionDenied
    try:
        return DEEDS[name].do(request, attempt), None
    except (NotAReview, NotAPost) as refused:
        return "", _slip(name, str(refused), said)


def _slip(deed: str, problem: str, said: Any) -> Slip:
    return Slip(deed, problem, *(said.get(name, "") for name in ("check", "text", "points", "reason")))


def _override(request: HttpRequest, attempt: Attempt) -> str:
    said = request.POST
    if not re.fullmatch("[0-9]{1,5}", points := said.get("points", "").strip()):
        raise NotAReview("Give whole points, in digits.")
    check = said.get("check", "")
    item = review.override(attempt, check, int(points), said.get("reason", ""), by=request.user, now=real_now())
    given = f"{item.points} of {item.of} points are given; the student sees them with the release."
    return f"{given}{_beside(attempt)}"


def _beside(attempt: Attempt) -> str:
    """Where another attempt is the grade."""
    submission = Submission.objects.select_related("assignment").prefetch_related(*MADE).get(pk=attempt.submission_id)
    other = counting(submission)
    if other is None or other.pk == attempt.pk:
        return ""
    points = points_of(other)
    return f" The grade stays: attempt {other.number} counts, with {points.total} of {points.of}."


def _withdraw(request: HttpRequest, attempt: Attempt) -> str:
    said = request.POST
    review.withdraw(attempt, said.get("check", ""), said.get("reason", ""), by=request.user, now=real_now())
    return "The machine’s points stand again."


def _comment(request: HttpRequest, attempt: Attempt) -> str:
    review.comment(attempt, request.POST.get("text", ""), by=request.user, now=real_now())
    return "The comment is kept; the student sees it with the release."


def _again(request: HttpRequest, attempt: Attempt) -> str:
    judging = get_object_or_404(sight.judgings(request.user), attempt=attempt, counts=True)
    if not review.again(judging, by=request.user, now=real_now()):
        raise NotAReview("It is not parked any more: look at its state above.")
    return "It waits for the judge once more."


def _ask(request: HttpRequest, attempt: Attempt) -> str:
    said = request.POST
    threads.open_thread(attempt, said.get("check", ""), said.get("text", ""), by=request.user, now=real_now())
    return "You asked for a second look; the answer comes here."


def _post(request: HttpRequest, attempt: Attempt) -> str:
    threads.post(_thread(request, attempt), request.POST.get("text", ""), by=request.user, now=real_now())
    return "Said."


def _answer(request: HttpRequest, attempt: Attempt) -> str:
    said = request.POST
    threads.answer(
        _thread(request, attempt), said.get("text", ""), seen=_seen(request), by=request.user, now=real_now()
    )
    return "Answered and closed."


def _close(request: HttpRequest, attempt: Attempt) -> str:
    threads.close(_thread(request, attempt), seen=_seen(request), by=request.user, now=real_now())
    return "Closed. A post of the student opens it again."


def _reopen(request: HttpRequest, attempt: Attempt) -> str:
    threads.reopen(_thread(request, attempt), by=request.user, now=real_now())
    return "Open again."


def _seen(request: HttpRequest) -> int:
    """How many posts the page showed."""
    said = request.POST.get("seen", "")
    return int(said) if re.fullmatch("[0-9]{1,5}", said) else 0


def _thread(request: HttpRequest, attempt: Attempt) -> Thread:
    rows = sight.threads(request.user).filter(attempt=attempt)
    return get_object_or_404(rows, check_name=request.POST.get("check", ""))


DEEDS = {
    "override": Deed("grading.change_review", _override),
    "withdraw": Deed("grading.change_review", _withdraw),
    "comment": Deed("grading.change_review", _comment),
    "again": Deed("grading.change_review", _again),
    "ask": Deed("grading.add_threadpost", _ask),
    "post": Deed("grading.add_threadpost", _post),
    "answer": Deed("grading.add_threadpost", _answer),
    "close": Deed("grading.add_threadpost", _close),
    "reopen": Deed("grading.add_threadpost", _reopen),
}
