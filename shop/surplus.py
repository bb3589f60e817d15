"""Which orders made a book's catalogue differ from its shelf, and by how much."""

from typing import TYPE_CHECKING, TypedDict

from django.db.models import Case, F, IntegerField, OuterRef, QuerySet, Subquery, Sum, Value, When
from django.db.models.functions import Coalesce

from shop.models import Order, Settlement

if TYPE_CHECKING:
    from django_stubs_ext import WithAnnotations

    class Given(TypedDict):
        back: int
        surplus: int

    OrderWithSurplus = WithAnnotations[Order, Given]


def surplus(orders: QuerySet[Order]) -> "QuerySet[OrderWithSurplus]":
    """Orders with `back`, the copies their settlements put into stock, and `surplus`, what that is too many.

    An order took one copy out of stock. Either its buyer has it, or will, or it went back once: anything more is a
    phantom copy (positive), anything less a lost one (negative).
    """
    of_order = Settlement.objects.filter(order=OuterRef("pk")).order_by().values("order")
    kept = Case(When(status=Order.Status.ABANDONED, then=Value(0)), default=Value(1), output_field=IntegerField())
    return orders.annotate(
        back=Coalesce(Subquery(of_order.annotate(copies=Sum("copies_back")).values("copies")), 0),
        surplus=F("back") + kept - 1,
    )
