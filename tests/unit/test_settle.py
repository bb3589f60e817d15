"""Three writes in four forms, on a real Postgres, by sessions that really meet."""

import uuid

import pytest
from django.db import IntegrityError, OperationalError, connection, transaction

from shop.fence import NotFenced, raise_fence
from shop.models import Fence, ForbiddenMove, Order, Refund, Settlement
from shop.permit import Permit, SessionLost, StaleToken
from shop.settle import (
    FORMS,
    Result,
    complete_guarded,
    complete_unguarded,
    move,
    refund_guarded,
    refund_unguarded,
    release_fenced,
    release_fenced_guarded,
    release_guarded,
    release_unguarded,
)
from tests.fakes import WEDNESDAY, Boxes, make_book, make_order, make_permit, wait_for_waiters

pytestmark = pytest.mark.django_db
real_commits = pytest.mark.django_db(transaction=True, databases=["default", "journal"])

every_form = pytest.mark.parametrize("form", FORMS.values(), ids=lambda form: form.name)
guarded_forms = pytest.mark.parametrize(
    "form", [FORMS["guarded"], FORMS["fenced+guarded"]], ids=lambda form: form.name
)
unguarded_forms = pytest.mark.parametrize("form", [FORMS["unguarded"], FORMS["fenced"]], ids=lambda form: form.name)
fenced_forms = pytest.mark.parametrize("form", [FORMS["fenced"], FORMS["fenced+guarded"]], ids=lambda form: form.name)


def permit_for(form, token=1, **fields) -> Permit:
    """A permit the form can use; for a fenced one the fence is raised to its token."""
    if form.fenced:
        raise_fence("shelf", token)
        fields = {"fence": "shelf", "token": token, **fields}
    return make_permit(**fields)


def held_copy(status="pending") -> Order:
    """The only copy of a book, held by an order: stock is 0."""
    return make_order(make_book(), status)


def stock_of(order: Order) -> int:
    order.book.refresh_from_db()
    return order.book.stock


def status_of(order: Order) -> str:
    order.refresh_from_db()
    return order.status


# --- One write ----------------------------------------------------------------------------------------------------


@every_form
def test_a_completed_order_is_paid_and_keeps_its_copy(form):
    """pending becomes paid; stock does not move; one Settlement names form, box and run."""
    order, permit = held_copy(), permit_for(form)
    assert form.complete(order, permit) is Result.DONE
    assert (status_of(order), stock_of(order)) == ("paid", 0)
    settlement = Settlement.objects.get(order=order)
    assert (settlement.outcome, settlement.form, settlement.copies_back) == ("completed", form.name, 0)
    assert (settlement.box, settlement.run, settlement.at) == ("box-a", permit.run, WEDNESDAY)


@every_form
def test_a_released_order_is_abandoned_and_its_copy_goes_back(form):
    """pending becomes abandoned, stock rises by one, and the row says who did it and when."""
    order, permit = held_copy(), permit_for(form)
    assert form.release(order, permit) is Result.DONE
    assert (status_of(order), stock_of(order)) == ("abandoned", 1)
    assert (order.settled_at, order.settled_by_box, order.settled_by_run) == (WEDNESDAY, "box-a", permit.run)
    settlement = Settlement.objects.get(order=order)
    assert (settlement.outcome, settlement.form, settlement.copies_back) == ("released", form.name, 1)


@every_form
def test_a_refund_releases_the_order_and_writes_the_money_due(form):
    """The copy goes back, and the amount that landed is due under a key of its own; nothing is sent yet."""
    order = held_copy()
    assert form.refund(order, permit_for(form), 999, "999 landed") is Result.DONE
    assert (status_of(order), stock_of(order)) == ("abandoned", 1)
    refund = Refund.objects.get(order=order)
    assert (refund.charge_key, refund.key) == (order.key, f"refund-{order.key}")
    assert (refund.amount_minor, refund.state, refund.due_at, refund.sent_at) == (999, "due", WEDNESDAY, None)
    assert (refund.why, order.refunded_at) == ("999 landed", None)
    settlement = Settlement.objects.get(order=order)
    assert (settlement.outcome, settlement.form, settlement.copies_back) == ("refunded", form.name, 1)


def test_a_key_of_full_length_can_be_refunded():
    """The refund's key is longer than the charge's and still fits."""
    order = make_order(make_book(), key="k" * 80)
    refund_guarded(order, make_permit(), 1, "why " * 100)
    assert len(Refund.objects.get().key) == 87


# --- The second write ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", ["paid", "dispatched", "abandoned"])
@guarded_forms
def test_guarded_leaves_a_settled_row_untouched(form, status):
    """Complete and release of an order that is not pending: nothing is written, not even a Settlement."""
    order, permit = held_copy(status), permit_for(form)
    assert form.complete(order, permit) is Result.UNTOUCHED
    assert form.release(order, permit) is Result.UNTOUCHED
    assert (status_of(order), stock_of(order), order.settled_by_box) == (status, 0, "earlier")
    assert not Settlement.objects.exists()


