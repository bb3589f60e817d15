"""The runs of the laboratory that were kept: a list, and each with its picture and its story."""

from typing import Any

from django.contrib import admin
from django.db.models import Q, QuerySet
from django.db.models.fields.json import KeyTransform
from django.http import HttpRequest, HttpResponse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.text import Truncator

from exercises.admin.course import story
from exercises.models import LabRun
from exercises.words import in_words
from shop.admin.record import Record, link, moment
from shop.words import count

A_CELL = 120  # characters: what went wrong is told whole on its own page
EXHAUSTED, BOUNDED = "exhausted", "bounded"
WRONG, RIGHT = "went wrong", "nothing wrong"
# A report's bounds in words; {} is the bound.
BOUNDS = {
    "boxes": "boxes: {}",
    "orders": "orders: {}",
    "messages": "messages a box: {}",
    "latency": "an answer takes {} s",
    "lease": "a lease lasts {} s",
    "question": "the question is {}",
    "faults": "faults at most: {}",
    "preemptions": "preemptions at most: {}",
    "policy": "policy: {}",
}


class Ending(admin.SimpleListFilter):
    title, parameter_name = "ending", "ending"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [("wrong", WRONG), ("right", RIGHT)]

    def queryset(self, request: HttpRequest, queryset: QuerySet[LabRun]) -> QuerySet[LabRun]:
        right = Q(wrong=[])
        chosen = {"wrong": queryset.exclude(right), "right": queryset.filter(right)}
        return chosen.get(self.value() or "", queryset)


class Search(admin.SimpleListFilter):
    title, parameter_name = "exploration", "search"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(EXHAUSTED, EXHAUSTED), (BOUNDED, BOUNDED), ("none", "one run alone")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[LabRun]) -> QuerySet[LabRun]:
        found = {"report__isnull": False, "report__exhausted": True}
        alone = Q(report__isnull=True)
        return {
            EXHAUSTED: queryset.filter(**found),
            BOUNDED: queryset.exclude(alone).exclude(**found),
            "none": queryset.filter(alone),
        }.get(self.value() or "", queryset)


@admin.register(LabRun)
class LabRunAdmin(Record):
    list_display = [moment("real_at"), "scenario", "lock", "settle", "ended", "went", "search"]
    list_filter = [Ending, Search, "scenario", "lock", "settle"]
    date_hierarchy = "real_at"
    change_form_template = "admin/exercises/labrun.html"
    shown = ["scenario", "lock", "settle", "question", moment("real_at"), "same"]

    def get_queryset(self, request: HttpRequest) -> QuerySet[LabRun]:
        """A list of them reads no events, no steps and no whole report: they are long."""
        runs: QuerySet[LabRun] = super().get_queryset(request).defer("verdict", "steps", "report")
        return runs.annotate(
            exhausted=KeyTransform("exhausted", "report"), schedules=KeyTransform("schedules", "report")
        )

    @admin.display(description="ending")
    def ended(self, run: LabRun) -> SafeString:
        tone, word = ("bad", WRONG) if run.wrong else ("good", RIGHT)
        return format_html('<span class="chip {}">{}</span>', tone, word)

    @admin.display(description="what was wrong")
    def went(self, run: LabRun) -> str:
        return Truncator("; ".join(sentences(run))).chars(A_CELL) or "–"

    @admin.display(description="exploration")
    def search(self, run: Any) -> str:
        if run.exhausted is None and run.schedules is None:
            return "–"
        tried = f", {count(run.schedules, 'order')}" if _counted(run.schedules) else ""
        return (EXHAUSTED if run.exhausted is True else BOUNDED) + tried

    @admin.display(description="played with it")
    def same(self, run: LabRun) -> SafeString:
        return link(
            "exercises_labrun_changelist", f"all runs under {run.lock}", query=format_html("?lock={}", run.lock)
        )

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """The run's page: what came of it, within which bounds, and how it went."""
        run = self.get_object(request, object_id)
        if run is not None:
            run.refresh_from_db(fields=["verdict", "steps", "report"])  # at once, what the list goes without
            extra_context = {
                **(extra_context or {}),
                **_told(run),
                **story(run.verdict, run.steps, run.lock, run.wrong),
            }
        return super().change_view(request, object_id, form_url, extra_context)


def sentences(run: LabRun) -> list[str]:
    """What was wrong, as far as it is words."""
    wrong = run.wrong if isinstance(run.wrong, list) else [run.wrong]
    return [sentence for sentence in wrong if isinstance(sentence, str)]


def _told(run: LabRun) -> dict[str, Any]:
    wrong, verdict = sentences(run), run.verdict if isinstance(run.verdict, dict) else {}
    report = run.report if isinstance(run.report, dict) else None
    return {
        "told": True,
        "wrong": wrong,
        "tone": "bad" if run.wrong else "good",
        "words": _in_words(verdict),
        "report": report and _report(report),
    }


def _in_words(verdict: dict[str, Any]) -> str:
    """As `in_words` has it, of figures that are figures."""
    return in_words({name: value for name, value in verdict.items() if _counted(value)}) if verdict else ""


def _report(report: dict[str, Any]) -> dict[str, Any]:
    bounds: dict[str, Any] = report["bounds"] if isinstance(report.get("bounds"), dict) else {}
    menu = bounds.get("menu")
    return {
        "exhausted": report.get("exhausted") is True,
        "schedules": count(report["schedules"], "order") if _counted(report.get("schedules")) else "",
        "seconds": f"{report['seconds']:.1f}" if _counted(report.get("seconds")) else "",
        "bounds": [
            words.format(_short(bounds[name])) for name, words in BOUNDS.items() if bounds.get(name) is not None
        ],
        "menu": ", ".join(map(str, menu)) if isinstance(menu, list) else "",
        "stopped": bounds.get("stopped") or "this way of trying them leaves orders out",
        "failures": list(_failures(report.get("failures"))),
    }


def _failures(failures: Any) -> Any:
    """How many orders went wrong in which way."""
    for failure in failures if isinstance(failures, list) else []:
        if isinstance(failure, dict) and isinstance(failure.get("what"), list) and _counted(failure.get("schedules")):
            yield count(failure["schedules"], "order"), "; ".join(map(str, failure["what"]))


def _short(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _counted(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
