"""Judging over again: begun with a reason, looked at before it counts, then applied or dropped; and its history."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db.models import Count, Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse

from grading import regrade, sight
from grading.admin.chosen import chosen
from grading.admin.words import title_of
from grading.models import Assignment, Attempt, Class, GradeChange, Regrade, State
from grading.regrade import NotARegrade
from marlow.clock import real_now
from shop.admin.page import Page, asked, render
from shop.words import count

MOST = 100  # regrades of the past on the list
SHOWN = 500  # differences, or changes, on one page


@dataclass(frozen=True)
class Scope:
    """What can be judged again: `key` as a form has it, `assignment:3`; the words that the history will have."""

    key: str
    words: str
    attempts: QuerySet[Attempt]


def regrade_view(request: HttpRequest) -> HttpResponse:
    if request.method == "POST":
        return _posted(request)
    if number := asked(request, "regrade"):
        return _one(request, chosen(_taught(request.user), number))
    return _list(request, _of_attempt(request.user, asked(request, "attempt")), asked(request, "what"))


def _taught(viewer: Any) -> QuerySet[Regrade]:
    rows = Regrade.objects.filter(of__in=sight.taught(viewer)).select_related("of", "begun_by", "applied_by")
    return rows.annotate(
        many=Count("judgings"),
        left=Count("judgings", filter=Q(judgings__state__in=[State.WAITING, State.RUNNING])),
    )


def scopes(viewer: Any) -> list[Scope]:
    """The classes that a person teaches, and what is given to each."""
    found = []
    for of in sight.taught(viewer).prefetch_related("assignments"):
        found.append(_of_class(of))
        found.extend(_of_assignment(one) for one in of.assignments.all())
    return found


def _of_class(of: Class) -> Scope:
    return Scope(f"class:{of.pk}", f"{of}: everything", Attempt.objects.filter(submission__assignment__of=of))


def _of_assignment(one: Assignment) -> Scope:
    words = f"{one.of}: {title_of(one.exercise)}"
    return Scope(f"assignment:{one.pk}", words, Attempt.objects.filter(submission__assignment=one))


def _of_attempt(viewer: Any, number: str) -> list[Scope]:
    """Nothing where no attempt is named. Raises Http404 for one of a class that they don't teach."""
    if not number:
        return []
    rows = sight.attempts(viewer).filter(submission__assignment__of__in=sight.taught(viewer))
    attempt = chosen(rows, number)
    submission = attempt.submission
    words = f"{submission.student}, attempt {attempt.number}: {title_of(submission.assignment.exercise)}"
    return [Scope(f"attempt:{attempt.pk}", words, Attempt.objects.filter(pk=attempt.pk))]


def _list(
    request: HttpRequest, first: Sequence[Scope] = (), what: str = "", why: str = "", problem: str = ""
) -> HttpResponse:
    return render(
        request,
        "admin/grading/regrades.html",
        PAGE.title,
        regrades=_taught(request.user)[:MOST],
        scopes=[*first, *scopes(request.user)],
        what=first[0].key if first and not what else what,
        why=why,
        problem=problem,
    )


def _one(request: HttpRequest, one: Regrade) -> HttpResponse:
    differences = [] if one.applied_at or one.dropped_at else regrade.differences(one)
    return render(
        request,
        "admin/grading/regrade.html",
        one.scope,
        regrade=one,
        waiting=regrade.waiting(one),
        parked=regrade.parked(one),
        differences=differences[:SHOWN],
        many=len(differences),
        drops=sum(difference.drop for difference in differences),
        stand=sum(difference.person is not None for difference in differences),
        changes=_changes(one)[:SHOWN],
    )


def _changes(one: Regrade) -> QuerySet[GradeChange]:
    """What its applying wrote into the history."""
    if one.applied_at is None:
        return GradeChange.objects.none()
    rows = GradeChange.objects.filter(attempt__judgings__regrade=one, at=one.applied_at, by=one.applied_by)
    return rows.select_related("attempt__submission__student").order_by("pk").distinct()


def _posted(request: HttpRequest) -> HttpResponse:
    """Raises PermissionDenied for whoever may look at regrades and do none."""
    said = request.POST
    if not any(said.get(name) for name in ("apply", "drop", "what")):
        return redirect(f"admin:{PAGE.name}")
    if not request.user.has_perm("grading.add_regrade"):
        raise PermissionDenied("You may look at regrades and begin none.")
    if said.get("what"):
        return _begun(request, said["what"], said.get("why", ""))
    one = chosen(_taught(request.user), said.get("apply") or said.get("drop") or "")
    try:
        _apply(request, one) if said.get("apply") else _drop(request, one)
    except NotARegrade as wrong:
        messages.error(request, str(wrong))
    return redirect(_address(one))


def _begun(request: HttpRequest, what: str, why: str) -> HttpResponse:
    kind, _, number = what.partition(":")
    first = _of_attempt(request.user, number) if kind == "attempt" else []
    scope = next((one for one in [*first, *scopes(request.user)] if one.key == what), None)
    if scope is None:
        raise PermissionDenied("Choose what is judged again from the list.")
    attempts = scope.attempts.select_related("submission__assignment").order_by("pk")
    try:
        begun = regrade.begin(attempts, scope.words, why, by=request.user, now=real_now())
    except NotARegrade as wrong:
        return _list(request, first, what, why, _sentence(attempts, wrong))
    return redirect(_address(begun))


def _sentence(attempts: QuerySet[Attempt], wrong: NotARegrade) -> str:
    return str(wrong) if attempts.exists() else "Nothing of it has been handed in: there is nothing to judge again."


def _apply(request: HttpRequest, one: Regrade) -> None:
    if one.applied_at is None:
        regrade.apply(one, by=request.user, now=real_now())
        one.refresh_from_db()
        many = len(set(_changes(one).values_list("attempt", flat=True)))
        anew = f"{count(many, 'attempt')} {'counts' if many == 1 else 'count'} anew"
        messages.success(request, f"Applied: {anew if many else 'it changed nothing'}.")
    else:
        messages.info(request, "It has been applied already: nothing was done.")


def _drop(request: HttpRequest, one: Regrade) -> None:
    regrade.drop(one, by=request.user, now=real_now())
    messages.success(request, "Dropped: what it said counts for nothing, and what still waits is not judged.")


def _address(one: Regrade) -> str:
    return f"{reverse(f'admin:{PAGE.name}')}?regrade={one.pk}"


PAGE = Page(
    "grading/regrades/",
    "grading_regrades",
    "Regrades",
    ("grading.view_regrade",),
    regrade_view,
    ("GET", "HEAD", "POST"),
)
PAGES = [PAGE]
