"""Runs, events and elections: records of what the boxes did."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.utils.http import urlencode
from django.utils.safestring import SafeString

from shop.admin.record import Record, link, moment
from sweeper.admin.evening import EVENING
from sweeper.admin.scene import as_span, scene
from sweeper.findings import harm
from sweeper.models import Event, JobRun, SweepRun
from sweeper.telling import tell
from sweeper.verdict import as_event
from sweeper.window import around


@admin.register(SweepRun)
class SweepRunAdmin(Record):
    list_display = [moment("started_at"), "box", "lock", "settle", "state", "rows", "settled", "its_timeline"]
    list_filter = ["box", "state", "lock", "settle"]
    search_fields = ["message"]
    date_hierarchy = "started_at"
    change_form_template = "admin/sweeper/run.html"
    shown = [
        *("box", "state", moment("started_at"), moment("acquired_at"), moment("lease_until"), moment("ended_at")),
        *("rows", "settled"),
        *("lock", "settle", "question", "token", "message", "run"),
    ]

    def get_list_display(self, request: HttpRequest) -> list[Any]:
        """The way to the evening's page only for those to whom it is open."""
        shut = set() if EVENING.open_to(request) else {"its_timeline"}
        return [column for column in self.list_display if column not in shut]

    @admin.display(description="timeline")
    def its_timeline(self, run: SweepRun) -> SafeString:
        return link("sweeper_timeline", "on the timeline", query=f"?{urlencode({'run': str(run.run)})}")

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """The run's page: its particulars, and its story for whoever may read the evening's page as well."""
        run = self.get_object(request, object_id)
        if run is not None and EVENING.open_to(request):
            extra_context = {**(extra_context or {}), **_story(run)}
        return super().change_view(request, object_id, form_url, extra_context)


def _story(run: SweepRun) -> dict[str, Any]:
    """The picture of its minutes, and its events as sentences."""
    span = as_span(run)
    window = around([span])
    shown = scene(window)
    findings = [finding for finding in shown.findings if run.run in finding.runs]
    return {
        "window": window,
        "picture": shown.picture(window, [run.run]),
        "lines": [line for line in shown.lines() if line.event.run == run.run],
        "findings": findings,
        "harm": harm(findings),
    }


@admin.register(Event)
class EventAdmin(Record):
    list_display = [moment("at"), "box", "what", "order", "its_run"]
    list_select_related = ["run"]
    list_filter = ["kind", "box"]
    search_fields = ["order"]
    search_help_text = "An order’s reference"
    date_hierarchy = "at"
    shown = [
        moment("at"),
        moment("real_at"),
        "box",
        "what",
        "kind",
        "order",
        "answer",
        "token",
        "its_run",
        "data",
    ]

    @admin.display(description="what happened", ordering="kind")
    def what(self, event: Event) -> str:
        return tell(as_event(event))

    @admin.display(description="run", ordering="run")
    def its_run(self, event: Event) -> SafeString:
        return link("sweeper_sweeprun_change", event.run, event.run_id)


@admin.register(JobRun)
class JobRunAdmin(Record):
    list_display = ["job_name", "run_slot", "box", moment("at"), "its_run"]
    list_filter = ["job_name", "box"]
    date_hierarchy = "at"
    shown = ["job_name", "run_slot", "box", moment("at"), "its_run"]

    @admin.display(description="run")
    def its_run(self, election: JobRun) -> SafeString:
        return link("sweeper_sweeprun_change", "its run", election.run)
