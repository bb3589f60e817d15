"""One sweep by hand on the real database: the lock by name, its journal in memory, everything else handed in."""

import uuid
from collections.abc import Callable
from datetime import timedelta

from django.db import connection, connections

from shop.models import Book, Order
from shop.settle import FORMS, Form
from sweeper.events import Event, Kind
from sweeper.journal import Memory, Run
from sweeper.locks import build
from sweeper.locks.base import Lease, Refusal, Released
from sweeper.locks.live import LivePostgres
from sweeper.locks.ports import Ports
from sweeper.sweep import Rules, sweep
from tests.fakes import WEDNESDAY, ScriptedProvider, StandingClock, make_book, make_order


class Worker(Memory):
    """A run of its own, and its journal. `on_event` is called after each event is written down.

    The session is that of the thread which calls `sweep`.
    """

    def __init__(
        self,
        lock: str,
        settle: str | Form,
        provider: ScriptedProvider | None = None,
        on_event: Callable[[Event], None] = lambda event: None,
        **rules: bool,
    ) -> None:
        super().__init__()
        self.form = settle if isinstance(settle, Form) else FORMS[settle]
        self.provider, self.on_event, self.rules = provider or ScriptedProvider(), on_event, Rules(**rules)
        self.run = Run(uuid.uuid4(), "box-a", uuid.uuid4().hex, lock, self.form.name, "lookup")

    def sweep(self) -> int:
        return sweep(
            self.run,
            lock=build(self.run.lock, ports(run=str(self.run.run))),
            form=self.form,
            provider=self.provider,
            clock=StandingClock(),
            journal=self,
            rules=self.rules,
        )

    def write(self, event: Event) -> None:
        super().write(event)
        self.on_event(event)

    def kinds(self, order: str = "") -> list[Kind]:
        return [event.kind for event in self.events if not order or event.order == order]


def ports(alias: str = "default", run: str = "") -> Ports:
    """A box's ports over this thread's session to the database of that alias."""
    return Ports(
        clock=StandingClock(),
        box="box-a",
        run=run or str(uuid.uuid4()),
        every=120.0,
        new_value=lambda: uuid.uuid4().hex,
        postgres=LivePostgres(alias),
    )


def old_orders(number: int, copies: int = 8) -> list[Order]:
    """W-1, W-2, …, oldest first, `copies` to a book; all its copies are held, so a second return is a phantom."""
    orders = []
    for nth in range(number):
        if nth % copies == 0:
            book = make_book(copies, number=nth)
            Book.objects.filter(pk=book.pk).update(stock=copies - min(copies, number - nth))
        age = timedelta(minutes=10 + number - nth)
        orders.append(make_order(book, reference=f"W-{nth + 1}", created_at=WEDNESDAY - age))
    return orders


def session() -> int:
    """The server process behind this thread's connection; opens one where there is none."""
    connection.ensure_connection()
    return int(connection.connection.info.backend_pid)


def end_session(pid: int) -> None:
    """As an administrator would, from the journal's session; the process is gone when this returns."""
    with connections["journal"].cursor() as cursor:
        cursor.execute("select pg_terminate_backend(%s, 5000)", (pid,))
        assert cursor.fetchone() == (True,)


def acquire_advisory(alias: str = "default", name: str = "sweeper") -> Lease | Refusal:
    """By the working session, or with "journal" by another one."""
    return build("postgres-advisory", ports(alias)).acquire(name, 5)


def advisory_is_free(name: str = "sweeper") -> bool:
    """Whether another session gets it; lets go of it at once."""
    answer = acquire_advisory("journal", name)
    return isinstance(answer, Lease) and answer.release().released is Released.OURS
