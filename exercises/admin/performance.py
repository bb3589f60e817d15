"""What was played on this shop, and how it ended."""

from django.contrib import admin
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from exercises.models import Performance
from exercises.words import in_words
from shop.admin.record import Record, link, moment

# Of a verdict; its events and its schedule are long, and told better by the timeline.
FIGURES = ["lock", "settle", "question", "phantom", "lost", "double_settles", "foreign_deletes", "overlaps"]


@admin.register(Performance)
class PerformanceAdmin(Record):
    list_display = [moment("real_at"), "scenario", "lock", "settle", "question", "words"]
    list_filter = ["scenario", "lock", "settle"]
    date_hierarchy = "real_at"
    shown = [
        *("words", "table", "shelf", "evening"),
        *("scenario", "lock", "settle", "question", moment("began_at"), moment("ended_at"), moment("real_at")),
    ]

    @admin.display(description="verdict")
    def words(self, performance: Performance) -> str:
        return in_words(performance.verdict)

    @admin.display(description="figures")
    def table(self, performance: Performance) -> SafeString:
        verdict = performance.verdict or {}
        figures = [(name.replace("_", " "), verdict[name]) for name in FIGURES if name in verdict]
        rows = format_html_join("", '<tr><th scope="row">{}</th><td class="number">{}</td></tr>', figures)
        return format_html('<table class="ledger small-table"><tbody>{}</tbody></table>', rows)

    @admin.display(description="what it left")
    def shelf(self, performance: Performance) -> SafeString:
        return link("shop_shelf", "the shelf against the catalogue")

    @admin.display(description="how it went")
    def evening(self, performance: Performance) -> SafeString:
        return link("sweeper_timeline", "the evening on the timeline")
