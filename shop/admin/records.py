"""The shop's records: orders and what was written to them, movements of the shelf, money that has to go back."""

from typing import Any

from django.contrib import admin
from django.db.models import Count, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.http import urlencode
from django.utils.safestring import SafeString

from shop.admin.record import Record, RecordInline, link, moment, run_link
from shop.models import Fence, Order, Refund, Settlement, StockMovement, StrayCharge
from shop.money import pounds
from shop.words import times


class HowOftenSettled(admin.SimpleListFilter):
    """Orders by the number of settlements that were written to them."""

    title = "times settled"
    parameter_name = "times"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [("0", times(0)), ("1", times(1)), ("2", f"{times(2)} or more")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Order]) -> QuerySet[Order]:
        wanted = {"0": {"times": 0}, "1": {"times": 1}, "2": {"times__gte": 2}}.get(self.value() or "")
        return queryset.filter(**wanted) if wanted else queryset


class SettlementInline(RecordInline):
    model = Settlement
    shown = [moment("at"), "outcome", "form", "box", "its_run", "copies_back"]

    @admin.display(description="run")
    def its_run(self, settlement: Settlement) -> SafeString | str:
        return run_link(settlement.run, "this run" if settlement.run else "–")


class RefundInline(RecordInline):
    model = Refund
    shown = [moment("due_at"), "money", "state", moment("sent_at"), "why"]

    @admin.display(description="amount")
    def money(self, refund: Refund) -> str:
        return pounds(refund.amount_minor)


class StrayChargeInline(RecordInline):
    model = StrayCharge
    shown = [moment("landed_at"), "money", moment("found_at"), "found_by_box"]

    @admin.display(description="amount")
    def money(self, charge: StrayCharge) -> str:
        return pounds(charge.amount_minor)


@admin.register(Order)
class OrderAdmin(Record):
    list_display = ["reference", "shelf", "buyer", "amount", "status", moment("created_at"), "settled", "settled_by"]
    list_select_related = ["book"]
    list_filter = ["status", HowOftenSettled, "settled_by_box"]
    search_fields = ["reference", "buyer", "book__title", "book__isbn", "key"]
    search_help_text = "A reference, a buyer, a title, an ISBN or a key"
    date_hierarchy = "created_at"
    shown = [
        *("reference", "book", "shelf", "buyer", "amount", "status", "settled", "settled_by", "evening"),
        *(moment("created_at"), moment("settled_at"), moment("dispatched_at"), "dispatched_by"),
        *(moment("refunded_at"), "key"),
    ]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Order]:
        """With the number of settlements, counted apart: a join would be counted again by every page's COUNT."""
        of_order = Settlement.objects.filter(order=OuterRef("pk")).order_by().values("order")
        often = Coalesce(Subquery(of_order.annotate(times=Count("pk")).values("times")), 0)
        orders: QuerySet[Order] = super().get_queryset(request)
        return orders.annotate(times=often)

    def get_inlines(self, request: HttpRequest, obj: Order | None) -> list[Any]:
        """Its settlements; refunds and stray charges where there are any."""
        if obj is None:
            return []
        refunds = [RefundInline] if obj.refunds.exists() else []
        strays = [StrayChargeInline] if obj.stray_charges.exists() else []
        return [SettlementInline, *refunds, *strays]

    @admin.display(description="amount", ordering="amount_minor")
    def amount(self, order: Order) -> str:
        return pounds(order.amount_minor)

    @admin.display(description="on the shelf", ordering="book__title")
    def shelf(self, order: Order) -> SafeString:
        return link("shop_shelf_book", order.book, order.book_id)

    @admin.display(description="settled", ordering="times")
    def settled(self, order: Order) -> SafeString | str:
        often: int = getattr(order, "times", 0)
        words = times(often) if often else "–"
        return words if often < 2 else format_html('<strong class="chip bad">{}</strong>', words)

    @admin.display(description="last settled by", ordering="settled_by_box")
    def settled_by(self, order: Order) -> SafeString | str:
        return run_link(order.settled_by_run, order.settled_by_box or "–")

    @admin.display(description="its evening")
    def evening(self, order: Order) -> SafeString:
        return link("sweeper_timeline", "See it on the timeline", query=f"?{urlencode({'order': order.reference})}")


@admin.register(Settlement)
class SettlementAdmin(Record):
    list_display = [moment("at"), "order", "outcome", "form", "box", "its_run", "copies_back"]
    list_select_related = ["order"]
    list_filter = ["outcome", "form", "box"]
    search_fields = ["order__reference"]
    date_hierarchy = "at"
    shown = ["its_order", "outcome", "form", "box", "its_run", moment("at"), "copies_back"]

    @admin.display(description="order")
    def its_order(self, settlement: Settlement) -> SafeString:
        return link("shop_order_change", settlement.order, settlement.order_id)

    @admin.display(description="run")
    def its_run(self, settlement: Settlement) -> SafeString | str:
        return run_link(settlement.run, "its run" if settlement.run else "–")


class Money(Record):
    """A record of an amount, and perhaps of the order it belongs to."""

    @admin.display(description="amount", ordering="amount_minor")
    def amount(self, row: Refund | StrayCharge) -> str:
        return pounds(row.amount_minor)


@admin.register(Refund)
class RefundAdmin(Money):
    list_display = [moment("due_at"), "order", "amount", "state", moment("sent_at"), "why"]
    list_select_related = ["order"]
    list_filter = ["state"]
    search_fields = ["order__reference", "charge_key"]
    date_hierarchy = "due_at"
    shown = ["order", "amount", "state", moment("due_at"), moment("sent_at"), "why", "charge_key", "key"]


@admin.register(StrayCharge)
class StrayChargeAdmin(Money):
    list_display = [moment("landed_at"), "order", "amount", moment("found_at"), "found_by_box", "key"]
    list_select_related = ["order"]
    list_filter = ["found_by_box"]
    search_fields = ["order__reference", "key"]
    date_hierarchy = "landed_at"
    shown = ["order", "amount", moment("landed_at"), moment("found_at"), "found_by_box", "key"]


@admin.register(StockMovement)
class StockMovementAdmin(Record):
    list_display = [moment("at"), "shelf", "kind", "copies", "order"]
    list_select_related = ["book", "order"]
    list_filter = ["kind"]
    search_fields = ["book__title", "book__isbn", "order__reference"]
    date_hierarchy = "at"
    shown = ["book", "shelf", "kind", "copies", "order", moment("at")]

    @admin.display(description="on the shelf", ordering="book__title")
    def shelf(self, movement: StockMovement) -> SafeString:
        return link("shop_shelf_book", movement.book, movement.book_id)


@admin.register(Fence)
class FenceAdmin(Record):
    list_display = ["name", "token"]
