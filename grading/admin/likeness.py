"""How alike the programs are that were handed in to one assignment: a hint for its instructors, never a verdict."""

from typing import Any

from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse

from exercises.handed.exercise import there
from grading import sight
from grading.admin.chosen import chosen
from grading.admin.words import title_of
from grading.likeness import FROM, MOST, TOLD, likeness, programs
from grading.models import Assignment, Attempt
from shop.admin.page import Page, asked, render


def likeness_view(request: HttpRequest) -> HttpResponse:
    given = _taught(request.user)
    if not (number := asked(request, "assignment")):
        return render(request, "admin/grading/likeness.html", PAGE.title, given=_titled(given))
    assignment = chosen(given, number)
    if asked(request, "one"):
        return _pair(request, assignment)
    title = f"{PAGE.title}: {title_of(assignment.exercise)}"
    pairs = likeness(assignment, by=request.user)
    bounds = {"least": FROM, "students": MOST, "most": TOLD}
    return render(
        request, "admin/grading/likeness.html", title, assignment=assignment, pairs=pairs, chosen=True, **bounds
    )


def _taught(viewer: Any) -> QuerySet[Assignment]:
    return sight.assignments(viewer).filter(of__in=sight.taught(viewer))


def _titled(given: QuerySet[Assignment]) -> list[tuple[Assignment, str]]:
    return [(one, title_of(one.exercise)) for one in given]


def _pair(request: HttpRequest, assignment: Assignment) -> HttpResponse:
    """Raises Http404 for what is not of this assignment."""
    rows = sight.attempts(request.user).filter(submission__assignment=assignment)
    two = [chosen(rows, asked(request, name)) for name in ("one", "other")]
    field = asked(request, "field")
    sides = [(attempt, text) for attempt in two for text in [_program(assignment, attempt, field)]]
    return render(
        request,
        "admin/grading/pair.html",
        f"Two programs: {title_of(assignment.exercise)}",
        assignment=assignment,
        field=field,
        sides=sides,
    )


def _program(assignment: Assignment, attempt: Attempt, field: str) -> str:
    found = there(assignment.exercise)
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
