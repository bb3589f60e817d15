"""One sweep, with the shop's own writes on a real Postgres and everything else handed in."""

import uuid
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from datetime import timedelta

import pytest

from shop.models import Book, Order, Refund, Settlement
from shop.provider.answers import Answer, Verdict
from shop.settle import FORMS
from sweeper.events import Kind
from sweeper.journal import Memory, Run
from sweeper.locks.base import Lease, Lock, Refusal, Release, Released
from sweeper.locks.ports import LockUnavailable
from sweeper.sweep import Rules, sweep
from tests.fakes import UNKNOWN, WEDNESDAY, ScriptedProvider, StandingClock, make_book, make_order

pytestmark = pytest.mark.django_db(transaction=True)


class OneLease(Lock):
    """A lock that always says yes, and notes what became of its lease."""

    name, excludes, mints_token, expires = "test", False, True, True

    def __init__(self, token: int | None = None, claims: Callable[[Order], bool] = lambda order: True) -> None:
        self.token, self.claims = token, claims
        self.held, self.released = True, 0

    def acquire(self, name: str, ttl: float) -> Lease | Refusal:
        outer = self

        class Noted(Lease):
            def still_held(self) -> bool:
                return outer.held

            def claim(self, order: Order) -> AbstractContextManager[bool]:
                return nullcontext(outer.claims(order))

            def release(self) -> Release:
                outer.released += 1
                return Release(Released.OURS)

        return Noted("box-b", token=self.token)


class Shut(Lock):
    """A lock that is somebody else's."""

    name, excludes, mints_token, expires = "shut", True, False, False

    def __init__(self) -> None:
        pass

    def acquire(self, name: str, ttl: float) -> Lease | Refusal:
        return Refusal("box-a")


class Down(Shut):
    """A lock whose server is gone."""

    def acquire(self, name: str, ttl: float) -> Lease | Refusal:
        raise LockUnavailable("The lock's Redis did not answer")


class Box:
    """A box to sweep with: what it was given and what its journal says."""

    def __init__(
        self, provider: ScriptedProvider | None = None, settle: str = "guarded", question: str = "lookup"
    ) -> None:
        self.provider = provider or ScriptedProvider()
        self.settle, self.question = settle, question
        self.clock, self.journal, self.lock = StandingClock(), Memory(), OneLease()

    def sweep(self, lock: Lock | None = None, **rules: object) -> int:
        run = Run(uuid.uuid4(), "box-b", uuid.uuid4().hex, "test", self.settle, self.question)
        self.journal.begin(run, self.clock.now())
        return sweep(
            run,
            lock=lock or self.lock,
            form=FORMS[self.settle],
            provider=self.provider,
            clock=self.clock,
            journal=self.journal,
            rules=Rules(**rules),  # type: ignore[arg-type]
        )

    def kinds(self, order: str = "") -> list[Kind]:
        return [event.kind for event in self.journal.events if not order or event.order == order]


def old_order(book: Book, reference: str, minutes: float = 10, **fields: object) -> Order:
    return make_order(book, reference=reference, created_at=WEDNESDAY - timedelta(minutes=minutes), **fields)


def status(reference: str) -> str:
    return Order.objects.get(reference=reference).status


def test_money_that_never_moved_releases_the_copy() -> None:
    """pending becomes abandoned, and stock rises by the copy that was held."""
    book = make_book(3)
    old_order(book, "W-1")
    assert Box().sweep() == 1
    book.refresh_from_db()
    assert (status("W-1"), book.stock) == ("abandoned", 4)


def test_money_that_landed_completes_the_order() -> None:
    """pending becomes paid, and no copy goes back."""
    book = make_book(3)
    order = old_order(book, "W-1")
    box = Box()
    box.provider.charges[order.key] = order.amount_minor
    box.sweep()
    book.refresh_from_db()
    assert (status("W-1"), book.stock) == ("paid", 3)


