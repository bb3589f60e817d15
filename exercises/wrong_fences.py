"""Five fences that look right and let a stale write through, as forms to settle in: for the laboratory and exercises.

Each is the shop's fenced form but for one thing, and each refuses in calm weather what the right one refuses. What
it lets through takes two boxes in one order, drawn with the function that makes the difference: time runs to the
right, B holds token 1, A token 2, and row 13 is settled by both.

                     the list is read                the look, inside the write's transaction
late-fence           without raising the fence       raises the fence to our token, or finds a higher one
plain-select         behind the raised fence         select token, compared here
sub-select           behind the raised fence         a sub-select in the order's own update
key-share            behind the raised fence         select … for key share, compared here
one-statement        in the statement that raises    as the shop's: an update that locks the fence's row
the shop's fenced    behind the raised fence         an update that locks the fence's row

They are not in `shop.settle.FORMS`, so no setting names one. They raise what the fenced forms raise: StaleToken,
NotFenced, SessionLost.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from django.db import transaction
from django.db.models import QuerySet, Subquery, Value
from django.db.models.lookups import Exact

from shop.fence import demand_session, demand_token, in_session, pass_fence, raise_then_read, refuse
from shop.models import Fence, Order, Settlement
from shop.permit import Permit
from shop.refunds import owe
from shop.settle import Form, Result, put_back, record, settled

Status = Order.Status
Outcome = Settlement.Outcome


# --- What is wrong with each --------------------------------------------------------------------------------------


def raise_by_writing(permit: Permit) -> None:
    """late-fence: update shop_fence set token = :token where name = :name and token <= :token.

    A, token 2                     list: row 13 ─ ask ─ · · · · · · · · · · · · · · · · · ─ fence 1 → 2, write
    B, token 1   list: row 13 ─ · · · · · · stalled · · · · · ─ fence 0 → 1, write

    A has taken the lock and read its list, but only its first write will say so. Until then 1 is the highest token
    the fence has seen, and B's write is none the less stale: A has row 13 on its list already.
    """
    token = demand_token(permit)
    Fence.objects.bulk_create([Fence(name=permit.fence, token=0)], ignore_conflicts=True)
    overtaken = not in_session(Fence.objects.filter(name=permit.fence, token__lte=token), permit).update(token=token)
    if overtaken:
        demand_session(permit)
        refuse(permit, token)


def select_and_compare(permit: Permit) -> None:
    """plain-select: select token from shop_fence where name = :name, and compare it here.

    A, token 2                    fence 1 → 2 ── list: row 13 ─ ask ─ · · · · · · · · ─ write
    B, token 1   begin ─ look: 1 · · · · · · · · · · · · · · · · · · · · ─ write ─ commit

    True when it was read, and nothing keeps it true until the commit. The raise does not wait for B, so A's list is
    read before B's write is there.
    """
    compare(permit, Fence.objects.filter(name=permit.fence))


def select_for_key_share(permit: Permit) -> None:
    """key-share: select token from shop_fence where name = :name for key share, and compare it here.

    A, token 2   begin ─ fence 1 → 2 · · · · · · · · ─ commit ── list: row 13 ─ ask ─ · · · ─ write
    B, token 1                        ─ look: still 1 · · · · · · · · · · · · · · · ─ write ─ commit

    A lock, but the weakest one: it keeps the row's key, and the fence's token is no key. So it neither waits for a
    raise that is under way nor keeps one from starting. `for update` would do both, and is what the update does.
    """
    compare(
        permit, Fence.objects.raw("select name, token from shop_fence where name = %s for key share", [permit.fence])
    )


def while_token_matches(permit: Permit) -> QuerySet[Order]:
    """sub-select: update shop_order … where id = :id and (select token from shop_fence where name = :name) = :token.

    A, token 2                            fence 1 → 2 ── list: row 13 ─ ask ─ · · · · · · ─ write
    B, token 1   update … (select: 1) ─ · · waits for row 13's lock · · · · ─ writes ─ commit

    One statement is not one moment. The sub-select is answered from the statement's snapshot, and a statement that
    waits for a row looks at that row again, not at the fence.
    """
    standing = Fence.objects.filter(name=permit.fence).values("token")
    return Order.objects.filter(Exact(Subquery(standing), Value(demand_token(permit))))


def raise_and_list_at_once(permit: Permit, rows: QuerySet[Order]) -> list[Order]:
    """one-statement: with raised as (insert into shop_fence … on conflict … do update …) select … from shop_order.

    A, token 2                                 snapshot ─ · · waits for the fence · · ─ fence 1 → 2, list: row 13
    B, token 1   begin ─ passes the fence · · · · · · · · · · ─ write ─ commit

    The raise waits for B's commit, as it should; the list does not. Both belong to one statement and see the one
    snapshot it began with, where row 13 is pending: A settles it again, with a token nobody can fault.
    """
    token = demand_token(permit)
    listing, params = rows.query.sql_with_params()
    # In: name, token, and the list's own. The fence is made or raised to the token, unless it carries as high a one.
    # Out: the list as it was when the statement began.
    at_once = f"""
        with raised as (
            insert into shop_fence (name, token) values (%s, %s)
            on conflict (name) do update set token = excluded.token where shop_fence.token < excluded.token
        )
        {listing}
    """  # noqa: S608  the list's statement is Django's, its values are parameters
    orders = list(Order.objects.raw(at_once, [permit.fence, token, *params]))
    if not Fence.objects.filter(name=permit.fence, token=token).exists():
        refuse(permit, token)
    return orders


# --- The forms by name --------------------------------------------------------------------------------------------


def unraised(permit: Permit, rows: QuerySet[Order]) -> list[Order]:
    """The list as it stands, the fence left as it was."""
    return list(rows)


def unlooked(permit: Permit) -> None:
    """No look of its own: the order's update carries it."""


