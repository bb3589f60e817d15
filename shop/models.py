"""What the shop writes down: books, orders, the shelf's movements, and the money it owes back."""

from collections.abc import Iterable

from django.core.exceptions import ValidationError
from django.core.validators import MinValueValidator
from django.db import models
from django.db.models import Q

from shop.isbn import validate_isbn13


class ForbiddenMove(Exception):
    """An order may never go from this status to that one."""

    def __init__(self, source: str, target: str, allowed: Iterable[str]) -> None:
        may = " or ".join(sorted(allowed)) or "nothing else"
        super().__init__(f"An order can't go from {source} to {target}: from {source} it may become {may}.")
        self.source, self.target = source, target


class Publisher(models.Model):
    name = models.CharField(max_length=120, unique=True)

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name


class Book(models.Model):
    """A title in the catalogue. `stock` is what the catalogue promises to sell, not what stands on the shelf."""

    isbn = models.CharField("ISBN", max_length=13, unique=True, validators=[validate_isbn13])
    title = models.CharField(max_length=200)
    author = models.CharField(max_length=120)
    publisher = models.ForeignKey(Publisher, on_delete=models.PROTECT, related_name="books")
    price_minor = models.PositiveIntegerField("price (pence)", help_text="In minor units: 1299 is £12.99.")
    stock = models.IntegerField(default=0, validators=[MinValueValidator(0)])

    class Meta:
        ordering = ["title"]
        constraints = [
            models.CheckConstraint(condition=Q(stock__gte=0), name="book_stock_not_negative"),
            models.CheckConstraint(condition=Q(isbn__regex=r"^97[89][0-9]{10}$"), name="book_isbn_thirteen_digits"),
        ]

    def __str__(self) -> str:
        return self.title


class Order(models.Model):
    """One copy, held for one buyer, and what became of it.

    pending → paid → dispatched, or pending → abandoned. A pending order holds a copy that `stock` no longer counts.
    The run that settled it is named by its UUID: the shop knows nothing of the sweeper.
    """

    class Status(models.TextChoices):
        PENDING = "pending"
        PAID = "paid"
        DISPATCHED = "dispatched"
        ABANDONED = "abandoned"

    # Which status may follow which. `demand_move` and `clean` refuse the rest; the database refuses what even the
    # unguarded writes never do: see the trigger in migration 0002.
    FOLLOWS = {
        Status.PENDING: {Status.PAID, Status.ABANDONED},
        Status.PAID: {Status.DISPATCHED},
        Status.DISPATCHED: set(),
        Status.ABANDONED: set(),
    }

    reference = models.CharField(max_length=24, unique=True, help_text="What people call the order.")
    key = models.CharField("idempotency key", max_length=80, unique=True)
    book = models.ForeignKey(Book, on_delete=models.PROTECT, related_name="orders")
    buyer = models.CharField(max_length=120)
    amount_minor = models.PositiveIntegerField("amount (pence)")
    status = models.CharField(max_length=12, choices=Status, default=Status.PENDING)
    created_at = models.DateTimeField()
    settled_at = models.DateTimeField(null=True, blank=True)
    settled_by_box = models.CharField(max_length=40, blank=True)
    settled_by_run = models.UUIDField(null=True, blank=True)
    dispatched_at = models.DateTimeField(null=True, blank=True)
    dispatched_by = models.CharField(max_length=120, blank=True)
    refunded_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["created_at", "id"]
        indexes = [models.Index(fields=["status", "created_at", "id"], name="order_by_status_and_age")]
        constraints = [
            models.CheckConstraint(
                condition=Q(status__in=["pending", "paid", "dispatched", "abandoned"]),
                name="order_status_known",
            ),
            models.CheckConstraint(
                condition=Q(status="pending", settled_at__isnull=True)
                | (~Q(status="pending") & Q(settled_at__isnull=False)),
                name="order_settled_when_not_pending",
            ),
            models.CheckConstraint(
                condition=Q(status="dispatched", dispatched_at__isnull=False)
                | (~Q(status="dispatched") & Q(dispatched_at__isnull=True)),
                name="order_dispatched_has_its_time",
            ),
        ]

    def __str__(self) -> str:
        return self.reference

    def clean(self) -> None:
        """Refuse a status that may not follow the one in the database (ValidationError)."""
        stored = Order.objects.filter(pk=self.pk).values_list("status", flat=True).first()
        if stored is None or stored == self.status:
            return
        try:
            Order.demand_move(stored, self.status)
        except ForbiddenMove as forbidden:
            raise ValidationError({"status": str(forbidden)}) from forbidden

    @classmethod
    def demand_move(cls, source: str, target: str) -> None:
        """Raise ForbiddenMove unless `target` may follow `source`."""
        allowed = cls.FOLLOWS.get(cls.Status(source), set())
        if target not in allowed:
            raise ForbiddenMove(source, target, allowed)