@unguarded_forms
def test_unguarded_releases_a_second_time_and_a_second_copy_appears(form):
    """The bug, in one session: one held copy comes back as two. The same token may do it too."""
    order, permit = held_copy(), permit_for(form)
    assert [form.release(order, permit), form.release(order, permit)] == [Result.DONE, Result.DONE]
    assert stock_of(order) == 2
    assert Settlement.objects.filter(order=order).count() == 2


def test_unguarded_completes_an_order_whose_copy_went_back():
    """The other half of the bug: the copy is in stock and owed."""
    order = held_copy()
    release_unguarded(order, make_permit())
    complete_unguarded(order, make_permit())
    assert (status_of(order), stock_of(order)) == ("paid", 1)


@unguarded_forms
def test_an_unguarded_write_the_database_refuses_leaves_nothing_behind(form):
    """A dispatched order can't be released by anybody: the error comes out and no copy came back."""
    order, permit = held_copy("dispatched"), permit_for(form)
    with pytest.raises(IntegrityError, match="can't go from dispatched to abandoned"):
        form.release(order, permit)
    assert stock_of(order) == 0
    assert not Settlement.objects.exists()


@guarded_forms
def test_guarded_refunds_an_abandoned_order_without_a_second_copy(form):
    """The money came after the release: it goes back, the copy does not come back again, nobody settled twice."""
    order, permit = held_copy("abandoned"), permit_for(form)
    assert form.refund(order, permit, 1299, "landed late") is Result.OWED
    assert stock_of(order) == 0
    assert Refund.objects.get(order=order).amount_minor == 1299
    assert not Settlement.objects.exists()
    assert form.refund(order, permit, 1299, "landed late") is Result.UNTOUCHED
    assert Refund.objects.count() == 1


@pytest.mark.parametrize("status", ["paid", "dispatched"])
@guarded_forms
def test_guarded_keeps_the_money_of_an_order_that_is_paid(form, status):
    """Somebody else completed it: nothing to give back."""
    order = held_copy(status)
    assert form.refund(order, permit_for(form), 1299, "too late") is Result.UNTOUCHED
    assert not Refund.objects.exists()


def test_an_unguarded_refund_adds_a_copy_each_time_and_owes_once():
    """The unique charge key is the arbiter for the money; nothing is for the copy."""
    order = held_copy()
    for _ in range(2):
        refund_unguarded(order, make_permit(), 1299, "landed late")
    assert (stock_of(order), Refund.objects.count()) == (2, 1)


def test_the_guarded_move_refuses_a_move_no_order_may_make():
    """A guard on the wrong status is an error in the code, and says so before the database is asked."""
    order = held_copy()
    with pytest.raises(ForbiddenMove, match="from pending it may become abandoned or paid"):
        move(order, Order.Status.PENDING, Order.Status.DISPATCHED, make_permit())
    assert status_of(order) == "pending"


# --- Two boxes, one row: both waited for its lock before either got it ----------------------------------------------


@real_commits
def test_of_two_guarded_releases_one_writes():
    """One DONE, one UNTOUCHED, one copy back."""
    order = held_copy()
    with Boxes() as boxes:
        results = boxes.run_behind(
            order,
            lambda: release_guarded(order, make_permit("box-a")),
            lambda: release_guarded(order, make_permit("box-b")),
        )
    assert sorted(results) == [Result.DONE, Result.UNTOUCHED]
    assert (stock_of(order), Settlement.objects.count()) == (1, 1)


@real_commits
def test_of_two_unguarded_releases_both_write():
    """The evening's bug: one held copy, two copies back."""
    order = held_copy()
    with Boxes() as boxes:
        results = boxes.run_behind(
            order,
            lambda: release_unguarded(order, make_permit("box-a")),
            lambda: release_unguarded(order, make_permit("box-b")),
        )
    assert results == [Result.DONE, Result.DONE]
    assert (stock_of(order), Settlement.objects.count()) == (2, 2)


@real_commits
def test_a_guarded_completion_and_a_guarded_release_never_both_write():
    """Paid without a copy back, or abandoned with one."""
    order = held_copy()
    with Boxes() as boxes:
        results = boxes.run_behind(
            order,
            lambda: complete_guarded(order, make_permit("web")),
            lambda: release_guarded(order, make_permit("box-b")),
        )
    assert sorted(results) == [Result.DONE, Result.UNTOUCHED]
    assert (status_of(order), stock_of(order)) in {("paid", 0), ("abandoned", 1)}


@real_commits
def test_of_two_guarded_refunds_of_an_abandoned_order_one_writes():
    """They take turns on the order's row, and the second finds the first's refund."""
    order = held_copy("abandoned")
    with Boxes() as boxes:
        results = boxes.run_behind(
            order,
            lambda: refund_guarded(order, make_permit("box-a"), 1299, "landed late"),
            lambda: refund_guarded(order, make_permit("box-b"), 1299, "landed late"),
        )
    assert sorted(results) == [Result.OWED, Result.UNTOUCHED]
    assert (Refund.objects.count(), stock_of(order)) == (1, 0)


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
