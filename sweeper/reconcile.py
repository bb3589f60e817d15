"""Money without an order: charges that landed and no order keeps, found, shown beside the shelf, given back once.

A look-up's "no" is not final, so a charge can land after its order was released. Safe to run twice and on both boxes
at once: one stray row and one refund a charge are unique constraints, and the refund's key moves money once.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta

from django.db import transaction
from django.db.models import QuerySet

from marlow.clock import Clock
from shop.models import Order, StrayCharge
from shop.provider.answers import LandedCharge, Provider
from shop.refunds import correct, owe, send_due

LOOK_BACK = timedelta(days=7)


@dataclass(frozen=True)
class Reconciled:
    """What one look came to. `looked` is False when the provider did not answer: nothing is known then."""

    looked: bool
    stray: int = 0


def reconcile(provider: Provider, clock: Clock, box: str) -> Reconciled:
    """List the charges of the last seven days, write down those without an order, refund what is due."""
    charges = provider.charges_since(clock.now() - LOOK_BACK)
    landed = {charge.key: charge for charge in charges or [] if not charge.refunded}
    kept = set(_kept(landed).values_list("key", flat=True))
    stray = [charge for key, charge in landed.items() if key not in kept and _note(charge, clock, box)]
    send_due(provider, clock)
    return Reconciled(looked=charges is not None, stray=len(stray))


def _kept(keys: Iterable[str]) -> QuerySet[Order]:
    """The orders that keep their charge: pending ones are the sweeper's to complete."""
    return Order.objects.filter(key__in=list(keys)).exclude(status=Order.Status.ABANDONED)


def _note(charge: LandedCharge, clock: Clock, box: str) -> bool:
    """Write the stray charge and its refund together; False if the charge has an order that keeps it."""
    with transaction.atomic():
        # A settle of the same order that is under way is waited for: its refund and ours are one row.
        order = Order.objects.select_for_update().filter(key=charge.key).first()
        if order is not None and order.status != Order.Status.ABANDONED:
            return False
        stray = StrayCharge(
            key=charge.key,
            order=order,
            amount_minor=charge.amount_minor,
            landed_at=charge.landed_at,
            found_at=clock.now(),
            found_by_box=box,
        )
        StrayCharge.objects.bulk_create([stray], ignore_conflicts=True)
        owe(charge.key, charge.amount_minor, order=order, why="the charge landed, no order keeps it", at=clock.now())
        correct(charge.key, charge.amount_minor)
    return True