def test_another_amount_is_refunded_and_released() -> None:
    """An order that can't be completed gives its copy and the money back, the money as a refund that is due."""
    book = make_book(3)
    order = old_order(book, "W-1")
    box = Box()
    box.provider.charges[order.key] = order.amount_minor + 1
    box.sweep()
    book.refresh_from_db()
    assert (status("W-1"), book.stock) == ("abandoned", 4)
    assert Refund.objects.get().amount_minor == order.amount_minor + 1


def test_no_answer_leaves_the_row_for_the_next_run() -> None:
    """A timeout is never a no."""
    old_order(make_book(), "W-1")
    box = Box()
    box.provider.lookup = lambda key: UNKNOWN  # type: ignore[method-assign]
    assert box.sweep() == 0
    assert status("W-1") == "pending"
    assert Kind.SKIPPED in box.kinds("W-1")


def test_only_rows_older_than_two_minutes_are_swept_oldest_first() -> None:
    """A checkout that is still under way is left alone."""
    book = make_book()
    for reference, minutes in (("young", 1), ("old", 3), ("oldest", 9), ("just", 2)):
        old_order(book, reference, minutes)
    box = Box()
    box.sweep()
    asked = [event.order for event in box.journal.events if event.kind is Kind.ASKED]
    assert asked == ["oldest", "old"]


def test_a_cancel_question_bars_the_key() -> None:
    """A no is final then: the charge can't land any more."""
    order = old_order(make_book(), "W-1")
    box = Box(question="cancel")
    box.sweep()
    assert box.provider.barred == {order.key}
    assert box.provider.charge(order.key, order.amount_minor).verdict is Verdict.NO


def test_a_lookup_question_bars_nothing() -> None:
    """A charge that lands after the release leaves money without an order: the shop that shipped."""
    order = old_order(make_book(), "W-1")
    box = Box(question="lookup")
    box.sweep()
    assert box.provider.charge(order.key, order.amount_minor).verdict is Verdict.YES
    assert status("W-1") == "abandoned"


def test_a_refusal_is_journalled_and_asks_nothing() -> None:
    """The other box has it: nothing happens here."""
    old_order(make_book(), "W-1")
    box = Box()
    assert box.sweep(Shut()) == 0
    [refused] = box.journal.events
    assert (refused.kind, refused.data) == (Kind.REFUSED, {"holder": "box-a"})
    assert box.provider.asked == {}


def test_a_lock_server_that_is_gone_is_an_error_and_never_a_grant() -> None:
    """The run dies saying why, and nothing was asked."""
    old_order(make_book(), "W-1")
    box = Box()
    with pytest.raises(LockUnavailable):
        box.sweep(Down())
    [died] = box.journal.events
    assert died.kind is Kind.DIED
    assert "did not answer" in died.data["error"]
    assert box.provider.asked == {}


def test_a_row_settled_by_somebody_else_meanwhile_is_left_untouched() -> None:
    """The guarded write matches no row, and the journal says so."""
    book = make_book(3)
    order = old_order(book, "W-1")
    box = Box()

    def answered_late(key: str) -> Answer:
        FORMS["guarded"].release(order, _permit())
        return Answer(Verdict.NO)

    box.provider.lookup = answered_late  # type: ignore[method-assign]
    assert box.sweep() == 0
    book.refresh_from_db()
    assert book.stock == 4
    assert box.kinds("W-1")[-1] is Kind.UNTOUCHED


def test_an_unguarded_second_settle_makes_a_copy_no_shelf_holds() -> None:
    """The bug, seen: two settlements of one row, two copies back."""
    book = make_book(3)
    order = old_order(book, "W-1")
    box = Box(settle="unguarded")

    def answered_late(key: str) -> Answer:
        FORMS["unguarded"].release(order, _permit())
        return Answer(Verdict.NO)

    box.provider.lookup = answered_late  # type: ignore[method-assign]
    box.sweep()
    book.refresh_from_db()
    assert (book.stock, Settlement.objects.filter(order=order).count()) == (5, 2)


