"""No lock on the job: each row is locked for as long as it is worked on, and locked rows are stepped over."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING

from django.db import connection, transaction

from sweeper.locks.base import Lease, Lock, Refusal

if TYPE_CHECKING:
    from shop.models import Order


class RowsLease(Lease):
    def claim(self, order: "Order") -> AbstractContextManager[bool]:
        return _locked(order)


# In: id, status. Locks the row, unless another session has it locked or it has left that status. Out: a row if so.
CLAIM = "select id from shop_order where id = %s and status = %s for update skip locked"


@contextmanager
def _locked(order: "Order") -> Iterator[bool]:
    """The look at the status is part of the claim: between another worker's list and this lock the row may have been
    settled. The settle then runs in this very transaction, as a savepoint of it, and is committed with the lock.
    """
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute(CLAIM, (order.pk, order.Status.PENDING.value))
            claimed = cursor.fetchone() is not None
        yield claimed


class SkipLocked(Lock):
    """Promises that no row is worked on by two workers at once, whoever comes and however many; the job itself is
    anybody's. A worker's rows come free when its session ends: at once when it is killed, by the keepalive settings
    when its box loses power.

    Safe at READ COMMITTED, where the claim looks at the locked row's own state and the settle commits with the claim.
    Its price: a transaction stays open across the question to the provider, as long as that takes.
    """

    name = "skip-locked"
    excludes = False
    mints_token = False
    expires = False
    outlives_holder = False

    def acquire(self, name: str, ttl: float) -> Lease | Refusal:
        return RowsLease(holder=self.ports.run)
