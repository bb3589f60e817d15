"""A small shop to test in: a clock that stands, a provider that follows a script, books, orders, and boxes that
really do things at once (threads, each with its own database session)."""

import uuid
from collections import defaultdict
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import UTC, datetime
from itertools import count
from types import TracebackType
from typing import Any

from django.db import connection, connections, transaction

from marlow import clock
from marlow.clock import wait_until
from shop.isbn import check_digit
from shop.models import Book, Order, Publisher
from shop.permit import Permit
from shop.provider.answers import Answer, LandedCharge, Verdict
from shop.shelf import receive

WEDNESDAY = datetime(2026, 2, 11, 21, 50, tzinfo=UTC)

YES = Answer(Verdict.YES)
NO = Answer(Verdict.NO)
UNKNOWN = Answer(Verdict.UNKNOWN)


class StandingClock(clock.StandingClock):
    """Stands still until it is advanced, counts as running, and takes no real time."""

    def __init__(self, now: datetime = WEDNESDAY) -> None:
        super().__init__(now)

    def real(self, seconds: float) -> float:
        return 0.0

    def ticking(self) -> bool:
        return True

    def advance(self, seconds: float) -> None:
        self.sleep(seconds)


def numbered(prefix: str = "id") -> Callable[[], str]:
    """A source of fresh strings: id-1, id-2, …"""
    numbers = count(1)
    return lambda: f"{prefix}-{next(numbers)}"


class ScriptedProvider:
    """A provider in memory, true to its keys: charged or refunded once each, whatever is asked how often.

    Without a script it lands every charge. `script` gives the next answers of `charge` and `refund`, first come first
    served; an unknown answer says nothing about whether the money moved, and here it did not. `meanwhile` is called
    while the charge is under way. `asked_inside_transaction` says whether any question came from inside one.
    """

    def __init__(self, *script: Answer, meanwhile: Callable[[], object] | None = None) -> None:
        self.script = list(script)
        self.meanwhile = meanwhile
        self.charges: dict[str, int] = {}
        self.refunds: dict[str, int] = {}
        self.barred: set[str] = set()
        self.asked: dict[str, list[str]] = defaultdict(list)
        self.asked_inside_transaction = False

    def charge(self, key: str, amount_minor: int) -> Answer:
        answer = self._answer("charge", key)
        if self.meanwhile is not None:
            self.meanwhile()
        if key in self.barred:
            return NO
        if answer.verdict is Verdict.YES:
            self.charges.setdefault(key, amount_minor if answer.amount_minor is None else answer.amount_minor)
            return Answer(Verdict.YES, self.charges[key])
        return answer

    def lookup(self, key: str) -> Answer:
        self.asked["lookup"].append(key)
        return Answer(Verdict.YES, self.charges[key]) if key in self.charges else NO

    def cancel(self, key: str) -> Answer:
        self.barred.add(key)
        return self.lookup(key)

    def refund(self, charge_key: str, refund_key: str, amount_minor: int) -> Answer:
        answer = self._answer("refund", refund_key)
        if self.meanwhile is not None:
            self.meanwhile()
        if answer.verdict is Verdict.YES:
            self.refunds.setdefault(refund_key, amount_minor)
        return answer

    def charges_since(self, since: datetime) -> list[LandedCharge] | None:
        return [LandedCharge(key, amount, since, False) for key, amount in self.charges.items()]

    def _answer(self, call: str, key: str) -> Answer:
        self.asked[call].append(key)
        self.asked_inside_transaction |= connection.in_atomic_block
        return self.script.pop(0) if self.script else YES


def make_book(copies: int = 0, number: int = 0, **fields: Any) -> Book:
    """A book of which `copies` have arrived and none was sold; another `number`, another ISBN."""
    press, _ = Publisher.objects.get_or_create(name="Quayside Press")
    twelve = f"978{number:09}"
    isbn = twelve + check_digit(twelve)
    known = {"title": f"Book {number}", "author": "A. Writer", "publisher": press, "price_minor": 1299}
    book = Book.objects.create(isbn=isbn, **{**known, **fields})
    if copies:
        receive(book, copies, StandingClock())
        book.refresh_from_db()
    return book


def make_order(book: Book, status: str = "pending", key: str = "", **fields: Any) -> Order:
    """An order row as such: nothing is held for it, no stock moves."""
    key = key or uuid.uuid4().hex
    if status != "pending":
        fields = {"settled_at": WEDNESDAY, "settled_by_box": "earlier", **fields}
    if status == "dispatched":
        fields = {"dispatched_at": WEDNESDAY, **fields}
    known = {"reference": uuid.uuid4().hex[:20], "buyer": "Ada", "amount_minor": book.price_minor}
    fields = {**known, "created_at": WEDNESDAY, **fields}
    return Order.objects.create(key=key, book=book, status=status, **fields)


def make_permit(box: str = "box-a", **fields: Any) -> Permit:
    return Permit(clock=StandingClock(), box=box, run=uuid.uuid4(), **fields)


class Boxes:
    """So many boxes, each a thread with a database session of its own; closed with the block."""

    def __init__(self, number: int = 2) -> None:
        self.threads = [ThreadPoolExecutor(1, f"box-{box}") for box in range(number)]

    def __enter__(self) -> "Boxes":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for box in self.threads:
            box.submit(connections.close_all).result(30)
            box.shutdown()

    def start(self, *calls: Callable[[], Any]) -> list[Future[Any]]:
        """One call a box, all under way when this returns."""
        return [box.submit(call) for box, call in zip(self.threads, calls, strict=False)]

    def run(self, *calls: Callable[[], Any]) -> list[Any]:
        """One call a box, at once; what each returned, or the exception it raised."""
        return outcomes(self.start(*calls))

    def run_behind(self, row: Book | Order, *calls: Callable[[], Any]) -> list[Any]:
        """As run, but every call is seen to wait for the lock on this row before any of them gets it."""
        with transaction.atomic():
            type(row).objects.select_for_update(no_key=True).get(pk=row.pk)
            started = self.start(*calls)
            wait_for_waiters(len(calls))
        return outcomes(started)


def outcomes(started: Sequence[Future[Any]]) -> list[Any]:
    return [future.exception(30) or future.result() for future in started]


def wait_for_waiters(number: int) -> None:
    """Return when so many database sessions wait for a lock; fail after ten seconds."""
    assert wait_until(lambda: waiters() >= number, 10), f"{waiters()} sessions wait for a lock, not {number}"


def waiters() -> int:
    with connection.cursor() as cursor:
        # Sessions that asked for a lock and have not got it.
        cursor.execute("select count(distinct pid) from pg_locks where not granted")
        return int(cursor.fetchone()[0])
