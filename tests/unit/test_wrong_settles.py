"""The wrong settles, and the right one beside them: what they are in calm weather, and where each one breaks."""

from collections.abc import Callable

import pytest
from django.db import OperationalError, connection, connections, transaction
from pytest_django import Settings

from exercises.wrong_settles import GUARDED_RETRY, SETTLES, WRONG_SETTLES
from shop.models import Order, Refund, Settlement
from shop.permit import SessionLost
from shop.settle import FORMS, Form, Result
from sweeper.checks import sweeper_settings
from tests.fakes import make_book, make_order, make_permit
from tests.unit.settling import held_copy, real_commits, status_of, stock_of

pytestmark = real_commits

every_settle = pytest.mark.parametrize("form", SETTLES.values(), ids=lambda form: form.name)
IN_TWO, UNLOOKED, RETRIED = WRONG_SETTLES.values()


# --- In calm weather they are what they pretend to be -------------------------------------------------------------


@every_settle
def test_alone_each_write_does_what_the_shop_s_does(form: Form) -> None:
    """Complete, release, refund: status, stock, the money due, and a Settlement each."""
    paid, released, refunded = (make_order(make_book(number=number)) for number in range(3))
    permit = make_permit()
    assert form.complete(paid, permit) is Result.DONE
    assert form.release(released, permit) is Result.DONE
    assert form.refund(refunded, permit, 999, "999 landed") is Result.DONE
    assert list(Order.objects.order_by("id").values_list("status", "book__stock", "settled_by_box")) == [
        ("paid", 0, "box-a"),
        ("abandoned", 1, "box-a"),
        ("abandoned", 1, "box-a"),
    ]
    copies = {("completed", 0), ("released", 1), ("refunded", 1)}
    assert set(Settlement.objects.values_list("outcome", "copies_back")) == copies
    assert Refund.objects.get().amount_minor == 999


@pytest.mark.parametrize("form", [IN_TWO, UNLOOKED, GUARDED_RETRY], ids=lambda form: form.name)
def test_a_release_that_looks_releases_once(form: Form) -> None:
    """The second matches no row."""
    order = held_copy()
    assert form.release(order, make_permit("box-a")) is Result.DONE
    assert form.release(order, make_permit("box-b")) is Result.UNTOUCHED
    assert stock_of(order) == 1


@every_settle
def test_outside_its_session_nothing_is_written(form: Form) -> None:
    order = held_copy()
    with pytest.raises(SessionLost):
        form.release(order, make_permit(session="run-1"))
    assert (status_of(order), stock_of(order)) == ("pending", 0)


# --- two-transactions ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "write", [lambda form, *about: form.release(*about), lambda form, *about: form.refund(*about, 999, "why")]
)
def test_a_box_that_ends_between_the_two_loses_a_copy(
    monkeypatch: pytest.MonkeyPatch, write: Callable[..., Result]
) -> None:
    """The order holds it no more, the catalogue never gets it, and no sweep comes back to it."""

    def ends(order: Order) -> None:
        raise KeyboardInterrupt

    order, beside = held_copy(), make_order(make_book(number=1))
    for module in ("exercises.wrong_settles", "shop.settle"):
        monkeypatch.setattr(f"{module}.put_back", ends)
    with pytest.raises(KeyboardInterrupt):
        write(IN_TWO, order, make_permit())
    assert (status_of(order), stock_of(order)) == ("abandoned", 0)
    with pytest.raises(KeyboardInterrupt):
        write(FORMS["guarded"], beside, make_permit())
    assert status_of(beside) == "pending", "in one transaction all of it is undone"


def test_money_that_lands_after_it_released_is_due_back() -> None:
    """And no copy goes back a second time."""
    order = held_copy()
    IN_TWO.release(order, make_permit())
    assert IN_TWO.refund(order, make_permit(), 1299, "landed late") is Result.OWED
    assert stock_of(order) == 1


# --- unlooked-decline ---------------------------------------------------------------------------------------------


def test_a_writer_that_does_not_look_undoes_the_guard_of_one_that_does() -> None:
    """Paid, though its copy went back; or given back twice. The guarded form does neither."""
    order, other = held_copy(), make_order(make_book(number=1))
    for each in (order, other):
        UNLOOKED.release(each, make_permit())
    assert UNLOOKED.complete(order, make_permit()) is Result.DONE
    assert (status_of(order), stock_of(order)) == ("paid", 1)
    assert UNLOOKED.refund(other, make_permit(), 999, "999 landed") is Result.DONE
    assert stock_of(other) == 2


# --- retry-unguarded, guarded-retry -------------------------------------------------------------------------------


def lose_the_answer(monkeypatch: pytest.MonkeyPatch, *, carried_out: bool) -> list[str]:
    """Of the next COMMIT. Each COMMIT that is sent is noted."""
    wrapper, sent = type(connections["default"]), list[str]()
    commit = wrapper._commit

    def losing(self: object) -> None:
        sent.append("COMMIT")
        if len(sent) > 1 or carried_out:
            commit(self)
        if len(sent) == 1:
            raise OperationalError("the connection was lost")

    monkeypatch.setattr(wrapper, "_commit", losing)
    return sent


