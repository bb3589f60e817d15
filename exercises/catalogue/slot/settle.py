"""The settle that was handed in, as one of the shop's forms: its release is these steps, on a guest's own session.

What the form does for an order whose money landed is the shop's own guarded writing. No Settlement is written for a
release, for it would be another session's: what the steps do is told by the orders and the stock alone.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import groupby
from typing import Any

from django.db import DatabaseError, connections, transaction

from exercises.catalogue.slot.answers import LENT, Step
from exercises.handed.checks import CouldNotDecide, Room, TheirsFailed
from exercises.handed.sql import taken
from exercises.lab.database import Database
from exercises.lab.guest import Guest, NoGuest
from exercises.scenarios.boxes import ALL_FORMS
from shop.models import Order
from shop.permit import Permit
from shop.settle import Form, Result, complete_guarded, refund_guarded

NAME, ALIAS = "yours", "student"
GUEST = Guest(ALIAS, tuple(LENT.grants()))
# Errors of these classes of Postgres' are the statement's own: data, constraints, syntax and rights, what a trigger
# raises, a limit of the language, a deadlock. All others (time-outs, memory, a server that goes) are the judge's.
THEIRS = ("0A", "21", "22", "23", "25001", "40P01", "42", "44", "54", "P0")


class _Stopped(Exception):
    """A step that stops met no row."""


class Settle:
    """`failed`: what steps ended in, in the order of their happening; emptied by whoever has read it. `undecided`:
    the first failure that was the judge's own.
    """

    def __init__(self, steps: Sequence[Step]) -> None:
        self.steps = [
            (number, taken(step.statement, LENT), step.transaction, step.on_zero_rows == "stop")
            for number, step in enumerate(steps, start=1)
        ]
        self.failed: list[str] = []
        self.undecided = ""

    @contextmanager
    def ready(self, room: Room) -> Iterator[Database]:
        """The laboratory, where `connections["student"]` is the guest's and the form is known by its name. Raises
        CouldNotDecide.
        """
        with room.laboratory() as database, _received(database):
            ALL_FORMS[NAME] = Form(NAME, complete_guarded, self.release, refund_guarded)
            try:
                yield database
            finally:
                del ALL_FORMS[NAME]

    def release(self, order: Order, permit: Permit) -> Result:
        """Raises TheirsFailed, CouldNotDecide; nothing of the transaction it was in is left then."""
        values = {
            "order": order.pk,
            "book": order.book_id,
            "now": permit.now(),
            "box": permit.box,
            "run": permit.run,
        }
        try:
            for _, steps in groupby(self.steps, key=lambda step: step[2]):
                with transaction.atomic(using=ALIAS):
                    for number, statement, _, stops in steps:
                        self._take(number, statement, values, stops)
        except _Stopped:
            return Result.UNTOUCHED
        return Result.DONE

    def _take(self, number: int, statement: str, values: dict[str, Any], stops: bool) -> None:
        try:
            with connections[ALIAS].cursor() as cursor:
                cursor.execute(statement, values)
                met = cursor.rowcount
        except DatabaseError as error:
            raise self._whose(number, error) from error
        if stops and not met:
            raise _Stopped

    def _whose(self, number: int, error: DatabaseError) -> Exception:
        cause: Any = error.__cause__
        said = str(getattr(getattr(cause, "diag", None), "message_primary", None) or error).partition("\n")[0]
        if (getattr(cause, "sqlstate", None) or "").startswith(THEIRS):
            self.failed.append(f"Step {number} failed. Postgres says: {said}.")
            return TheirsFailed(self.failed[-1])
        self.undecided = self.undecided or f"Step {number} could not be carried out to its end: {said}."
        return CouldNotDecide(self.undecided)


@contextmanager
def _received(database: Database) -> Iterator[None]:
    with ExitStack() as stack:
        try:
            stack.enter_context(database.receiving(GUEST))
        except NoGuest as none:
            raise CouldNotDecide(str(none)) from none
        yield
