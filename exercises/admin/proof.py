"""The cells of the lock table that were played: a list, and each with its story."""

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.text import Truncator
from django.utils.timezone import localtime

from exercises.admin.promise import by_the_table, figures, lines, promised, shortly, with_figures
from exercises.models import Proof
from exercises.proof.cells import ABOUT
from shop.admin.record import Record, link, moment
from shop.words import count
from sweeper.admin.scene import kept_scene
from sweeper.findings import harm
from sweeper.kept import raw_events
from sweeper.window import closely

A_CELL = 80  # characters: why a cell was skipped or broke off is told whole on its own page
AGREES, DIFFERS, SKIPPED = "agrees", "differs", "skipped"
ENDINGS: dict[str, dict[str, bool | None]] = {
    AGREES: {"agrees": True},
    DIFFERS: {"agrees": False},
    SKIPPED: {"agrees__isnull": True},
}
TONES = {AGREES: "good", DIFFERS: "bad", SKIPPED: "warn"}


def ending(proof: Proof) -> str:
    """Whether the table was right."""
    return SKIPPED if proof.agrees is None else AGREES if proof.agrees else DIFFERS


class Ending(admin.SimpleListFilter):
    title, parameter_name = "against the table", "ending"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(name, name) for name in ENDINGS]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Proof]) -> QuerySet[Proof]:
        return queryset.filter(**ENDINGS.get(self.value() or "", {}))


@admin.register(Proof)
class ProofAdmin(Record):
    list_display = ["when", "fault", "lock", "settle", "stopping", "wanted", "came", "ended", "took"]
    list_filter = [Ending, "fault", "lock", "settle"]
    date_hierarchy = "real_at"
    change_form_template = "admin/exercises/proof.html"
    shown = ["lock", "fault", "settle", "stopping", "took", moment("real_at"), "whole"]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Proof]:
        return with_figures(super().get_queryset(request))

    @admin.display(description="when", ordering="real_at")
    def when(self, proof: Proof) -> SafeString:
        """To the minute: all cells of one `manage.py prove` have the same moment."""
        here = localtime(proof.real_at)
        return format_html('<time datetime="{}">{}</time>', here.isoformat(), f"{here.day} {here:%b %Y, %H:%M}")

    @admin.display(description="stopping", ordering="stop_on_lost_lease")
    def stopping(self, proof: Proof) -> str:
        return "yes" if proof.stop_on_lost_lease else "–"

    @admin.display(description="expected")
    def wanted(self, proof: Proof) -> str:
        return shortly(proof.expected)

    @admin.display(description="seen")
    def came(self, proof: Proof) -> str:
        seen = figures(proof)
        why = proof.skipped or str(seen.get("error", ""))
        return Truncator(why).chars(A_CELL) if why else shortly({name: seen.get(name) for name in proof.expected})

    @admin.display(description="table", ordering="agrees")
    def ended(self, proof: Proof) -> SafeString:
        return format_html('<span class="chip {}">{}</span>', TONES[ending(proof)], ending(proof))

    @admin.display(description="seconds", ordering="seconds")
    def took(self, proof: Proof) -> str:
        return f"{proof.seconds:.1f}"

    @admin.display(description="played with it")
    def whole(self, proof: Proof) -> SafeString:
        return link("exercises_proof_changelist", "all cells of this proof", query=f"?batch__exact={proof.batch}")

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """The cell's page: what was promised, what was seen, and how it went."""
        proof = self.get_object(request, object_id)
        if proof is not None:
            extra_context = {**(extra_context or {}), **_told(proof), **_story(proof)}
        return super().change_view(request, object_id, form_url, extra_context)


def _told(proof: Proof) -> dict[str, Any]:
    seen = proof.seen if isinstance(proof.seen, dict) else {}
    return {
        "about": ABOUT.get(proof.fault, ""),
        "promised": promised(proof.lock),
        "by_the_table": by_the_table(proof.expected),
        "ending": ending(proof),
        "tone": TONES[ending(proof)],
        "error": seen.get("error", ""),
        "table": lines(proof.expected, proof.seen),
    }


def _story(proof: Proof) -> dict[str, Any]:
    """The picture and the sentences of its events, which are of a shop that is not this one."""
    scene = kept_scene(proof.seen, proof.lock)
    unread = len(raw_events(proof.seen)) - len(scene.events)
    return {
        "kept": True,
        "unread": count(unread, "event") if unread else "",
        "picture": scene.picture(closely(scene.spans)) if scene.spans else None,
        "lines": scene.lines(),
        "findings": scene.findings,
        "harm": harm(scene.findings),
    }
