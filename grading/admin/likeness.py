"""How alike the programs are that were handed in for one exercise: a hint for its instructors, never a verdict."""

from collections import defaultdict
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse

from exercises.handed.exercise import there
from grading import sight
from grading.admin.chosen import chosen
from grading.admin.words import title_of
from grading.likeness import FROM, MOST, TOLD, likeness, programs
from grading.models import Attempt
from shop.admin.page import Page, asked, render


def likeness_view(request: HttpRequest) -> HttpResponse:
    """Raises Http404 for an exercise that is given to none of their classes."""
    given = _given(request.user)
    if not (slug := asked(request, "exercise")):
        rows = [(one, title_of(one), ", ".join(classes)) for one, classes in given.items()]
        return render(request, "admin/grading/likeness.html", PAGE.title, given=rows)
    if slug not in given:
        raise Http404("This exercise is given to no class that you teach.")
    if asked(request, "one"):
        return _pair(request, slug)
    title = title_of(slug)
    bounds = {"least": FROM, "students": MOST, "most": TOLD}
    return render(
        request,
        "admin/grading/likeness.html",
        f"{PAGE.title}: {title}",
        chosen=slug,
        exercise_title=title,
        classes=given[slug],
        pairs=likeness(slug, by=request.user),
        **bounds,
    )


def _given(viewer: Any) -> dict[str, list[str]]:
    """The exercises of the classes that they teach, by slug, each with the names of those classes."""
    given = defaultdict(list)
    for one in sight.assigned(viewer).order_by("exercise", "of__name"):
        given[one.exercise].append(one.of.name)
    return dict(given)


def _pair(request: HttpRequest, slug: str) -> HttpResponse:
    """Raises Http404 for what is not of this exercise and of their classes."""
    theirs = {"submission__assignment__exercise": slug, "submission__assignment__of__in": sight.taught(request.user)}
    rows = sight.attempts(request.user).filter(**theirs)
    two = [chosen(rows, asked(request, name)) for name in ("one", "other")]
    field, title = asked(request, "field"), title_of(slug)
    return render(
        request,
        "admin/grading/pair.html",
        f"Two programs: {title}",
        chosen=slug,
        exercise_title=title,
        field=field,
        sides=[(attempt, _program(slug, attempt, field)) for attempt in two],
    )


def _program(slug: str, attempt: Attempt, field: str) -> str:
    found = there(slug)
    known = programs(found, attempt.answers) if found else []
    text = next((one.text for one in known if one.field == field), None)
    if text is None:
        raise Http404("There is no such program in these answers.")
    return text


PAGE = Page(
    "grading/likeness/",
    "grading_likeness",
    "Likeness of programs",
    ("grading.view_submission",),
    likeness_view,
)
PAGES = [PAGE]
