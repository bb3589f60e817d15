"""The run that decided a check: drawn, told, and how to play it again."""

from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404

from exercises.admin.course import story
from grading import sight
from grading.admin.words import TONES, title_of
from marlow.clock import real_now
from shop.admin.page import Page, render


def evidence_view(request: HttpRequest, attempt: int, check: str) -> HttpResponse:
    """404 for an attempt that the viewer may not see, and for a check whose run is not shown to them."""
    found = get_object_or_404(sight.attempts(request.user), pk=attempt)
    seen = sight.seen(request.user, found, real_now())
    line = seen.check(check)
    if line is None or line.evidence is None:
        raise Http404("There is no run of such a check, or it is not shown yet.")
    return render(
        request,
        "admin/grading/evidence.html",
        line.title,
        attempt=found,
        assignment=found.submission.assignment,
        exercise_title=title_of(found.submission.assignment.exercise),
        check=line,
        decided=line.decided,
        tone=TONES.get(line.outcome or "", ""),
        versions=seen.versions,
        **_told(line.evidence),
    )


def _told(evidence: dict[str, Any]) -> dict[str, Any]:
    """`again` is the command's line without `manage.py`."""
    verdict = evidence.get("verdict")
    lock = str(verdict.get("lock", "")) if isinstance(verdict, dict) else ""
    wrong = [str(one) for one in evidence.get("wrong") or []]
    return {
        "evidence": str(evidence.get("text") or ""),
        "command": str(evidence.get("again") or ""),
        "schedule": str(evidence.get("schedule") or ""),
        "wrong": wrong,
        "journal": verdict,
        **story(verdict, evidence.get("steps") or [], lock, wrong),
    }


EVIDENCE = Page(
    "grading/attempts/<int:attempt>/<slug:check>/",
    "grading_evidence",
    "The run that decided a check",
    ("grading.view_attempt",),
    evidence_view,
)
PAGES = [EVIDENCE]
