"""What is given to a person's classes: the list, and one assignment with statement, form and what came of it."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID, uuid4

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.utils.http import urlencode

from exercises.handed.answers import NotAnswers
from exercises.handed.exercise import there
from grading import forms, sight
from grading.admin.words import in_zone, state_of, title_of
from grading.grade import MADE, NOTHING, WORK, Points, counting, grade_of, points_of
from grading.handin import NoReceipt, Refused, Standing, hand_in, receipt, standing
from grading.models import Assignment, Attempt, Enrolment, Submission
from grading.statement import as_html
from marlow.clock import real_now
from shop.admin.page import Page, asked, render
from shop.words import count

AT_MOST = 200  # attempts of a class on one page
HAND_IN = "grading.add_attempt"
USED = {"receipt taken", "other answers"}  # refusals of a receipt; the form gets a fresh one then


@dataclass(frozen=True)
class Given:
    """One assignment in the list. `mine`: this viewer hands it in, else they teach it, and of it somebody `waits`."""

    assignment: Assignment
    title: str
    due: str
    over: bool
    mine: bool
    left: str = ""
    state: str = ""
    tone: str = ""
    last: Attempt | None = None
    grade: Points | None = None
    made: int = 0
    waits: Sequence[Attempt] = ()


def exercises_view(request: HttpRequest) -> HttpResponse:
    """The list; with `?receipt=` the way to the attempt that was acknowledged so."""
    problem = ""
    if number := asked(request, "receipt"):
        try:
            return redirect("admin:grading_attempt", attempt=receipt(request.user, number).pk)
        except NoReceipt as none:
            problem = str(none)
    waits = _waits(request.user)
    given = [replace(one, waits=waits[one.assignment.pk]) for one in given_to(request.user, real_now())]
    return render(
        request, "admin/grading/exercises.html", EXERCISES.title, given=given, number=number, problem=problem
    )


def _waits(viewer: Any) -> dict[int, list[Attempt]]:
    """By assignment, what an instructor is to look at."""
    found: dict[int, list[Attempt]] = defaultdict(list)
    for attempt in sight.awaits(viewer):
        found[attempt.submission.assignment_id].append(attempt)
    return found


def given_to(viewer: Any, now: datetime) -> list[Given]:
    """Of all their classes; what is due soonest first, and what is over last."""
    found = [_given(viewer, one, now) for one in sight.assignments(viewer)]
    return sorted(found, key=lambda one: (one.over, one.assignment.due_at, one.title))


def _given(viewer: Any, assignment: Assignment, now: datetime) -> Given:
    try:
        stands = standing(viewer, assignment, now)
    except Refused:
        return _taught(viewer, assignment, now)
    last = _own(viewer, assignment).first()
    state, tone = state_of(last) if last else (stands.code or "not begun", "")
    return Given(
        assignment,
        title_of(assignment.exercise),
        in_zone(stands.due, stands.zone),
        now > stands.closes,
        True,
        left(stands),
        state,
        tone,
        last,
        _grade(_work([last.submission_id])[0]) if last and sight.sees_grades(viewer, assignment) else None,
        stands.made,
    )


def _taught(viewer: Any, assignment: Assignment, now: datetime) -> Given:
    made = sight.attempts(viewer).filter(submission__assignment=assignment).count()
    due = in_zone(assignment.due_at, assignment.of.zone)
    return Given(assignment, title_of(assignment.exercise), due, now > assignment.due_at, False, made=made)


def _own(viewer: Any, assignment: Assignment) -> Any:
    mine = sight.attempts(viewer).filter(submission__assignment=assignment, submission__student=viewer.pk)
    return mine.prefetch_related(*WORK).order_by("-number")


def _grade(submission: Submission) -> Points | None:
    """For who sees grades: of the attempt that counts."""
    points = grade_of(submission)
    return points if points.of else None


def _work(numbers: Iterable[int]) -> list[Submission]:
    rows = Submission.objects.filter(pk__in=numbers).select_related("assignment")
    return list(rows.prefetch_related(*MADE))


def _told(points: Points) -> str:
    return f"{points.total} of {points.of}" if points.of else ""


def left(stands: Standing) -> str:
    return "as many as you like" if stands.left is None else count(stands.left, "attempt") + " left"


def assignment_view(request: HttpRequest, assignment: int) -> HttpResponse:
    """To be handed in by its students, and looked at by its instructors."""
    given = get_object_or_404(sight.assignments(request.user), pk=assignment)
    if request.method == "POST":
        return _posted(request, given)
    return _page(request, given, _first(request, given))


def _first(request: HttpRequest, given: Assignment) -> forms.Form | None:
    """Empty, or with the answers of an attempt of their own, `?from=3`."""
    exercise = there(given.exercise)
    if exercise is None:
        return None
    number = asked(request, "from")
    if number.isascii() and number.isdecimal() and len(number) < 9:
        earlier = _own(request.user, given).filter(number=int(number)).first()
        if earlier is not None:
            return forms.filled(exercise.answers, earlier.answers)
    return forms.blank(exercise.answers)


def _posted(request: HttpRequest, given: Assignment) -> HttpResponse:
    """A row more, a row less, or handed in. Enter in a field shows the form again: an attempt may be dear."""
    if not (_hands_in(request, given) and request.user.has_perm(HAND_IN)):
        raise PermissionDenied("Only a student of this class hands in.")
    exercise, said, number = there(given.exercise), request.POST, _receipt(request)
    if exercise is None:
        return _page(request, given, None)
    if "add" in said:
        return _page(request, given, forms.with_row(exercise.answers, said.dict(), said["add"]), number)
    if "remove" in said:
        return _page(request, given, forms.without_row(exercise.answers, said.dict(), said["remove"]), number)
    form = forms.handed(exercise.answers, said.dict())
    if said.get("do") != "hand in":
        messages.info(request, "Nothing is handed in yet: press the button below the form when it is done.")
        return _page(request, given, form, number)
    return _handed_in(request, given, form, number)


def _receipt(request: HttpRequest) -> UUID:
    """The one that the form was shown with; a fresh one for a form that has none."""
    try:
        return UUID(request.POST.get("receipt", ""))
    except ValueError:
        return uuid4()


def _handed_in(request: HttpRequest, given: Assignment, form: forms.Form, number: UUID) -> HttpResponse:
    now = real_now()
    try:
        attempt = hand_in(request.user, given, form.answers(), now=now, through="form", receipt=number)
    except NotAnswers as wrong:
        form.tell(wrong.problems)
        return _page(request, given, form, number, status=422)
    except Refused as refused:
        used = refused.code in USED
        form.loose.append(f"{refused} The form has one now: press its button again." if used else str(refused))
        return _page(request, given, form, uuid4() if used else number, status=409)
    if attempt.received_at == now:
        messages.success(request, f"Handed in as attempt {attempt.number}. Its receipt is {attempt.receipt}.")
    else:
        sentence = "This had been handed in already, as attempt"
        messages.info(request, f"{sentence} {attempt.number}; it counts once. Its receipt is {attempt.receipt}.")
    return redirect("admin:grading_attempt", attempt=attempt.pk)


def _hands_in(request: HttpRequest, given: Assignment) -> bool:
    return Enrolment.objects.filter(of=given.of_id, student=request.user.pk).exists()


def _page(
    request: HttpRequest, given: Assignment, form: forms.Form | None, number: UUID | None = None, status: int = 200
) -> HttpResponse:
    """`number`: the receipt that the form keeps; without one it gets a fresh one."""
    exercise, viewer, now = there(given.exercise), request.user, real_now()
    reads = sight.reads(viewer, given, now)
    try:
        stands: Standing | None = standing(viewer, given, now)
    except Refused:
        stands = None
    rows = sight.attempts(viewer).filter(submission__assignment=given).prefetch_related(*WORK)
    teaching = sight.teaches(viewer, given.of)
    made, graded = rows if teaching else _own(viewer, given), sight.sees_grades(viewer, given)
    page = render(
        request,
        "admin/grading/assignment.html",
        title_of(given.exercise),
        given=given,
        gone=exercise is None,
        statement=as_html(exercise.statement) if exercise and reads else "",
        worth=count(exercise.points, "point") if exercise else "",
        form=form if reads else None,
        receipt=number or uuid4(),
        may=stands is not None and stands.open and viewer.has_perm(HAND_IN),
        stands=stands,
        left=left(stands) if stands else "",
        due=in_zone(stands.due if stands else given.due_at, given.of.zone),
        closes=in_zone(stands.closes, stands.zone) if stands else "",
        opens=in_zone(given.opens_at, given.of.zone) if now < given.opens_at else "",
        teaching=teaching,
        **_made(viewer, made, graded),
    )
    page.status_code = status
    return page


def _made(viewer: Any, made: Any, graded: bool) -> dict[str, Any]:
    """The attempts, which of them count, and of a student the grade; on which a second look was asked for."""
    shown = list(made[:AT_MOST])
    looks = sight.threads(viewer).filter(attempt__in=[one.pk for one in shown]).values_list("attempt", "closed_at")
    asked = {pk: any(closed is None for other, closed in looks if other == pk) for pk, _ in looks}
    work = _work({one.submission_id for one in shown}) if graded else []
    counts = {one.pk for submission in work if (one := counting(submission)) is not None}
    mine = [one for one in work if one.student_id == viewer.pk]
    return {
        "attempts": [{**_line(one, graded), "counts": one.pk in counts, "asked": asked.get(one.pk)} for one in shown],
        "grade": _grade(mine[0]) if mine else None,
    }


def _line(attempt: Attempt, graded: bool) -> dict[str, Any]:
    state, tone = state_of(attempt)
    received = in_zone(attempt.received_at, attempt.submission.assignment.of.zone)
    points = points_of(attempt) if graded else NOTHING
    return {
        **{"attempt": attempt, "received": received, "state": state, "tone": tone, "points": _told(points)},
        "incomplete": points.of > 0 and not points.complete,
    }


def again(attempt: Attempt) -> str:
    """The form, filled with what this attempt said."""
    address = reverse("admin:grading_assignment", args=[attempt.submission.assignment_id])
    return f"{address}?{urlencode({'from': attempt.number})}"


EXERCISES = Page("grading/exercises/", "grading_exercises", "Exercises", ("grading.view_assignment",), exercises_view)
ASSIGNMENT = Page(
    "grading/exercises/<int:assignment>/",
    "grading_assignment",
    "An exercise, its form and its attempts",
    ("grading.view_assignment", "grading.view_attempt"),
    assignment_view,
    ("GET", "HEAD", "POST"),
)
PAGES = [EXERCISES, ASSIGNMENT]
