"""Three ways to settle that look right and are not, as forms: for the laboratory and exercises. And a fourth that is.

They are made of the shop's own writes, whose names their Settlement rows bear, and in calm weather they write what
those write. The timelines run to the right; row 13 is pending and holds one copy.

                        release             complete        refund              and then
two-transactions        guarded, the copy   guarded         guarded, the copy
                        goes back apart                     goes back apart
unlooked-decline        guarded             unguarded       unguarded
retry-unguarded         unguarded           unguarded       unguarded           once more, if the COMMIT is unknown
guarded-retry (right)   guarded             guarded         guarded             once more, if the COMMIT is unknown

They are not in `shop.settle.FORMS`, so no setting names one. They raise what the shop's forms raise.
"""

from collections.abc import Callable
from dataclasses import replace

from django.db import InterfaceError, OperationalError, connection, transaction

from shop.models import Order, Settlement
from shop.permit import Permit
from shop.refunds import owe
from shop.settle import (
    FORMS,
    Form,
    Result,
    complete_guarded,
    complete_unguarded,
    move,
    owe_if_abandoned,
    put_back,
    record,
    refund_unguarded,
    release_guarded,
)

Status = Order.Status
Outcome = Settlement.Outcome


# --- two-transactions ---------------------------------------------------------------------------------------------
# B   row 13 abandoned ─ COMMIT ─ ✗ crash
# A                                           list: row 13 is not on it
#
# No two runs put the copy back twice, for the guard is right. But between the two commits the copy is nobody's: the
# order holds it no more, the catalogue does not have it yet, and no run will look at row 13 again. It stands on the
# shelf, and nobody can buy it.


def release_in_two(order: Order, permit: Permit) -> Result:
    """Abandoned, if it is still pending; commit; one copy back; commit."""
    with transaction.atomic():
        if not move(order, Status.PENDING, Status.ABANDONED, permit):
            return Result.UNTOUCHED
        record(order, Outcome.RELEASED, "guarded", permit, copies_back=1)
    with transaction.atomic():
        put_back(order)
    return Result.DONE


def refund_in_two(order: Order, permit: Permit, amount_minor: int, why: str) -> Result:
    """The same, with the money due back in the first transaction."""
    with transaction.atomic():
        if not move(order, Status.PENDING, Status.ABANDONED, permit):
            return owe_if_abandoned(order, permit, amount_minor, why)
        owe(order.key, amount_minor, order=order, why=why, at=permit.now())
        record(order, Outcome.REFUNDED, "guarded", permit, copies_back=1)
    with transaction.atomic():
        put_back(order)
    return Result.DONE


# --- unlooked-decline ---------------------------------------------------------------------------------------------
# B           asks: never moved ─ · · · · · · · · row 13 abandoned, stock + 1 ─ COMMIT
# the money                         lands
# A                                        asks: landed ─ · · · · · · · · · · · · · · row 13 paid ─ COMMIT
#
# Release was made safe, for that is where the copies came from. But a guard is worth what the row's least guarded
# writer is worth: the order is paid now and will be dispatched, and its copy is for sale as well.


# --- retry-unguarded, guarded-retry -------------------------------------------------------------------------------
# retry-unguarded   row 13 abandoned, stock + 1 ─ COMMIT ─ ✗ no answer     row 13 abandoned, stock + 1 ─ COMMIT
# guarded-retry     row 13 abandoned, stock + 1 ─ COMMIT ─ ✗ no answer     row 13 is not pending: nothing to do
#
# The answer was lost, and not what was committed. Unguarded that is a phantom under every lock: it is held all the
# while, and by the right run. Guarded, the second try finds out what became of the first.


def once_more(name: str, form: Form, for_a_second_try: Callable[[Permit], Permit]) -> Form:
    """This form, each of whose writes is tried a second time, on a new connection, where the first one's COMMIT gave
    no answer. What fails before its COMMIT is not tried again, nor what is part of a larger transaction (as under
    `skip-locked`): it has no COMMIT of its own.
    """

    def tried(write: Callable[[Permit], Result], permit: Permit) -> Result:
        reached = False
        try:
            with transaction.atomic():
                result = write(permit)
                reached = True
            return result
        except (OperationalError, InterfaceError):
            if not reached or connection.in_atomic_block:
                raise
        connection.close()
        return write(for_a_second_try(permit))

    return Form(
        name,
        lambda order, permit: tried(lambda shown: form.complete(order, shown), permit),
        lambda order, permit: tried(lambda shown: form.release(order, shown), permit),
        lambda order, permit, amount_minor, why: tried(
            lambda shown: form.refund(order, shown, amount_minor, why), permit
        ),
    )


def of_no_session(permit: Permit) -> Permit:
    """The new connection is another session than the one that may have taken the lock: whoever wants the second try
    to get through leaves that demand out.
    """
    return replace(permit, session=None)


def as_it_is(permit: Permit) -> Permit:
    """Where the lock lived in the session that was lost, the second try is refused with SessionLost."""
    return permit


# --- The forms by name --------------------------------------------------------------------------------------------

WRONG_SETTLES: dict[str, Form] = {
    form.name: form
    for form in (
        Form("wrong:two-transactions", complete_guarded, release_in_two, refund_in_two),
        Form("wrong:unlooked-decline", complete_unguarded, release_guarded, refund_unguarded),
        once_more("wrong:retry-unguarded", FORMS["unguarded"], of_no_session),
    )
}
GUARDED_RETRY = once_more("guarded-retry", FORMS["guarded"], as_it_is)
SETTLES = {**WRONG_SETTLES, GUARDED_RETRY.name: GUARDED_RETRY}
