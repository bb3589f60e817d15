"""Every address below /api/. Doors only: what may be done and seen is decided where the pages have it decided."""

from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest
from ninja import Header, NinjaAPI, Query, Status
from ninja.security import HttpBearer

from exercises.handed.answers import NotAnswers
from grading import handin, sight, threads, tokens
from grading.api import errors, shapes, told
from grading.api.parser import Strict, demand_bounded
from grading.models import BIGGEST, Assignment, Thread
from marlow.clock import real_now

THROUGH = "interface"
PAGE = 50  # rows of one answer

Skip = Annotated[int, Query(ge=0, le=1_000_000, description=f"Rows to pass over: {PAGE} are told at a time.")]
Which = Annotated[int | None, Query(ge=1, le=BIGGEST, description="Of this assignment alone.")]
SeenPosts = Annotated[int | None, Query(ge=0, le=1000, description="Posts that you have read.")]
Key = Annotated[
    UUID | None,
    Header(
        alias="Idempotency-Key",
        description="A UUID that you make, a fresh one for each attempt: it becomes the receipt. The same sent again"
        " makes no second attempt, and gets the answer of the first.",
    ),
]


class Bearer(HttpBearer):
    def authenticate(self, request: HttpRequest, token: str) -> Any:
        """Who shows it. Their body is looked at from outside here, for the library reads all of it right after this.
        Raises NotABody.
        """
        owner = tokens.owner_of(token.strip(), real_now())
        if owner is not None:
            demand_bounded(request)
        return owner


api = NinjaAPI(
    title="Marlow",
    version="1",
    description="Hand in, and look at what became of it. Every answer that is no success is a `Trouble`.",
    docs_url=None,  # the library's page of documentation comes from somebody else's server
    urls_namespace="api",
    auth=Bearer(),
    parser=Strict(),
)
errors.listen(api)


def _viewer(request: HttpRequest, needs: str) -> Any:
    """Who asks, if their role may do this at all. Raises PermissionDenied."""
    viewer = request.auth  # type: ignore[attr-defined]  # the library's own attribute
    if not viewer.has_perm(f"grading.{needs}"):
        raise PermissionDenied("Your account may not do this: ask for its role.")
    return viewer


def _assignment(viewer: Any, number: int) -> Assignment:
    found = sight.assignments(viewer).filter(pk=number).first() if number <= BIGGEST else None
    if found is None:
        raise Http404("There is no such assignment of yours: /api/assignments lists them.")
    return found


@api.get("/assignments", response=list[shapes.AssignmentShape])
def assignments(request: HttpRequest, skip: Skip = 0) -> Any:
    """The assignments of your classes, by deadline."""
    viewer, now = _viewer(request, "view_assignment"), real_now()
    rows = sight.assignments(viewer).order_by("due_at", "pk")[skip : skip + PAGE]
    return [told.assignment(one, viewer, now) for one in rows]


@api.get("/assignments/{int:number}", response=shapes.ExerciseShape)
def assignment(request: HttpRequest, number: int) -> Any:
    """One of them, with its statement and the schema of its answers, which students read from its opening on."""
    viewer, now = _viewer(request, "view_assignment"), real_now()
    found = _assignment(viewer, number)
    return {**told.assignment(found, viewer, now), **told.asked(found, sight.reads(viewer, found, now))}


@api.post("/assignments/{int:number}/attempts", response={201: shapes.Receipt})
def hand_in(request: HttpRequest, number: int, given: shapes.Given, key: Key = None) -> Any:
    """Hand in. 201, with the receipt, once it is in the database and in the queue."""
    viewer, now = _viewer(request, "add_attempt"), real_now()
    found = _assignment(viewer, number)
    if given.exercise not in (None, found.exercise):
        raise NotAnswers({"exercise": f"This assignment is {found.exercise}: hand it in there."})
    try:
        made = handin.hand_in(viewer, found, given.answers, now=now, through=THROUGH, receipt=key)
    except handin.Refused as refused:
        raise _with_wait(refused, viewer, found, now) from refused
    return Status(201, told.receipt(made))