@pytest.mark.parametrize(
    ("form", "carried_out", "result", "copies"),
    [
        (RETRIED, True, Result.DONE, 2),
        (RETRIED, False, Result.DONE, 1),
        (GUARDED_RETRY, True, Result.UNTOUCHED, 1),
        (GUARDED_RETRY, False, Result.DONE, 1),
    ],
)
def test_a_commit_without_an_answer_is_tried_again(
    monkeypatch: pytest.MonkeyPatch, form: Form, carried_out: bool, result: Result, copies: int
) -> None:
    """Unguarded that makes a copy up where it had been carried out; guarded it never does."""
    order = held_copy()
    sent = lose_the_answer(monkeypatch, carried_out=carried_out)
    assert form.release(order, make_permit()) is result
    assert len(sent) == 2
    assert (status_of(order), stock_of(order)) == ("abandoned", copies)


@pytest.mark.parametrize("form", [RETRIED, GUARDED_RETRY], ids=lambda form: form.name)
def test_every_write_is_tried_again(monkeypatch: pytest.MonkeyPatch, form: Form) -> None:
    paid, refunded = held_copy(), make_order(make_book(number=1))
    with monkeypatch.context() as once:
        lose_the_answer(once, carried_out=False)
        assert form.complete(paid, make_permit()) is Result.DONE
    lose_the_answer(monkeypatch, carried_out=False)
    assert form.refund(refunded, make_permit(), 999, "999 landed") is Result.DONE
    assert (status_of(paid), status_of(refunded), Refund.objects.get().amount_minor) == ("paid", "abandoned", 999)


@pytest.mark.parametrize("form", [RETRIED, GUARDED_RETRY], ids=lambda form: form.name)
def test_what_fails_before_its_commit_is_not_tried_again(monkeypatch: pytest.MonkeyPatch, form: Form) -> None:
    """Nothing was written then, and everybody knows."""
    order, tries = held_copy(), list[Order]()

    def fails(order: Order) -> None:
        tries.append(order)
        raise OperationalError("the connection was lost")

    monkeypatch.setattr("shop.settle.put_back", fails)
    with pytest.raises(OperationalError):
        form.release(order, make_permit())
    assert (len(tries), status_of(order)) == (1, "pending")


@pytest.mark.parametrize("form", [RETRIED, GUARDED_RETRY], ids=lambda form: form.name)
def test_inside_a_larger_transaction_there_is_no_commit_to_try_again(
    monkeypatch: pytest.MonkeyPatch, form: Form
) -> None:
    """Neither where that one fails, nor where what stands for the COMMIT does."""
    order = held_copy()
    with monkeypatch.context() as once:
        sent = lose_the_answer(once, carried_out=False)
        with pytest.raises(OperationalError), transaction.atomic():
            form.release(order, make_permit())
    assert (len(sent), status_of(order)) == (1, "pending")
    wrapper, ends = type(connections["default"]), list[str]()

    def fails(self: object, point: str) -> None:
        ends.append(point)
        if len(ends) == 2:  # the form's own, and then the one around it
            raise OperationalError("the connection was lost")

    monkeypatch.setattr(wrapper, "savepoint_commit", fails)
    with transaction.atomic():
        with pytest.raises(OperationalError, match="was lost"):
            form.release(order, make_permit())
        transaction.set_rollback(True)
    assert (len(set(ends)), status_of(order)) == (2, "pending")


def test_where_the_lock_lived_in_the_session_only_the_wrong_one_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second try is on another session: guarded it is refused, the wrong one leaves the demand out."""
    orders = held_copy(), make_order(make_book(number=1))
    for form, order in zip((RETRIED, GUARDED_RETRY), orders, strict=True):
        with connection.cursor() as cursor:
            cursor.execute("select set_config('marlow.run', 'run-1', false)")
        with monkeypatch.context() as once:
            lose_the_answer(once, carried_out=True)
            permit = make_permit(session="run-1")
            if form is RETRIED:
                assert form.release(order, permit) is Result.DONE
            else:
                with pytest.raises(SessionLost):
                    form.release(order, permit)
    assert [stock_of(order) for order in orders] == [2, 1]


# --- Their names --------------------------------------------------------------------------------------------------


@every_settle
def test_no_setting_reaches_them(settings: Settings, form: Form) -> None:
    """Not among the shop's forms, and the system check refuses the name."""
    assert form.name not in FORMS
    settings.SWEEPER_SETTLE = form.name
    assert "sweeper.E002" in [message.id for message in sweeper_settings()]


def test_the_wrong_ones_say_so_and_the_right_one_does_not() -> None:
    longest = Settlement._meta.get_field("form").max_length or 0
    assert all(name == form.name and len(name) <= longest for name, form in SETTLES.items())
    assert all(name.startswith("wrong:") for name in WRONG_SETTLES)
    assert set(SETTLES) - set(WRONG_SETTLES) == {"guarded-retry"}
