"""What admin classes of a record have in common: to be read by whoever may, and changed by nobody."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.db.models import Model
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.timezone import localtime

Fields = list[str | list[str] | tuple[str, ...] | tuple[()]]

if TYPE_CHECKING:
    ModelAdmin = admin.ModelAdmin[Any]
    TabularInline = admin.TabularInline[Any, Any]
else:
    ModelAdmin, TabularInline = admin.ModelAdmin, admin.TabularInline


class Readable(ModelAdmin):
    """Lists that cost the same whatever they hold: no second count of the whole table, a hundred rows a page."""

    show_full_result_count = False
    show_facets = admin.ShowFacets.NEVER
    list_per_page = 100
    list_max_show_all = 500


class Record(Readable):
    """Rows that the shop's own code writes. Nobody adds, changes or deletes one here, not even a superuser.

    `shown` is what a row's page shows, in that order.
    """

    shown: Sequence[Any] = ()

    def get_fields(self, request: HttpRequest, obj: Model | None = None) -> Fields:
        return list(self.shown)

    def get_readonly_fields(self, request: HttpRequest, obj: Model | None = None) -> list[Any]:
        return list(self.shown)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False


class RecordInline(TabularInline):
    """Records beside the row they belong to."""

    extra = 0
    can_delete = False
    show_change_link = False
    shown: Sequence[Any] = ()

    def get_fields(self, request: HttpRequest, obj: Model | None = None) -> Fields:
        return list(self.shown)

    def get_readonly_fields(self, request: HttpRequest, obj: Model | None = None) -> list[Any]:
        return list(self.shown)

    def has_add_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False


def moment(field: str) -> Any:
    """A column or a line for a time, to the second and in London: the admin's own stops at the minute."""

    @admin.display(description=field.replace("_", " "), ordering=field)
    def when(row: Model) -> SafeString | str:
        at = getattr(row, field)
        if at is None:
            return "–"
        here = localtime(at)
        return format_html(
            '<time datetime="{}">{}</time>', at.isoformat(), f"{here:%a} {here.day} {here:%b %Y, %H:%M:%S}"
        )

    when.__name__ = field
    return when


def link(name: str, text: object, *args: object, query: str = "") -> SafeString:
    """`<a>` to an admin page by its URL's name (without `admin:`)."""
    return format_html('<a href="{}{}">{}</a>', reverse(f"admin:{name}", args=args), query, text)


def run_link(run: object, text: object) -> SafeString | str:
    """To the run of that UUID, by its page’s name: the shop knows nothing of the sweeper."""
    return link("sweeper_sweeprun_change", text, run) if run else str(text)
