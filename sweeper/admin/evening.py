"""The evening as a picture, and as the same story in words below it."""

from typing import Any
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.http import urlencode

from shop.admin.page import Page, asked, render
from shop.models import Book, Order
from sweeper.admin.scene import as_span, last_evening, scene
from sweeper.events import Kind
from sweeper.findings import harm
from sweeper.models import Event, SweepRun
from sweeper.telling import LONDON
from sweeper.window import Window, around, asked_for, focus

ADDRESS = "admin:sweeper_timeline"


def timeline_view(request: HttpRequest) -> HttpResponse:
    """`?from=&to=` (ISO times) choose the stretch; `?order=`, `?book=` and `?run=` bring out what they name.

    Without a stretch it is the one around what was named, else the place where something went wrong.
    """
    kept = {name: text for name in ("order", "book", "run") if (text := asked(request, name))}
    orders, told = _named(kept.get("order", ""), kept.get("book", ""))
    run = _uuid(kept.get("run", ""))
    window = asked_for(asked(request, "from"), asked(request, "to")) or _around(run, orders) or _focus()
    if window is None:
        return render(request, "admin/sweeper/timeline.html", "The evening, drawn", window=None)
    shown = scene(window)
    findings = [finding for finding in shown.findings if finding.within(window.start, window.end)]
    return render(
        request,
        "admin/sweeper/timeline.html",
        "The evening, drawn",
        window=window,
        scene=shown,
        lines=shown.lines(orders),
        findings=findings,
        harm=harm(findings),
        picture=shown.picture(window, [run] if run else [], orders),
        told=told,
        ways=_ways(window, kept),
    )


def _named(order: str, number: str) -> tuple[list[str], str]:
    """The references to bring out, and what to call them."""
    if order:
        return [order], f"order {order}"
    if number.isascii() and number.isdecimal() and len(number) < 18:
        book = Book.objects.filter(pk=int(number)).first()
        if book:
            references = Order.objects.filter(book=book).order_by("-created_at").values_list("reference", flat=True)
            return list(references[:500]), f"the orders of “{book.title}”"
    return [], ""


def _around(run: UUID | None, orders: list[str]) -> Window | None:
    """The run, and those that worked on these orders."""
    runs = Event.objects.filter(order__in=orders, kind=Kind.SETTLED).values_list("run", flat=True) if orders else []
    named = SweepRun.objects.filter(pk__in=[*runs, *([run] if run else [])])
    spans = [as_span(run) for run in named]
    return around(spans) if spans else None


def _focus() -> Window | None:
    evening = last_evening()
    if evening is None:
        return None
    whole = scene(evening)
    return focus(whole.spans, whole.findings)


def _ways(window: Window, kept: dict[str, str]) -> list[tuple[str, str]]:
    """Where one can go from here: along the evening, closer, farther, all of it."""
    whole = last_evening() or window
    steps = [
        ("Earlier", window.moved(-0.5)),
        ("Later", window.moved(0.5)),
        ("Closer", window.grown(0.5)),
        ("Wider", window.grown(2)),
        ("The whole evening", whole),
    ]
    return [("What went wrong", reverse(ADDRESS)), *((name, _address(to, kept)) for name, to in steps)]


def _address(window: Window, kept: dict[str, str]) -> str:
    times = {name: _iso(moment) for name, moment in (("from", window.start), ("to", window.end))}
    return f"{reverse(ADDRESS)}?{urlencode({**times, **kept})}"


def _iso(moment: Any) -> str:
    return str(moment.astimezone(LONDON).isoformat(timespec="seconds"))


def _uuid(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None


EVENING = Page(
    "sweeper/timeline/",
    "sweeper_timeline",
    "The evening, drawn",
    ("sweeper.view_sweeprun", "sweeper.view_event", "shop.view_order", "shop.view_settlement", "shop.view_book"),
    timeline_view,
)
PAGES = [EVENING]