def test_money_for_an_order_that_was_abandoned_meanwhile_is_owed_back_without_a_second_copy() -> None:
    """Refunded only: the copy went back once already."""
    book = make_book(3)
    order = old_order(book, "W-1")
    box = Box()

    def landed_late(key: str) -> Answer:
        FORMS["guarded"].release(order, _permit())
        return Answer(Verdict.YES, order.amount_minor)

    box.provider.lookup = landed_late  # type: ignore[method-assign]
    box.sweep()
    book.refresh_from_db()
    assert (book.stock, Refund.objects.get().state) == (4, "due")


def test_a_lease_known_to_be_lost_stops_the_run_before_its_next_question() -> None:
    """With stop-on-lost-lease the rest is left to the next run, and the lock is released all the same."""
    book = make_book()
    old_order(book, "W-1", 9)
    old_order(book, "W-2", 8)
    box = Box()
    plain = box.provider.lookup

    def then_lost(key: str) -> Answer:
        answer = plain(key)
        box.lock.held = False
        return answer

    box.provider.lookup = then_lost  # type: ignore[method-assign]
    assert box.sweep() == 0
    assert [status("W-1"), status("W-2")] == ["pending", "pending"]
    assert box.kinds()[-3:] == [Kind.LOST, Kind.RELEASED, Kind.STOPPED]
    assert box.lock.released == 1


def test_without_stop_on_lost_lease_the_run_goes_on_as_the_shop_that_shipped() -> None:
    """It does not look, so it does not know."""
    old_order(make_book(), "W-1")
    box = Box()
    box.lock.held = False
    assert box.sweep(stop_on_lost_lease=False) == 1


def test_a_row_another_worker_holds_is_skipped() -> None:
    """Nothing is asked about a row that could not be claimed."""
    book = make_book()
    old_order(book, "W-1", 9)
    old_order(book, "W-2", 8)
    box = Box()
    box.lock.claims = lambda order: order.reference != "W-1"
    assert box.sweep() == 1
    assert (status("W-1"), status("W-2")) == ("pending", "abandoned")


def test_a_fenced_run_that_was_overtaken_is_refused_with_both_numbers() -> None:
    """Token 2 raised the fence before token 1 wrote."""
    book = make_book(3)
    old_order(book, "W-1")
    box = Box(settle="fenced")
    box.lock.token = 1
    plain = box.provider.lookup

    def overtaken(key: str) -> Answer:
        from shop.fence import raise_fence

        raise_fence("sweeper", 2)
        return plain(key)

    box.provider.lookup = overtaken  # type: ignore[method-assign]
    assert box.sweep() == 0
    [stale] = [event for event in box.journal.events if event.kind is Kind.STALE]
    assert (stale.token, stale.data["highest"]) == (1, 2)
    book.refresh_from_db()
    assert (status("W-1"), book.stock) == ("pending", 3)


def test_an_error_in_the_middle_is_journalled_raised_and_the_lock_let_go() -> None:
    """The row that was settled stays settled, the others wait for the next run."""
    book = make_book()
    old_order(book, "W-1", 9)
    old_order(book, "W-2", 8)
    box = Box()
    plain = box.provider.lookup

    def breaks(key: str) -> Answer:
        if box.provider.asked["lookup"]:
            raise RuntimeError("the roof fell in")
        return plain(key)

    box.provider.lookup = breaks  # type: ignore[method-assign]
    with pytest.raises(RuntimeError, match="roof"):
        box.sweep()
    assert (status("W-1"), status("W-2")) == ("abandoned", "pending")
    assert box.kinds()[-2:] == [Kind.RELEASED, Kind.DIED]
    assert box.lock.released == 1


def test_intent_is_journalled_before_the_write_and_outcome_after() -> None:
    """A run that dies in between leaves the intent as its last word on the row."""
    old_order(make_book(), "W-1")
    box = Box()
    box.sweep()
    assert box.kinds("W-1") == [Kind.ASKED, Kind.ANSWERED, Kind.SETTLING, Kind.SETTLED]


def _permit():  # type: ignore[no-untyped-def]
    from tests.fakes import make_permit

    return make_permit("box-a")
