"""postgres-advisory when its session is lost: one session locks and works, and once it is gone nothing is written."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

import pytest
from django.db import OperationalError, connection, connections

from shop.models import Book, Order, Refund, Settlement
from shop.provider.answers import Answer
from shop.shelf import totals
from sweeper.events import Event, Kind
from tests.fakes import ScriptedProvider
from tests.servers.worker import Worker, advisory_is_free, end_session, old_orders, session

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "journal"])

both_forms = pytest.mark.parametrize("settle", ["unguarded", "guarded"])
# Statements of a settle between its BEGIN and its COMMIT. The order's update is the first, the record the last.
STATEMENTS = {"completed": 2, "released": 3, "refunded": 4}
every_settle = pytest.mark.parametrize("outcome", STATEMENTS)
# Before each of them, and after the last one: before the COMMIT.
every_cut = pytest.mark.parametrize(
    ("outcome", "cut"), [(outcome, cut) for outcome, number in STATEMENTS.items() for cut in range(number + 1)]
)


@pytest.fixture(autouse=True)
def _closed_sessions() -> Iterator[None]:
    yield
    for each in connections.all():
        each.close()


def written() -> tuple[Any, ...]:
    """Everything a settle may write."""
    return (
        list(Order.objects.order_by("id").values_list("status", "settled_by_run")),
        list(Book.objects.order_by("id").values_list("stock", flat=True)),
        Settlement.objects.count(),
        Refund.objects.count(),
    )


def answering(outcome: str) -> ScriptedProvider:
    """A provider of whose answers the sweep makes this outcome, for every order there is."""
    provider = ScriptedProvider()
    for order in Order.objects.all() if outcome != "released" else ():
        provider.charges[order.key] = order.amount_minor + (outcome == "refunded")
    return provider


# --- The session ends in the middle of a settle -------------------------------------------------------------------


class Statements:
    """Counts the working session's statements from a run's first intent to settle to its next event.

    Calls `at_cut` before statement number `cut`, or after the last one where `cut` is the number there are, and then
    counts no further.
    """

    def __init__(self, number: int, cut: int, at_cut: Callable[[], None]) -> None:
        self.number, self.cut, self.at_cut = number, cut, at_cut
        self.counting, self.seen = False, 0

    def on_event(self, event: Event) -> None:
        self.counting = event.kind is Kind.SETTLING

    def watching(self) -> AbstractContextManager[None]:
        return connection.execute_wrapper(self._statement)

    def _statement(self, execute: Callable[..., Any], *statement: Any) -> Any:
        self._cut_here(self.cut < self.number)
        answer = execute(*statement)
        self.seen += self.counting
        self._cut_here(self.cut == self.number)
        return answer

    def _cut_here(self, due: bool) -> None:
        if self.counting and due and self.seen == self.cut:
            self.counting = False
            self.at_cut()


@every_settle
@both_forms
def test_a_settle_has_so_many_statements_and_they_can_be_told(settle: str, outcome: str) -> None:
    """The places where the test below cuts are all there are."""
    old_orders(1)
    statements = Statements(STATEMENTS[outcome], -1, lambda: None)
    run = Worker("postgres-advisory", settle, answering(outcome), statements.on_event)
    with statements.watching():
        assert run.sweep() == 1
    assert statements.seen == STATEMENTS[outcome]
    assert Settlement.objects.get().outcome == outcome


@every_cut
@both_forms
def test_a_session_that_ends_between_any_two_statements_commits_nothing_more(
    settle: str, outcome: str, cut: int
) -> None:
    """Not that settle and nothing later: the run ends, the second row is never asked about, the lock is free."""
    old_orders(2)
    before, working = written(), session()
    statements = Statements(STATEMENTS[outcome], cut, lambda: end_session(working))
    run = Worker("postgres-advisory", settle, answering(outcome), statements.on_event)
    with statements.watching(), pytest.raises(OperationalError):
        run.sweep()
    assert written() == before
    assert statements.seen == cut, "the session ended where it was meant to"
    assert run.kinds("W-1") == [Kind.ASKED, Kind.ANSWERED, Kind.SETTLING]
    assert run.kinds("W-2") == []
    assert run.kinds()[-2:] == [Kind.RELEASED, Kind.DIED]
    assert advisory_is_free()
    assert Worker("postgres-advisory", settle, answering(outcome)).sweep() == 2, "the next run does what was left"
    assert (Settlement.objects.count(), totals()) == (2, (0, 0))


# --- Django opens another session ---------------------------------------------------------------------------------


class Reconnecting(ScriptedProvider):
    """While it is asked about the first row the working session ends, and Django is left to open another."""

    def __init__(self, charges: dict[str, int]) -> None:
        super().__init__()
        self.charges, self.ended = charges, 0

    def lookup(self, key: str) -> Answer:
        if not self.ended:
            self.ended = session()
            end_session(self.ended)
            connection.close()  # as Django does once an error has shown that a connection is of no use
        return super().lookup(key)


@every_settle
@both_forms
@pytest.mark.parametrize("look_first", [True, False])
def test_django_s_next_session_settles_nothing(settle: str, outcome: str, look_first: bool) -> None:
    """It holds no lock, and the settle's first update finds that out itself, if nothing did before."""
    old_orders(2)
    before, provider = written(), Reconnecting(answering(outcome).charges)
    run = Worker("postgres-advisory", settle, provider, stop_on_lost_lease=look_first)
    assert run.sweep() == 0
    assert session() != provider.ended, "the work went on in another session"
    assert written() == before
    assert run.kinds("W-1") == [Kind.ASKED, Kind.ANSWERED] + ([] if look_first else [Kind.SETTLING])
    assert run.kinds("W-2") == []
    assert run.kinds()[-3:] == [Kind.LOST, Kind.RELEASED, Kind.STOPPED]


@both_forms
def test_the_next_session_settles_nothing_even_while_another_box_works(settle: str) -> None:
    """The lock went with the session, and the other box has it by now: it settles both rows, and each once."""
    old_orders(2)

    class OtherBoxMeanwhile(Reconnecting):
        def lookup(self, key: str) -> Answer:
            answer = super().lookup(key)
            if not self.asked["other box"]:
                self.asked["other box"].append(key)
                other = Worker("postgres-advisory", settle)
                assert other.sweep() == 2
                connection.close()
            return answer

    run = Worker("postgres-advisory", settle, OtherBoxMeanwhile({}), stop_on_lost_lease=False)
    assert run.sweep() == 0
    assert run.kinds()[-3:] == [Kind.LOST, Kind.RELEASED, Kind.STOPPED]
    assert (Settlement.objects.count(), totals()) == (2, (0, 0))
