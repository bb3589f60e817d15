"""Three writes in four forms, on a real Postgres, by sessions that really meet."""

import pytest
from django.db import IntegrityError

from shop.models import ForbiddenMove, Order, Refund, Settlement
from shop.settle import (
    Result,
    complete_guarded,
    complete_unguarded,
    move,
    refund_guarded,
    refund_unguarded,
    release_guarded,
    release_unguarded,
)
from tests.fakes import WEDNESDAY, Boxes, make_book, make_order, make_permit
from tests.unit.settling import (
    every_form,
    guarded_forms,
    held_copy,
    permit_for,
    real_commits,
    status_of,
    stock_of,
    unguarded_forms,
)

pytestmark = pytest.mark.django_db


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
