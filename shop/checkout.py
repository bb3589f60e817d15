"""From the button to the parcel: hold a copy, charge, complete, dispatch.

buyer ── hold ──── charge ──────── complete      one commit · no transaction, up to 10 s · one commit
                      └ no answer: the row stays pending and its copy held, for the sweeper to find
"""

import re
import uuid
from collections.abc import Callable

from django.db import IntegrityError, transaction
from django.db.models import F

from marlow.clock import Clock
from shop.decide import carry_out, decide
from shop.models import Book, Order, StockMovement
from shop.permit import Permit
from shop.provider.answers import Provider
from shop.settle import FORMS, Form

KEY = re.compile(r"[A-Za-z0-9._:~-]{1,80}")


class CheckoutError(Exception):
    """The order was not made, or not moved on; the sentence says what to do."""


class SoldOut(CheckoutError):
    """No copy was left to hold."""


class KeyTaken(CheckoutError):
    """The idempotency key belongs to an order for something else."""


class NotPaid(CheckoutError):
    """Only a paid order is dispatched, and only once."""


def uuid_ids() -> str:
    """Production's source of fresh keys, for the edge to hand in."""
    return uuid.uuid4().hex


def hold(book: Book, buyer: str, clock: Clock, key: str, reference: str) -> Order:
    """Take one copy out of stock and write the pending order that holds it, in one commit.

    The order asks for the price of the `book` handed in: what the buyer was shown. A key that has an order already
    gets that order back, and nothing more is held. Raises SoldOut, and KeyTaken when the key's order is for another
    book or buyer.
    """
    if not KEY.fullmatch(key):
        raise CheckoutError(
            "A key is 1 to 80 letters, digits and . _ : ~ - without spaces, as the provider takes them."
        )
    if not 0 < len(buyer) <= 120 or not buyer.isprintable():
        raise CheckoutError("A buyer's name is printable text of 1 to 120 characters.")
    if (earlier := _by_key(key, book, buyer)) is not None:
        return earlier
    try:
        return _hold_new(book, buyer, clock, key, reference)
    except (IntegrityError, SoldOut):
        # The same key at the same moment: the other request won the row, perhaps with the last copy.
        if (earlier := _by_key(key, book, buyer)) is not None:
            return earlier
        raise


def _hold_new(book: Book, buyer: str, clock: Clock, key: str, reference: str) -> Order:
    with transaction.atomic():
        # update shop_book set stock = stock - 1 where id = :book and stock > 0: no row, no copy.
        if not Book.objects.filter(pk=book.pk, stock__gt=0).update(stock=F("stock") - 1):
            raise SoldOut(f"{book.title} is sold out: nothing was charged.")
        return Order.objects.create(
            reference=reference,
            key=key,
            book=book,
            buyer=buyer,
            amount_minor=book.price_minor,
            created_at=clock.now(),
        )


def _by_key(key: str, book: Book, buyer: str) -> Order | None:
    order = Order.objects.filter(key=key).first()
    if order is not None and (order.book_id, order.buyer) != (book.pk, buyer):
        raise KeyTaken(f"Key {key} belongs to order {order.reference}: send a new order under a new key.")
    return order


def checkout(
    book: Book,
    buyer: str,
    *,
    provider: Provider,
    clock: Clock,
    ids: Callable[[], str],
    key: str | None = None,
    box: str = "web",
    form: Form = FORMS["guarded"],
) -> Order:
    """Sell one copy; answers the order as it then stands: paid, abandoned, or pending when nobody knows.

    `ids` gives a fresh string (80 characters at most, its last 20 unique) each time. A buyer's retry sends its first
    `key` again and gets the first order back: nothing more is held, nothing is charged twice. `form` is guarded or
    unguarded, for a checkout holds no lock and so has no token. Call it outside transactions. Raises SoldOut,
    KeyTaken.
    """
    if form.fenced:
        raise CheckoutError(f"A checkout has no token, so it can't settle {form.name}: choose guarded.")
    reference = ids()[-20:]
    order = hold(book, buyer, clock, key or ids(), reference)
    if order.reference == reference:
        answer = provider.charge(order.key, order.amount_minor)
        if answer.known:
            carry_out(decide(order, answer), order, Permit(clock=clock, box=box), form)
        order.refresh_from_db()
    return order


def dispatch(order: Order, clock: Clock, by: str) -> None:
    """A paid order's copy leaves the shelf, in one commit with its movement. `by` is who packed it.

    Raises NotPaid. Of two who dispatch one order, one gets NotPaid.
    """
    Order.demand_move(Order.Status.PAID, Order.Status.DISPATCHED)
    now = clock.now()
    with transaction.atomic():
        # update shop_order … where id = :id and status = 'paid': of two dispatchers one matches.
        paid = Order.objects.filter(pk=order.pk, status=Order.Status.PAID)
        if not paid.update(status=Order.Status.DISPATCHED, dispatched_at=now, dispatched_by=by):
            status = Order.objects.values_list("status", flat=True).get(pk=order.pk)
            raise NotPaid(f"Order {order.reference} is {status}: only a paid order can be dispatched.")
        StockMovement.objects.create(
            book_id=order.book_id, kind=StockMovement.Kind.DISPATCHED, copies=1, order=order, at=now
        )
