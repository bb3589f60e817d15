"""The queue of judgings: how long it is and what each box does, and of one's own classes whose work it is.

Who may look at judgings sees the numbers; the work itself is seen by who teaches its class, and nobody else.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.contrib import messages
from django.db.models import Count, Max, Min, Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.timezone import get_current_timezone_name

from grading import judges, queue, review, sight
from grading.admin.chosen import chosen
from grading.admin.words import title_of
from grading.models import Judge, Judging, State
from marlow.clock import real_now
from shop.admin.page import Page, render

LONGEST = 200  # lines of each list
WHILE = timedelta(hours=1)  # in which what a box has done is counted
NOWHERE: Mapping[int, int] = {}


@dataclass(frozen=True)
class Line:
    """A judging, the title of its exercise, and how many wait before it and itself."""

    judging: Judging
    title: str
    place: int | None = None


@dataclass(frozen=True)
class Box:
    """What it does, and what its judge says of itself: None before its desk was ever opened."""

    box: str
    judge: Judge | None
    running: int = 0
    over: int = 0
    done: int = 0
    parked: int = 0
    last: datetime | None = None


def queue_view(request: HttpRequest) -> HttpResponse:
    if request.method == "POST":
        return _again(request)
    now, mine = real_now(), _mine(request.user)
    return render(
        request,
        "admin/grading/queue.html",
        PAGE.title,
        numbers=_numbers(),
        boxes=_boxes(now),
        missed=judges.last_word(now, get_current_timezone_name()) if judges.missed(now) else "",
        teaches=sight.taught(request.user).exists(),
        waiting=_waiting(mine),
        running=_lines(mine.filter(state=State.RUNNING).order_by("began_at", "pk")),
        parked=_lines(mine.filter(state=State.PARKED).order_by("-ended_at", "-pk")),
        now=now,
    )


def _mine(viewer: Any) -> QuerySet[Judging]:
    """Of the classes they teach, without what a dropped regrade asked for."""
    rows = sight.judgings(viewer).filter(queue.NOT_DROPPED)
    rows = rows.filter(attempt__submission__assignment__of__in=sight.taught(viewer)).select_related(
        "attempt__submission__assignment__of", "attempt__submission__student", "regrade"
    )
    return rows.defer("so_far", "attempt__answers")


def _numbers() -> dict[str, Any]:
    """Of everybody's judgings: how many there are in each state, and since when the first one waits."""
    rows = Judging.objects.filter(queue.NOT_DROPPED).order_by()
    states = {state.value: Count("pk", filter=Q(state=state)) for state in State if state != State.DONE}
    return rows.aggregate(**states, first=Min("asked_at", filter=Q(state=State.WAITING)))


def _boxes(now: datetime) -> list[Box]:
    """Every box that has a judge, or had one in the last hour."""
    does, judges = _does(now), {one.box: one for one in Judge.objects.all()}
    return [Box(box, judges.get(box), **does.get(box, {})) for box in sorted({*does, *judges})]


def _does(now: datetime) -> dict[str, dict[str, Any]]:
    """By box: what it has in hand, and what it has finished in the last hour."""
    rows = Judging.objects.exclude(box="").filter(Q(state=State.RUNNING) | Q(ended_at__gte=now - WHILE))
    lately = Q(ended_at__gte=now - WHILE)
    counts: dict[str, Any] = {
        "running": Count("pk", filter=Q(state=State.RUNNING)),
        "over": Count("pk", filter=Q(state=State.RUNNING, lease_until__lte=now)),
        "done": Count("pk", filter=lately & Q(state=State.DONE)),
        "parked": Count("pk", filter=lately & Q(state=State.PARKED)),
        "last": Max("ended_at"),
    }
    found: Iterable[dict[str, Any]] = map(dict, rows.order_by().values("box").annotate(**counts))
    return {row.pop("box"): row for row in found}


def _waiting(mine: QuerySet[Judging]) -> list[Line]:
    """The first of theirs, with their places in the whole queue, everybody's work counted."""
    places, theirs = queue.places(), set(mine.filter(state=State.WAITING).values_list("pk", flat=True))
    first = [pk for pk in places if pk in theirs][:LONGEST]
    return sorted(_lines(mine.filter(pk__in=first), places), key=lambda line: line.place or 0)


def _lines(rows: QuerySet[Judging], places: Mapping[int, int] = NOWHERE) -> list[Line]:
    return [
        Line(one, title_of(one.attempt.submission.assignment.exercise), places.get(one.pk)) for one in rows[:LONGEST]
    ]


def _again(request: HttpRequest) -> HttpResponse:
    """One more try for what is parked. Raises Http404 for whoever does not teach it."""
    if number := request.POST.get("again"):
        judging = chosen(_mine(request.user), number)
        if review.again(judging, by=request.user, now=real_now()):
            messages.success(request, f"{str(judging.attempt).capitalize()} waits for the judge again.")
        else:
            messages.warning(request, "It is not parked any more, or would not count: nothing was done.")
    return redirect(f"admin:{PAGE.name}")


PAGE = Page(
    "grading/queue/",
    "grading_queue",
    "The judge's queue",
    ("grading.view_judging",),
    queue_view,
    ("GET", "HEAD", "POST"),
)
PAGES = [PAGE]
