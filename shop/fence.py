"""What a write must find true besides the row's own state: the fence's token, and the session that took the lock."""

from typing import NoReturn, TypeVar

from django.db import connection, transaction
from django.db.models import Func, Model, QuerySet, TextField, Value
from django.db.models.lookups import Exact

from shop.models import Fence
from shop.permit import Permit, SessionLost, StaleToken

Rows = TypeVar("Rows", bound=Model)


class NotFenced(Exception):
    """A fenced write without a token to show or a fence to show it to."""


# --- The fence ----------------------------------------------------------------------------------------------------
# run 1, token 1   raise ──── list ─ · · stalled · · · · · · · · · · · · · · · pass_fence: the row says 2, refused
# run 2, token 2               raise ── list ── pass_fence ── write ── commit
# The fence rises before the list is read, not with the first write: a run that stalls between the two is refused even
# if its successor has not written yet.


def raise_fence(name: str, token: int) -> None:
    """Bar every smaller token from now on; committed when this returns. Call it before reading the list.

    A token raises a fence once. Raises StaleToken when the fence already carries this token or a higher one.
    """
    with transaction.atomic(durable=True):
        # insert … on conflict do nothing: the first holder ever makes the row, at 0.
        Fence.objects.bulk_create([Fence(name=name, token=0)], ignore_conflicts=True)
        # update shop_fence set token = :token where name = :name and token < :token; no row: somebody overtook us.
        if not Fence.objects.filter(name=name, token__lt=token).update(token=token):
            raise StaleToken(name, token, Fence.objects.get(name=name).token)


def raise_then_read(permit: Permit, rows: QuerySet[Rows]) -> list[Rows]:
    """The list as it stands once every smaller token is barred. Raises NotFenced, StaleToken."""
    raise_fence(permit.fence, demand_token(permit))
    return list(rows)


def demand_token(permit: Permit) -> int:
    """Raises NotFenced where the permit has no token or no fence to show it to."""
    if permit.token is None or not permit.fence:
        raise NotFenced(
            "A fenced write needs a token and a fence, and the permit has none: "
            "take a lock that mints tokens, or settle guarded."
        )
    return permit.token


def pass_fence(permit: Permit) -> None:
    """update shop_fence set token = :token where name = :name and token = :token, first in its transaction.

    An update that changes nothing is meant: it locks the row to the commit, so that nobody can raise the fence
    between this look and our write. A select, locked for key share or not, would let them.
    """
    token, fence = demand_token(permit), Fence.objects.filter(name=permit.fence)
    if in_session(fence.filter(token=token), permit).update(token=token):
        return
    demand_session(permit)
    refuse(permit, token)


def refuse(permit: Permit, token: int) -> NoReturn:
    """Raise StaleToken with what the fence says, or NotFenced where there is none."""
    highest = Fence.objects.filter(name=permit.fence).values_list("token", flat=True).first()
    if highest is None:
        raise NotFenced(f"Fence {permit.fence} was never raised: call raise_fence before reading the list.")
    raise StaleToken(permit.fence, token, highest)


# --- The session that took the lock -------------------------------------------------------------------------------


def in_session(rows: QuerySet[Rows], permit: Permit) -> QuerySet[Rows]:
    """… and current_setting('marlow.run', true) = :session, where the permit names one.

    In the update itself, because a look beforehand may be answered by the session that dies before the write. The
    setting is null in a session that never took the lock, and null matches no row.
    """
    if permit.session is None:
        return rows
    return rows.filter(
        Exact(
            Func(Value("marlow.run"), Value(True), function="current_setting", output_field=TextField()),
            Value(permit.session),
        )
    )


def demand_session(permit: Permit) -> None:
    """Asked when an update matched nothing: was it the row, or is this another session? Raises SessionLost."""
    if permit.session is None:
        return
    with connection.cursor() as cursor:
        # The value this session was given when the lock was taken; null or empty where it never was.
        cursor.execute("select current_setting('marlow.run', true)")
        (ours,) = cursor.fetchone()
    if ours != permit.session:
        raise SessionLost(
            f"The database session that took the lock as {permit.session} is gone, and the lock with it: "
            "nothing was written. End this run; the next one starts afresh."
        )