def _with_wait(refused: handin.Refused, viewer: Any, found: Assignment, now: datetime) -> handin.Refused:
    if refused.code != "too soon":
        return refused
    until = handin.standing(viewer, found, now).not_before
    return errors.TooSoon(str(refused), int((until - now).total_seconds()) + 1 if until else 1)


@api.get("/attempts", response=list[shapes.AttemptShape])
def attempts(request: HttpRequest, skip: Skip = 0, assignment: Which = None) -> Any:
    """Yours, or those of the classes that you teach; the latest first."""
    rows = sight.attempts(_viewer(request, "view_attempt")).prefetch_related("judgings")
    if assignment is not None:
        rows = rows.filter(submission__assignment=assignment)
    return [told.attempt(one) for one in rows.order_by("-received_at", "-pk")[skip : skip + PAGE]]


@api.get("/attempts/{receipt}", response=shapes.SeenShape)
def attempt(request: HttpRequest, receipt: str) -> Any:
    """What became of it, as far as you may see it by now: results, evidence, points, history."""
    viewer = _viewer(request, "view_attempt")
    found = handin.receipt(viewer, receipt)
    return told.seen(found, sight.seen(viewer, found, real_now()))


@api.get("/receipts/{receipt}", response=shapes.Receipt)
def receipt(request: HttpRequest, receipt: str) -> Any:
    """What was acknowledged with this number."""
    return told.receipt(handin.receipt(_viewer(request, "view_attempt"), receipt))


# --- Second looks -------------------------------------------------------------------------------------------------


def _thread(viewer: Any, number: int) -> Thread:
    found = sight.threads(viewer).filter(pk=number).first() if number <= BIGGEST else None
    if found is None:
        raise Http404("There is no such second look of yours: /api/threads lists them.")
    return found


@api.get("/threads", response=list[shapes.ThreadShape])
def list_threads(request: HttpRequest, skip: Skip = 0, open: bool | None = None) -> Any:
    """Second looks that were asked for; `open`: only those that are open, or only those that are not."""
    rows = sight.threads(_viewer(request, "view_thread")).prefetch_related("posts__by")
    if open is not None:
        rows = rows.filter(closed_at__isnull=open)
    return [told.thread(one) for one in rows.order_by("-opened_at", "-pk")[skip : skip + PAGE]]


@api.get("/threads/{int:number}", response=shapes.ThreadShape)
def read_thread(request: HttpRequest, number: int) -> Any:
    """One of them, with what was said."""
    return told.thread(_thread(_viewer(request, "view_thread"), number))


@api.post("/attempts/{receipt}/threads", response={201: shapes.ThreadShape})
def open_thread(request: HttpRequest, receipt: str, given: shapes.Question) -> Any:
    """Ask for a second look at a check. Where there is one already, it goes on there."""
    viewer = _viewer(request, "add_threadpost")
    found = handin.receipt(viewer, receipt)
    return Status(201, told.thread(threads.open_thread(found, given.check, given.text, by=viewer, now=real_now())))


@api.post("/threads/{int:number}/posts", response={201: shapes.ThreadShape})
def post(request: HttpRequest, number: int, given: shapes.Post) -> Any:
    """Say something there. A student's post opens a closed one again."""
    viewer = _viewer(request, "add_threadpost")
    return Status(201, told.thread(threads.post(_thread(viewer, number), given.text, by=viewer, now=real_now())))


@api.post("/threads/{int:number}/close", response=shapes.ThreadShape)
def close(request: HttpRequest, number: int, seen: SeenPosts = None) -> Any:
    """Answered: for an instructor of the class. Not where there are more posts than were `seen`."""
    viewer = _viewer(request, "add_threadpost")
    threads.close(_thread(viewer, number), seen=seen, by=viewer, now=real_now())
    return told.thread(_thread(viewer, number))


@api.post("/threads/{int:number}/reopen", response=shapes.ThreadShape)
def reopen(request: HttpRequest, number: int) -> Any:
    """Open again: for an instructor of the class."""
    viewer = _viewer(request, "add_threadpost")
    threads.reopen(_thread(viewer, number), by=viewer, now=real_now())
    return told.thread(_thread(viewer, number))
