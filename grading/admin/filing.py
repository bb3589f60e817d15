"""The gradebook as a file, both ways, and the pictures beside it."""

from typing import Any

from django.contrib import messages
from django.core import signing
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.cache import add_never_cache_headers
from django.utils.text import slugify

from grading import sight
from grading.admin.chosen import chosen
from grading.cells import KINDS, LARGEST, NotAGradebook, lines_as, rows_of, totals_as
from grading.corrections import Correction, Reading, apply, read
from grading.distribution import picture, spreads
from grading.gradebook import gradebook
from grading.models import Class
from marlow.clock import real_now
from shop.admin.page import Page, asked, render
from shop.words import count

NEEDS = ("grading.view_submission", "grading.view_attempt", "grading.view_judging", "grading.view_review")
WHAT = {"lines": lines_as, "totals": totals_as}
SALT = "grading.corrections"
AT_ONCE = 2000  # corrections of one import


def file_view(request: HttpRequest, of: int) -> HttpResponse:
    """`?what=lines` or `totals`, `&kind=csv` or `xlsx`. 404 for a class of somebody else and for anything else."""
    found = chosen(sight.taught(request.user), str(of))
    what, kind = asked(request, "what"), asked(request, "kind")
    if what not in WHAT or kind not in KINDS:
        raise Http404("Choose a file of the gradebook’s page.")
    answer = HttpResponse(
        WHAT[what](kind, gradebook(found, by=request.user)), content_type=KINDS[kind].get_content_type()
    )
    answer["Content-Disposition"] = f'attachment; filename="{slugify(found.name) or "class"}-{what}.{kind}"'
    add_never_cache_headers(answer)
    return answer


def import_view(request: HttpRequest, of: int) -> HttpResponse:
    """A file is shown as what it would change; what was shown comes back signed, and is written."""
    found = chosen(sight.taught(request.user), str(of))
    if request.method != "POST":
        return _page(request, found)
    if "corrections" in request.POST:
        return _write(request, found)
    file = request.FILES.get("file")
    if file is None:
        return _page(request, found, problem="Choose the file that you edited.")
    try:
        reading = read(rows_of(file.read(LARGEST + 1)), by=request.user)
    except NotAGradebook as wrong:
        return _page(request, found, problem=str(wrong))
    if len(reading.corrections) > AT_ONCE:
        return _page(request, found, problem=f"More than {AT_ONCE:,} rows were edited: import them in parts.")
    return _page(request, found, reading=reading, signed=_signed(request.user, reading))


def _page(request: HttpRequest, of: Class, **more: Any) -> HttpResponse:
    page = render(request, "admin/grading/import.html", f"Import: {of}", of=of, **more)
    page.status_code = 422 if "problem" in more else 200
    return page


def _signed(viewer: Any, reading: Reading) -> str:
    """What was seen, for this person alone."""
    rows = [
        [one.attempt, one.check, one.points, one.reason, one.was]
        for one in (difference.correction for difference in reading.corrections)
    ]
    return signing.dumps({"by": viewer.pk, "rows": rows}, salt=SALT, compress=True)


def _write(request: HttpRequest, of: Class) -> HttpResponse:
    try:
        seen = signing.loads(request.POST["corrections"], salt=SALT)
    except signing.BadSignature:
        seen = {"by": None}
    if seen["by"] != request.user.pk:
        return _page(request, of, problem="This is not what was shown to you: choose the file once more.")
    done = apply((Correction(*row) for row in seen["rows"]), by=request.user, now=real_now())
    if done.written:
        messages.success(request, f"{count(done.written, 'correction')} written into the gradebook.")
    for sentence in done.refused:
        messages.warning(request, sentence)
    return redirect(f"{reverse('admin:grading_gradebook')}?class={of.pk}")


def picture_view(request: HttpRequest, assignment: int) -> HttpResponse:
    """404 for an assignment of somebody else's class."""
    given = chosen(sight.assigned(request.user), str(assignment))
    found = next(one for one in spreads(gradebook(given.of, by=request.user)) if one.assignment == given)
    answer = HttpResponse(picture(found), content_type="image/svg+xml")
    add_never_cache_headers(answer)
    return answer


FILE = Page("grading/gradebook/<int:of>/file/", "grading_gradebook_file", "The gradebook as a file", NEEDS, file_view)
IMPORT = Page(
    "grading/gradebook/<int:of>/import/",
    "grading_gradebook_import",
    "Points written into the gradebook’s file",
    (*NEEDS, "grading.change_review"),
    import_view,
    ("GET", "HEAD", "POST"),
)
PICTURE = Page(
    "grading/gradebook/<int:assignment>/distribution.svg",
    "grading_distribution",
    "How the grades of an exercise are spread, drawn",
    NEEDS,
    picture_view,
)
PAGES = [FILE, IMPORT, PICTURE]
