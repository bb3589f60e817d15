"""Three writes (complete, release, refund and release) in four forms, for reading side by side.

unguarded      the order's row is written whatever it says, and the copy goes back every time. The shop shipped this.
guarded        the row is written only while it is still pending; everything else happens only if that matched.
fenced         the fence's row is locked first and must carry our token; then as unguarded.
fenced+guarded both, and what production ships wherever the lock mints a token.

                two releases of one pending row, both decided before either wrote    a run that was overtaken
unguarded       both write, two copies come back                                     writes
guarded         the second matches no row and writes nothing                         writes rows still pending
fenced          the same token may still write twice                                 refused, rolled back
fenced+guarded  the second matches no row and writes nothing                         refused, rolled back

Every write is one transaction on the default database and leaves a Settlement row in it. The `order` handed in is
never refreshed. All of them raise SessionLost when the permit names a session and this one is another; the fenced
forms raise NotFenced without a token and StaleToken when the fence carries another. Whatever is raised, nothing was
written, except for an error of the COMMIT itself, whose outcome nobody knows: the guarded forms may be tried again
then, the unguarded may not.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from django.db import transaction
from django.db.models import F, QuerySet

from shop.fence import demand_session, in_session, pass_fence, raise_then_read
from shop.models import Book, Order, Settlement
from shop.permit import Permit
from shop.refunds import owe, owed

Status = Order.Status
Outcome = Settlement.Outcome


class Result(StrEnum):
    """DONE: this call settled the order. UNTOUCHED: somebody else had, and nothing was written. OWED: somebody else
    had abandoned it, and only the money that landed was written down as due back.
    """

    DONE = "done"
    UNTOUCHED = "untouched"
    OWED = "owed"


# --- complete: pending -> paid ------------------------------------------------------------------------------------


def complete_unguarded(order: Order, permit: Permit) -> Result:
    """Paid, whatever it was: an abandoned order becomes paid although its copy went back."""
    with transaction.atomic():
        overwrite(order, Status.PAID, permit)
        record(order, Outcome.COMPLETED, "unguarded", permit)
    return Result.DONE


def complete_guarded(order: Order, permit: Permit) -> Result:
    """Paid, if it is still pending."""
    with transaction.atomic():
        if not move(order, Status.PENDING, Status.PAID, permit):
            return Result.UNTOUCHED
        record(order, Outcome.COMPLETED, "guarded", permit)
    return Result.DONE


def complete_fenced(order: Order, permit: Permit) -> Result:
    """Paid, whatever it was, if nobody has overtaken us."""
    with transaction.atomic():
        pass_fence(permit)
        overwrite(order, Status.PAID, permit)
        record(order, Outcome.COMPLETED, "fenced", permit)
    return Result.DONE


def complete_fenced_guarded(order: Order, permit: Permit) -> Result:
    """Paid, if nobody has overtaken us and it is still pending."""
    with transaction.atomic():
        pass_fence(permit)
        if not move(order, Status.PENDING, Status.PAID, permit):
            return Result.UNTOUCHED
        record(order, Outcome.COMPLETED, "fenced+guarded", permit)
    return Result.DONE


# --- release: pending -> abandoned, and the copy goes back --------------------------------------------------------


def release_unguarded(order: Order, permit: Permit) -> Result:
    """Abandoned, whatever it was, and a copy back every time: a second release makes a copy no shelf holds."""
    with transaction.atomic():
        overwrite(order, Status.ABANDONED, permit)
        put_back(order)
        record(order, Outcome.RELEASED, "unguarded", permit, copies_back=1)
    return Result.DONE


def release_guarded(order: Order, permit: Permit) -> Result:
    """Abandoned and one copy back, if it is still pending."""
    with transaction.atomic():
        if not move(order, Status.PENDING, Status.ABANDONED, permit):
            return Result.UNTOUCHED
        put_back(order)
        record(order, Outcome.RELEASED, "guarded", permit, copies_back=1)
    return Result.DONE


def release_fenced(order: Order, permit: Permit) -> Result:
    """Abandoned, whatever it was, and a copy back every time, if nobody has overtaken us."""
    with transaction.atomic():
        pass_fence(permit)
        overwrite(order, Status.ABANDONED, permit)
        put_back(order)
        record(order, Outcome.RELEASED, "fenced", permit, copies_back=1)
    return Result.DONE


def release_fenced_guarded(order: Order, permit: Permit) -> Result:
    """Abandoned and one copy back, if nobody has overtaken us and it is still pending."""
    with transaction.atomic():
        pass_fence(permit)
        if not move(order, Status.PENDING, Status.ABANDONED, permit):
            return Result.UNTOUCHED
        put_back(order)
        record(order, Outcome.RELEASED, "fenced+guarded", permit, copies_back=1)
    return Result.DONE


# --- refund and release: the money landed, the order can't be completed -------------------------------------------
# `amount_minor` is what landed (minor units), which need not be what the order asked for. Money that is due is only
# written here; `refunds.send_due` sends it.


def refund_unguarded(order: Order, permit: Permit, amount_minor: int, why: str) -> Result:
    """Abandoned, whatever it was, a copy back every time, and the money due back."""
    with transaction.atomic():
        overwrite(order, Status.ABANDONED, permit)
        put_back(order)
        owe(order.key, amount_minor, order=order, why=why, at=permit.now())
        record(order, Outcome.REFUNDED, "unguarded", permit, copies_back=1)
    return Result.DONE


def refund_guarded(order: Order, permit: Permit, amount_minor: int, why: str) -> Result:
    """Abandoned and one copy back, if it is still pending; the money due back, also if it was abandoned before.

    An order that is paid or dispatched keeps its money: UNTOUCHED.
    """
    with transaction.atomic():
        if not move(order, Status.PENDING, Status.ABANDONED, permit):
            return owe_if_abandoned(order, permit, amount_minor, why)
        put_back(order)
        owe(order.key, amount_minor, order=order, why=why, at=permit.now())
        record(order, Outcome.REFUNDED, "guarded", permit, copies_back=1)
    return Result.DONE


def refund_fenced(order: Order, permit: Permit, amount_minor: int, why: str) -> Result:
    """As unguarded, if nobody has overtaken us."""
    with transaction.atomic():
        pass_fence(permit)
        overwrite(order, Status.ABANDONED, permit)
        put_back(order)
        owe(order.key, amount_minor, order=order, why=why, at=permit.now())
        record(order, Outcome.REFUNDED, "fenced", permit, copies_back=1)
    return Result.DONE


def refund_fenced_guarded(order: Order, permit: Permit, amount_minor: int, why: str) -> Result:
    """As guarded, if nobody has overtaken us."""
    with transaction.atomic():
        pass_fence(permit)
        if not move(order, Status.PENDING, Status.ABANDONED, permit):
            return owe_if_abandoned(order, permit, amount_minor, why)
        put_back(order)
        owe(order.key, amount_minor, order=order, why=why, at=permit.now())
        record(order, Outcome.REFUNDED, "fenced+guarded", permit, copies_back=1)
    return Result.DONE


# --- The forms by name --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Form:
    """One way to write to an order, by its name in `SWEEPER_SETTLE`; `read` gives the list to work on."""

    name: str
    complete: Callable[[Order, Permit], Result]
    release: Callable[[Order, Permit], Result]
    refund: Callable[[Order, Permit, int, str], Result]
    read: Callable[[Permit, QuerySet[Order]], list[Order]] = lambda permit, rows: list(rows)
    fenced: bool = False  # whether the permit must carry a token


FORMS: dict[str, Form] = {
    form.name: form
    for form in (
        Form("unguarded", complete_unguarded, release_unguarded, refund_unguarded),
        Form("guarded", complete_guarded, release_guarded, refund_guarded),
        Form("fenced", complete_fenced, release_fenced, refund_fenced, raise_then_read, fenced=True),
        Form(
            "fenced+guarded",
            complete_fenced_guarded,
            release_fenced_guarded,
            refund_fenced_guarded,
            raise_then_read,
            fenced=True,
        ),
    )
}


# --- The words the forms are made of ------------------------------------------------------------------------------


def overwrite(order: Order, target: Order.Status, permit: Permit) -> None:
    """update shop_order set status = :target, settled… where id = :id. No look at what the row says.

    Zero rows can only mean that the session is gone: raises SessionLost.
    """
    if not in_session(Order.objects.filter(pk=order.pk), permit).update(status=target, **settled(permit)):
        demand_session(permit)


def move(order: Order, source: Order.Status, target: Order.Status, permit: Permit) -> bool:
    """update shop_order set status = :target, settled… where id = :id and status = :source; did it match?

    A second writer waits here for the first one's commit and then looks at the row again, so of two only one
    matches. Raises ForbiddenMove when no order may ever go from `source` to `target`.
    """
    Order.demand_move(source, target)
    still_there = Order.objects.filter(pk=order.pk, status=source)
    if in_session(still_there, permit).update(status=target, **settled(permit)):
        return True
    demand_session(permit)
    return False


def settled(permit: Permit) -> dict[str, Any]:
    """Who settled, and when (this box's virtual time)."""
    return {"settled_at": permit.now(), "settled_by_box": permit.box, "settled_by_run": permit.run}


def put_back(order: Order) -> None:
    """update shop_book set stock = stock + 1 where id = :book. Added by the database, so no addition is lost."""
    Book.objects.filter(pk=order.book_id).update(stock=F("stock") + 1)


def record(order: Order, outcome: Settlement.Outcome, form: str, permit: Permit, *, copies_back: int = 0) -> None:
    """One Settlement row in the write's own transaction: it is there exactly if the write is."""
    Settlement.objects.create(
        order_id=order.pk,
        outcome=outcome,
        form=form,
        box=permit.box,
        run=permit.run,
        at=permit.now(),
        copies_back=copies_back,
    )


def owe_if_abandoned(order: Order, permit: Permit, amount_minor: int, why: str) -> Result:
    """For an order somebody else has settled: money due back if it was abandoned, and never a second copy.

    The row is locked for the look, so that two of these take turns and one of them finds the other's refund.
    """
    status = Order.objects.select_for_update(no_key=True).values_list("status", flat=True).get(pk=order.pk)
    if status != Status.ABANDONED or owed(order.key):
        return Result.UNTOUCHED
    owe(order.key, amount_minor, order=order, why=why, at=permit.now())
    return Result.OWED