def every_order(permit: Permit) -> QuerySet[Order]:
    """No condition but the order's own id, as in the unguarded and the fenced form."""
    return Order.objects.all()


@dataclass(frozen=True)
class WrongFence:
    """The three writes behind a fence that is looked at like this; otherwise those of the fenced form.

    `read` gives the list, `look` comes first in the write's transaction and raises StaleToken, `among` is what the
    order's update may match.
    """

    name: str
    read: Callable[[Permit, QuerySet[Order]], list[Order]] = raise_then_read
    look: Callable[[Permit], None] = pass_fence
    among: Callable[[Permit], QuerySet[Order]] = every_order

    def form(self) -> Form:
        return Form(self.name, self.complete, self.release, self.refund, self.read, fenced=True)

    def complete(self, order: Order, permit: Permit) -> Result:
        with transaction.atomic():
            self.write(order, Status.PAID, permit)
            record(order, Outcome.COMPLETED, self.name, permit)
        return Result.DONE

    def release(self, order: Order, permit: Permit) -> Result:
        with transaction.atomic():
            self.write(order, Status.ABANDONED, permit)
            put_back(order)
            record(order, Outcome.RELEASED, self.name, permit, copies_back=1)
        return Result.DONE

    def refund(self, order: Order, permit: Permit, amount_minor: int, why: str) -> Result:
        with transaction.atomic():
            self.write(order, Status.ABANDONED, permit)
            put_back(order)
            owe(order.key, amount_minor, order=order, why=why, at=permit.now())
            record(order, Outcome.REFUNDED, self.name, permit, copies_back=1)
        return Result.DONE

    def write(self, order: Order, target: Order.Status, permit: Permit) -> None:
        """The look, then the order's update. Zero rows: the session is gone, or the update's own look refused."""
        self.look(permit)
        if not in_session(self.among(permit).filter(pk=order.pk), permit).update(status=target, **settled(permit)):
            demand_session(permit)
            refuse(permit, demand_token(permit))


WRONG_FENCES: dict[str, Form] = {
    wrong.name: wrong.form()
    for wrong in (
        WrongFence("wrong:late-fence", read=unraised, look=raise_by_writing),
        WrongFence("wrong:plain-select", look=select_and_compare),
        WrongFence("wrong:sub-select", look=unlooked, among=while_token_matches),
        WrongFence("wrong:key-share", look=select_for_key_share),
        WrongFence("wrong:one-statement", read=raise_and_list_at_once),
    )
}


# --- The word two of them share -----------------------------------------------------------------------------------


def compare(permit: Permit, found: Iterable[Fence]) -> None:
    """Raise StaleToken unless the fence, as a select found it, carries our token; NotFenced where there is none."""
    token = demand_token(permit)
    if token not in [fence.token for fence in found]:
        refuse(permit, token)
