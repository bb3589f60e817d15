"""The admin's first page: the state of the shop in a few cards, each a door."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.contrib import admin
from django.db.models import Count, Model
from django.http import HttpRequest
from django.urls import reverse

from exercises.admin.locks import LOCKS_PAGE, latest, tally
from exercises.models import Performance
from exercises.words import harmless, in_words
from grading.admin.exercises import EXERCISES, given_to
from grading.sight import awaits
from marlow.clock import real_now
from shop.admin.shelf import SHELF
from shop.models import Order
from shop.shelf import totals
from shop.templatetags.shelf import in_words as copies_in_words
from shop.words import count
from sweeper.admin.evening import EVENING
from sweeper.admin.scene import last_evening, scene
from sweeper.findings import DOUBLE
from sweeper.models import SweepRun
from sweeper.telling import LONDON, clock

MayOpen = Callable[[HttpRequest], bool]


@dataclass(frozen=True)
class Card:
    """A door: what is behind it, in one figure and one sentence."""

    title: str
    figure: str
    text: str
    address: str
    tone: str = ""


def welcome(request: HttpRequest) -> dict[str, Any]:
    """The cards this person may open, and the last performance if they may see it."""
    cards = [make() for may_open, make in _doors(request) if may_open(request)]
    last = Performance.objects.first() if _list_of(Performance)(request) else None
    return {"cards": cards, "performance": last, **(_verdict(last) if last else {})}


def _doors(request: HttpRequest) -> list[tuple[MayOpen, Callable[[], Card]]]:
    """Each card behind the permissions of the page that it opens."""
    return [
        (EXERCISES.open_to, lambda: _exercises(request)),
        (SHELF.open_to, _shelf),
        (EVENING.open_to, _evening),
        (_list_of(SweepRun), _runs),
        (_list_of(Order), _orders),
        (LOCKS_PAGE.open_to, _locks),
    ]


def _list_of(model: type[Model]) -> MayOpen:
    return admin.site.get_model_admin(model).has_view_permission


def _verdict(performance: Performance) -> dict[str, Any]:
    tone = "good" if harmless(performance.verdict) else "bad" if performance.verdict else "warn"
    return {"verdict": in_words(performance.verdict), "verdict_tone": tone}


def _exercises(request: HttpRequest) -> Card:
    """Of a student what is to be handed in next, of an instructor who waits for an answer."""
    address, given = reverse("admin:grading_exercises"), given_to(request.user, real_now())
    mine = [one for one in given if one.mine and not one.over]
    todo = [one for one in mine if one.last is None]
    if todo:
        text = f"Next: {todo[0].title}, due {todo[0].due}."
        return Card("Exercises", f"{count(len(todo), 'exercise')} to hand in", text, address, "warn")
    if mine:
        return Card("Exercises", "All handed in", "See what the checks say, and try again.", address, "good")
    if not given:
        return Card("Exercises", "None yet", "No class of yours has exercises.", address)
    text = f"{count(sum(one.made for one in given), 'attempt')} handed in by your classes."
    if not (waits := awaits(request.user)):
        return Card("Exercises", "Nobody waits", text, address, "good")
    address = reverse("admin:grading_attempt", args=[waits[0].pk])
    text = f"A second look, or a check without points. The longest: {waits[0]}."
    return Card("Exercises", f"{count(len(waits), 'attempt')} to look at", text, address, "warn")


def _shelf() -> Card:
    sums = totals()
    wrong = [copies_in_words(number) for number in (sums.phantom, -sums.lost) if number]
    figure = ", ".join(wrong).capitalize() if wrong else "Agrees"
    text = "Every book: what the catalogue promises beside what the shelf holds."
    return Card("The shelf", figure, text, reverse("admin:shop_shelf"), "bad" if wrong else "good")


def _evening() -> Card:
    address, window = reverse("admin:sweeper_timeline"), last_evening()
    if window is None:
        return Card("The evening", "Nothing yet", "No box has swept.", address)
    wrong = [finding for finding in scene(window).findings if finding.kind == DOUBLE]
    here = window.start.astimezone(LONDON)
    day = f"{here:%A} {here.day} {here:%B}, from {clock(window.start)[:5]} to {clock(window.end)[:5]}"
    figure = f"{count(len(wrong), 'order')} settled twice" if wrong else "No order settled twice"
    return Card("The evening", figure, f"{day}: who ran when, drawn.", address, "bad" if wrong else "good")


def _runs() -> Card:
    states = dict(SweepRun.objects.order_by().values_list("state").annotate(Count("run")))
    text = f"{states.get('refused', 0)} of them refused the lock, {states.get('running', 0)} at work now."
    return Card("Runs", count(sum(states.values()), "run"), text, reverse("admin:sweeper_sweeprun_changelist"))


def _orders() -> Card:
    states = dict(Order.objects.order_by().values_list("status").annotate(Count("pk")))
    text = ", ".join(f"{number} {status}" for status, number in sorted(states.items())) or "Nobody has ordered yet"
    return Card("Orders", count(sum(states.values()), "order"), f"{text}.", reverse("admin:shop_order_changelist"))


def _locks() -> Card:
    counted, address = tally(latest()), reverse("admin:exercises_locks")
    text = "What each lock does under each fault, as it was seen on real servers."
    if not counted["known"]:
        return Card("The locks", "Not played yet", text, address)
    wrong = counted["differs"]
    figure = f"{count(wrong, 'cell')} {'differs' if wrong == 1 else 'differ'}" if wrong else "As the table says"
    return Card("The locks", figure, text, address, "bad" if wrong else "good")
