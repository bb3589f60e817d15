"""Showing grades to their students: by assignment or all of a class, and hiding them again.

Incomplete grades and open second looks are counted before anything is shown, and the page asks once more where there
are some.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db.models import Count, F
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect

from grading import review, sight
from grading.admin.chosen import chosen
from grading.admin.words import in_zone, title_of
from grading.grade import MADE, grade_of
from grading.models import Assignment, Class, Release, Submission, Thread
from marlow.clock import real_now
from shop.admin.page import Page, render
from shop.words import count


@dataclass(frozen=True)
class Line:
    """One assignment: how many students handed something in, how many of those grades are incomplete, how many second
    looks are open, and the release that stands; where none does, the last one that was taken back.
    """

    assignment: Assignment
    title: str
    due: str
    students: int
    graded: int
    incomplete: int
    looks: int
    release: Release | None
    taken_back: Release | None


@dataclass(frozen=True)
class Group:
    """A class with its assignments. `hidden`: how many of them are not released."""

    of: Class
    lines: Sequence[Line]

    @property
    def hidden(self) -> int:
        return sum(line.release is None for line in self.lines)

    @property
    def incomplete(self) -> int:
        return sum(line.incomplete for line in self.lines if line.release is None)

    @property
    def looks(self) -> int:
        return sum(line.looks for line in self.lines if line.release is None)


def release_view(request: HttpRequest) -> HttpResponse:
    if request.method != "POST":
        return _page(request)
    if number := request.POST.get("release"):
        return _release(request, chosen(sight.assigned(request.user), number))
    if number := request.POST.get("all"):
        return _release_all(request, chosen(sight.taught(request.user), number))
    if number := request.POST.get("take_back"):
        return _take_back(request, chosen(sight.assigned(request.user), number))
    return _back()


def _page(request: HttpRequest, **asks: Any) -> HttpResponse:
    shown = groups(sight.assigned(request.user))
    return render(request, "admin/grading/release.html", PAGE.title, groups=shown, **asks)


def groups(assignments: Iterable[Assignment]) -> list[Group]:
    """By class, in the order of names: the same number of queries however much was handed in."""
    given = list(assignments)
    grades, releases = _grades(given), _releases(given)
    students, looks = dict(_students({one.of_id for one in given})), dict(_looks(given))
    lines: dict[Class, list[Line]] = defaultdict(list)
    for one in given:
        complete, last = grades[one.pk], releases.get(one.pk)
        lines[one.of].append(
            Line(
                one,
                title_of(one.exercise),
                in_zone(one.due_at, one.of.zone),
                students.get(one.of_id, 0),
                len(complete),
                complete.count(False),
                looks.get(one.pk, 0),
                last if last and last.undone_at is None else None,
                last if last and last.undone_at is not None else None,
            )
        )
    return [Group(of, lines[of]) for of in sorted(lines, key=lambda of: of.name)]


def _grades(assignments: Sequence[Assignment]) -> dict[int, list[bool]]:
    """Of each assignment, whether each grade in it is complete."""
    rows = Submission.objects.filter(assignment__in=assignments).select_related("assignment")
    complete: dict[int, list[bool]] = defaultdict(list)
    for submission in rows.prefetch_related(*MADE):
        complete[submission.assignment_id].append(grade_of(submission).complete)
    return complete


def _releases(assignments: Sequence[Assignment]) -> dict[int, Release]:
    """Of each assignment the one that stands, else the one that was taken back last."""
    rows = Release.objects.filter(assignment__in=assignments).select_related("by", "undone_by")
    last = rows.order_by("assignment_id", F("undone_at").desc(nulls_first=True)).distinct("assignment_id")
    return {one.assignment_id: one for one in last}


def _students(classes: set[int]) -> Iterable[tuple[int, int]]:
    return Class.objects.filter(pk__in=classes).order_by().values_list("pk").annotate(Count("enrolments"))


def _looks(assignments: Sequence[Assignment]) -> Iterable[tuple[int, int]]:
    """Of each assignment, how many second looks are open."""
    rows = Thread.objects.filter(attempt__submission__assignment__in=assignments, closed_at=None)
    return rows.order_by().values_list("attempt__submission__assignment").annotate(Count("pk"))


def _release(request: HttpRequest, assignment: Assignment) -> HttpResponse:
    (group,) = groups([assignment])
    (line,) = group.lines
    owed = {"incomplete": line.incomplete, "looks": line.looks}
    if any(owed.values()) and line.release is None and "sure" not in request.POST:
        return _page(request, ask=line, name="release", number=assignment.pk, **owed)
    _demand(request)
    review.release(assignment, by=request.user, now=real_now())
    messages.success(request, f"{line.title}: the students of {assignment.of} see its grades now.")
    return _back()


def _release_all(request: HttpRequest, of: Class) -> HttpResponse:
    found = groups(sight.assigned(request.user).filter(of=of))
    owed = {"incomplete": sum(group.incomplete for group in found), "looks": sum(group.looks for group in found)}
    if any(owed.values()) and "sure" not in request.POST:
        return _page(request, ask=found[0], name="all", number=of.pk, **owed)
    _demand(request)
    shown = review.release_all(of, by=request.user, now=real_now())
    messages.success(request, f"{of}: the grades of {count(len(shown), 'assignment')} are shown now.")
    return _back()


def _take_back(request: HttpRequest, assignment: Assignment) -> HttpResponse:
    _demand(request)
    if review.take_back(assignment, by=request.user, now=real_now()):
        messages.success(request, f"{title_of(assignment.exercise)}: its grades are hidden again.")
    return _back()


def _demand(request: HttpRequest) -> None:
    """Looking at this page is one permission, and changing what students see another."""
    if not request.user.has_perm("grading.add_release"):
        raise PermissionDenied("You may look at releases and make none.")


def _back() -> HttpResponse:
    return redirect(f"admin:{PAGE.name}")


PAGE = Page(
    "grading/releases/",
    "grading_releases",
    "Releases",
    ("grading.view_release",),
    release_view,
    ("GET", "HEAD", "POST"),
)
PAGES = [PAGE]
