"""One attempt: its receipt, how far the judge is, what each check said, and what people say of it."""

import json
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.utils.http import urlencode

from exercises.handed.checks import Outcome
from exercises.handed.exercise import there
from grading import forms, sight
from grading.admin.deeds import DEEDS, Slip, done
from grading.admin.exercises import HAND_IN, again
from grading.admin.regrade import PAGE as REGRADES
from grading.admin.words import STATES, TONES, in_zone, title_of
from grading.handin import Refused, standing
from grading.models import Attempt, Judging, State, Thread
from grading.sight import Seen, SeenCheck
from marlow.clock import real_now
from shop.admin.page import Page, render
from shop.words import count

UNDECIDED_YET = {State.WAITING, State.RUNNING}


@dataclass(frozen=True)
class Line:
    """One check on the page, with its second look and what was just refused of it."""

    check: SeenCheck
    tone: str
    evidence: str = ""
    thread: Thread | None = None
    may_ask: bool = False
    slip: Slip | None = None


def attempt_view(request: HttpRequest, attempt: int) -> HttpResponse:
    """To be looked at, and with a POST that says what to do, done. 404 for what the viewer may not see."""
    found = get_object_or_404(sight.attempts(request.user), pk=attempt)
    if request.method != "POST":
        return _page(request, found)
    said, slip = done(request, found)
    if slip is not None:
        return _page(request, found, slip)
    messages.success(request, said)
    check = request.POST.get("check", "")
    anchor = f"#check-{check}" if sight.seen(request.user, found, real_now()).check(check) else ""
    return redirect(reverse("admin:grading_attempt", args=[found.pk]) + anchor)


def answers_view(request: HttpRequest, attempt: int) -> HttpResponse:
    """For `manage.py judge`, which decides the same again. 404 for what the viewer may not see."""
    found = get_object_or_404(sight.attempts(request.user), pk=attempt)
    said = {"exercise": found.submission.assignment.exercise, "answers": found.answers}
    answer = JsonResponse(said, json_dumps_params={"indent": 2, "ensure_ascii": False})
    answer["Content-Disposition"] = 'attachment; filename="answers.json"'
    return answer


def _page(request: HttpRequest, attempt: Attempt, slip: Slip | None = None) -> HttpResponse:
    now, viewer = real_now(), request.user
    seen, assignment = sight.seen(viewer, attempt, now), attempt.submission.assignment
    title = f"Attempt {attempt.number}: {title_of(assignment.exercise)}"
    own = attempt.submission.student_id == viewer.pk
    words, tone = STATES[State(seen.state)]
    page = render(
        request,
        "admin/grading/attempt.html",
        title,
        attempt=attempt,
        assignment=assignment,
        exercise_title=title_of(assignment.exercise),
        received=in_zone(attempt.received_at, assignment.of.zone),
        seen=seen,
        own=own,
        state=words,
        state_tone=_tone(seen) or tone,
        passed=_passed(seen),
        moving=seen.state in UNDECIDED_YET,
        lines=_lines(request, attempt, seen, now, slip),
        slip=slip if slip and not slip.check else None,
        judging=_judging(viewer, attempt) if seen.teaching else None,
        again=again(attempt) if own and _may_again(request, attempt, now) else "",
        may={name: request.user.has_perm(deed.needs) for name, deed in DEEDS.items()},
        regrade=_regrade(request, attempt) if seen.teaching else "",
        **_answers(attempt),
    )
    page.status_code = 422 if slip else 200
    return page


def _shown(seen: Seen) -> list[SeenCheck]:
    return [check for check in seen.checks if check.outcome is not None]


def _passed(seen: Seen) -> str:
    """Of the checks whose outcome is shown: `2 of 3 checks passed`."""
    shown = _shown(seen)
    good = sum(check.outcome == Outcome.PASSED for check in shown)
    return f"{good} of {count(len(shown), 'check')} passed" if shown else ""


def _tone(seen: Seen) -> str:
    failed = any(check.outcome != Outcome.PASSED for check in _shown(seen))
    return "warn" if seen.state == State.DONE and failed else ""


def _lines(request: HttpRequest, attempt: Attempt, seen: Seen, now: datetime, slip: Slip | None) -> list[Line]:
    rows = sight.threads(request.user).filter(attempt=attempt).prefetch_related("posts__by")
    threads = {one.check_name: one for one in rows}
    asks = attempt.submission.student_id == request.user.pk and request.user.has_perm(DEEDS["ask"].needs)
    return [
        Line(
            check,
            TONES.get(check.outcome or "", ""),
            reverse("admin:grading_evidence", args=[attempt.pk, check.name]) if check.evidence else "",
            threads.get(check.name),
            asks and check.outcome is not None and check.name not in threads,
            slip if slip and slip.check == check.name else None,
        )
        for check in seen.checks
    ]


def _judging(viewer: Any, attempt: Attempt) -> Judging | None:
    return sight.judgings(viewer).filter(attempt=attempt, counts=True).first()


def _may_again(request: HttpRequest, attempt: Attempt, now: datetime) -> bool:
    try:
        return standing(request.user, attempt.submission.assignment, now).open and request.user.has_perm(HAND_IN)
    except Refused:
        return False


def _regrade(request: HttpRequest, attempt: Attempt) -> str:
    """Where it is begun, for whoever may begin one."""
    if not (REGRADES.open_to(request) and request.user.has_perm("grading.add_regrade")):
        return ""
    return f"{reverse(f'admin:{REGRADES.name}')}?{urlencode({'attempt': attempt.pk})}"


def _answers(attempt: Attempt) -> dict[str, Any]:
    """In the form as it is today; as JSON where that is another version's, or there is none any more."""
    exercise = there(attempt.submission.assignment.exercise)
    if exercise is None or attempt.answers_version != exercise.answers.VERSION:
        return {"raw": json.dumps(attempt.answers, indent=2, ensure_ascii=False)}
    return {"answers": forms.filled(exercise.answers, attempt.answers).nodes}


ATTEMPT = Page(
    "grading/attempts/<int:attempt>/",
    "grading_attempt",
    "An attempt, its checks and what people say of it",
    ("grading.view_attempt",),
    attempt_view,
    ("GET", "HEAD", "POST"),
)
ANSWERS = Page(
    "grading/attempts/<int:attempt>/answers.json",
    "grading_answers",
    "What was handed in, as a file that `judge` takes",
    ("grading.view_attempt",),
    answers_view,
)
PAGES = [ATTEMPT, ANSWERS]
