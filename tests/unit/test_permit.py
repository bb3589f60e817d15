"""What a settle is refused for, on a real Postgres: a token that was overtaken, a session that did not lock."""

import uuid

import pytest
from django.db import OperationalError, connection, transaction

from shop.fence import NotFenced, raise_fence
from shop.models import Fence, Order, Refund, Settlement
from shop.permit import SessionLost, StaleToken
from shop.settle import (
    FORMS,
    Result,
    release_fenced,
    release_fenced_guarded,
)
from tests.fakes import Boxes, make_book, make_order, make_permit, wait_for_waiters
from tests.unit.settling import (
    every_form,
    fenced_forms,
    guarded_forms,
    held_copy,
    permit_for,
    real_commits,
    status_of,
    stock_of,
)

pytestmark = pytest.mark.django_db


# --- The fence ----------------------------------------------------------------------------------------------------


@fenced_forms
def test_a_token_is_refused_once_a_higher_one_raised_the_fence(form):
    """Run 1 stalls before its write; run 2 has raised the fence and written nothing yet. Run 1 is refused."""
    order = held_copy()
    stale = permit_for(form, token=1)
    raise_fence("shelf", 2)
    for write in (form.release, form.complete, lambda *about: form.refund(*about, 1299, "")):
        with pytest.raises(StaleToken, match="stands at 2; a write with token 1") as refused:
            write(order, stale)
        assert (refused.value.name, refused.value.token, refused.value.highest) == ("shelf", 1, 2)
    assert (status_of(order), stock_of(order), Settlement.objects.count()) == ("pending", 0, 0)


def test_a_fence_is_raised_by_each_token_once():
    """The first raise makes the row; the same token and a smaller one are refused, a higher one is not."""
    raise_fence("shelf", 5)
    for token in (5, 4):
        with pytest.raises(StaleToken, match="stands at 5"):
            raise_fence("shelf", token)
    raise_fence("shelf", 6)
    raise_fence("another", 1)
    assert dict(Fence.objects.values_list("name", "token")) == {"shelf": 6, "another": 1}


@real_commits
def test_of_two_who_raise_a_new_fence_with_one_token_one_is_refused():
    """The row is made once and the token taken once, however close together."""
    with Boxes() as boxes:
        results = boxes.run(lambda: raise_fence("shelf", 1), lambda: raise_fence("shelf", 1))
    assert sorted(type(result) for result in results if result is not None) == [StaleToken]
    assert Fence.objects.get().token == 1


@real_commits
def test_nobody_passes_the_fence_while_a_write_behind_it_is_under_way():
    """A fenced write locks the fence to its commit, so the next run's list is read after it."""
    order = held_copy()
    permit = permit_for(FORMS["fenced"], token=1)

    def raise_and_list() -> list[str]:
        raise_fence("shelf", 2)
        return list(Order.objects.values_list("status", flat=True))

    with Boxes() as boxes, Boxes(1) as late:
        with transaction.atomic():
            Order.objects.select_for_update().get(pk=order.pk)
            first = boxes.start(lambda: release_fenced(order, permit))
            wait_for_waiters(1)  # past the fence, waiting for the order's row
            second = late.start(raise_and_list)
            wait_for_waiters(2)  # the second waits for the fence
        assert first[0].result(10) is Result.DONE
        assert second[0].result(10) == ["abandoned"]


@fenced_forms
def test_a_fenced_write_without_a_token_says_what_is_missing(form):
    """No token, no fence, or a fence nobody raised: a clear error, nothing written."""
    order = held_copy()
    for permit in (make_permit(), make_permit(fence="shelf"), make_permit(token=1)):
        with pytest.raises(NotFenced, match="take a lock that mints tokens"):
            form.release(order, permit)
    with pytest.raises(NotFenced, match="call raise_fence"):
        form.release(order, make_permit(fence="shelf", token=1))
    assert (status_of(order), stock_of(order)) == ("pending", 0)


# --- The session that took the lock -------------------------------------------------------------------------------


def take_session(name: str) -> int:
    """Mark this session as the lock does when it takes it; returns its backend's pid."""
    with connection.cursor() as cursor:
        cursor.execute("select set_config('marlow.run', %s, false), pg_backend_pid()", [name])
        return cursor.fetchone()[1]


def end_session(pid: int) -> None:
    """As an administrator would: from another session, and waiting until it is gone (milliseconds)."""

    def end() -> bool:
        with connection.cursor() as cursor:
            cursor.execute("select pg_terminate_backend(%s, 5000)", [pid])
            return cursor.fetchone()[0]

    with Boxes(1) as boxes:
        assert boxes.run(end) == [True]


@every_form
def test_the_session_that_took_the_lock_may_write(form):
    """With its mark in place, each form does what it does."""
    session = str(uuid.uuid4())
    take_session(session)
    order = held_copy()
    assert form.release(order, permit_for(form, session=session)) is Result.DONE
    assert stock_of(order) == 1


@every_form
def test_another_session_writes_nothing(form):
    """Never marked, or marked by another run: SessionLost for every write of every form."""
    order = held_copy()
    permit = permit_for(form, session="run-1")
    for mark in (None, "run-2"):
        if mark:
            take_session(mark)
        for write in (form.release, form.complete, lambda *about: form.refund(*about, 1299, "")):
            with pytest.raises(SessionLost, match="run-1 is gone"):
                write(order, permit)
    assert (status_of(order), stock_of(order)) == ("pending", 0)
    assert not Settlement.objects.exists()
    assert not Refund.objects.exists()


@real_commits
@every_form
def test_after_the_session_died_its_successor_may_not_write(form):
    """Django opens a new session after the error; that one holds no lock, and every row is refused to it."""
    thirteen, fourteen = held_copy(), make_order(make_book(number=1))
    permit = permit_for(form, session="run-1")
    end_session(take_session("run-1"))
    with pytest.raises(OperationalError):
        form.release(thirteen, permit)
    with pytest.raises(SessionLost):
        form.release(fourteen, permit)
    assert (stock_of(thirteen), stock_of(fourteen)) == (0, 0)


@guarded_forms
def test_in_its_own_session_a_settled_row_is_untouched_and_no_session_is_lost(form):
    """Zero rows has two reasons, and they are told apart."""
    take_session("run-1")
    order = held_copy("paid")
    assert form.release(order, permit_for(form, session="run-1")) is Result.UNTOUCHED


def test_a_stale_token_is_told_from_a_lost_session():
    """In our session and overtaken: StaleToken, not SessionLost."""
    take_session("run-1")
    permit = permit_for(FORMS["fenced+guarded"], session="run-1")
    raise_fence("shelf", 2)
    with pytest.raises(StaleToken):
        release_fenced_guarded(held_copy(), permit)