class Settlement(models.Model):
    """One write to an order and the shelf, recorded in that write's own transaction.

    An order with two of these was settled twice, whatever its row says.
    """

    class Outcome(models.TextChoices):
        COMPLETED = "completed"
        RELEASED = "released"
        REFUNDED = "refunded"

    order = models.ForeignKey(Order, on_delete=models.PROTECT, related_name="settlements")
    outcome = models.CharField(max_length=12, choices=Outcome)
    form = models.CharField(max_length=24)
    box = models.CharField(max_length=40)
    run = models.UUIDField(null=True, blank=True)
    at = models.DateTimeField()
    copies_back = models.PositiveSmallIntegerField(default=0, help_text="Copies this write put back into stock.")

    class Meta:
        ordering = ["at", "id"]

    def __str__(self) -> str:
        return f"{self.order} {self.outcome}"


class Refund(models.Model):
    """Money to give back: written when it is owed, sent afterwards under its own key, once however often asked."""

    class State(models.TextChoices):
        DUE = "due"
        SENT = "sent"
        REFUSED = "refused"

    WHY_LENGTH = 200

    charge_key = models.CharField(max_length=80, unique=True)
    key = models.CharField("refund's own idempotency key", max_length=100, unique=True)
    order = models.ForeignKey(Order, on_delete=models.PROTECT, null=True, blank=True, related_name="refunds")
    amount_minor = models.PositiveIntegerField("amount (pence)")
    state = models.CharField(max_length=8, choices=State, default=State.DUE)
    due_at = models.DateTimeField()
    sent_at = models.DateTimeField(null=True, blank=True)
    why = models.CharField(max_length=WHY_LENGTH, blank=True)

    class Meta:
        ordering = ["due_at", "id"]

    def __str__(self) -> str:
        return f"refund of {self.charge_key}"


class StockMovement(models.Model):
    """Copies that came onto the shelf or left it: what a camera over the shelf would have seen."""

    class Kind(models.TextChoices):
        RECEIVED = "received"
        DISPATCHED = "dispatched"

    book = models.ForeignKey(Book, on_delete=models.PROTECT, related_name="movements")
    kind = models.CharField(max_length=10, choices=Kind)
    copies = models.PositiveIntegerField()
    order = models.OneToOneField(Order, on_delete=models.PROTECT, null=True, blank=True, related_name="movement")
    at = models.DateTimeField()

    class Meta:
        ordering = ["at", "id"]
        constraints = [
            models.CheckConstraint(condition=Q(copies__gte=1), name="movement_moves_something"),
            models.CheckConstraint(
                condition=Q(kind="received", order__isnull=True)
                | Q(kind="dispatched", order__isnull=False, copies=1),
                name="movement_dispatch_is_one_order",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.copies} {self.kind}"


class StockCount(models.Model):
    """A person stood before the shelf and counted."""

    book = models.ForeignKey(Book, on_delete=models.PROTECT, related_name="counts")
    copies = models.PositiveIntegerField()
    counted_by = models.CharField(max_length=120)
    at = models.DateTimeField()

    class Meta:
        ordering = ["-at", "-id"]

    def __str__(self) -> str:
        return f"{self.copies} counted"


class Fence(models.Model):
    """The highest token a resource has obeyed. `settle.py` and `raise_fence` are the only writers."""

    name = models.CharField(max_length=80, primary_key=True)
    token = models.BigIntegerField(default=0)

    def __str__(self) -> str:
        return f"{self.name} at {self.token}"


class StrayCharge(models.Model):
    """A landed charge for which the shop found no order that keeps it: money without an order.

    Written by the reconcile job, one row a charge however often and wherever it runs.
    """

    key = models.CharField("idempotency key", max_length=80, unique=True)
    order = models.ForeignKey(Order, on_delete=models.PROTECT, null=True, blank=True, related_name="stray_charges")
    amount_minor = models.PositiveIntegerField("amount (pence)")
    landed_at = models.DateTimeField()
    found_at = models.DateTimeField()
    found_by_box = models.CharField(max_length=40)

    class Meta:
        ordering = ["landed_at", "id"]
        verbose_name = "charge without an order"
        verbose_name_plural = "charges without an order"

    def __str__(self) -> str:
        return self.key
