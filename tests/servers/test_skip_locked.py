"""skip-locked on a real Postgres: eight workers and one table, and what becomes of a row whose worker is gone.

The settle is the unguarded one throughout: what keeps a row from being settled twice is the claim and nothing else.
"""

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest
from django.db import OperationalError, connection, connections, transaction

from shop.models import Order, Settlement
from shop.permit import Permit
from shop.provider.answers import Answer
from shop.settle import FORMS, Result, release_unguarded
from shop.shelf import totals
from sweeper.events import Kind
from sweeper.locks.skip_locked import RowsLease
from tests.fakes import UNKNOWN, Boxes, ScriptedProvider, make_permit, outcomes
from tests.servers.worker import Worker, end_session, old_orders, session

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "journal"])

WORKERS, ROWS = 8, 40
ELSEWHERE = {"why": "another worker has it, or has settled it"}


@pytest.fixture(autouse=True)
def _closed_sessions() -> Iterator[None]:
    yield
    connections["journal"].close()
    connection.close()


class Asking(ScriptedProvider):
    """Says what `on_question` says about a key, or the truth where that says nothing."""

    def __init__(self, on_question: Callable[[str], Answer | None]) -> None:
        super().__init__()
        self.on_question = on_question

    def lookup(self, key: str) -> Answer:
        truth = super().lookup(key)
        return self.on_question(key) or truth


def worker(provider: ScriptedProvider | None = None) -> Worker:
    return Worker("skip-locked", "unguarded", provider)


def claimable(order: Order) -> bool:
    """Whether this thread's session would get the row; lets go of it at once."""
    with RowsLease("box-b").claim(order) as claimed:
        return claimed


def claimable_elsewhere(order: Order) -> bool:
    with Boxes(1) as other:
        [claimed] = other.run(lambda: claimable(order))
    assert isinstance(claimed, bool), claimed
    return claimed


def statuses() -> dict[str, str]:
    return dict(Order.objects.values_list("reference", "status"))


def settlements() -> Counter[str]:
    return Counter(Settlement.objects.values_list("order__reference", flat=True))


# --- Eight workers, one table -------------------------------------------------------------------------------------


def meeting() -> Asking:
    """A provider that holds each worker's first question until all of them have asked one: all at work at once."""
    barrier, thread = threading.Barrier(WORKERS), threading.local()

    def first_together(key: str) -> None:
        if not hasattr(thread, "met"):
            thread.met = True
            barrier.wait(30)

    return Asking(first_together)


def eight(lock: str, provider: ScriptedProvider) -> list[int]:
    """How many orders each of eight workers settled, each in a session of its own, all at the same time."""
    with Boxes(WORKERS) as workers:
        settled = workers.run(*[Worker(lock, "unguarded", provider).sweep for _ in range(WORKERS)])
    assert all(isinstance(number, int) for number in settled), settled
    return settled


def test_eight_workers_share_a_table_and_settle_each_row_once() -> None:
    """Forty rows, forty questions, forty settlements, no phantom; and every worker had its share."""
    orders, provider = old_orders(ROWS), meeting()
    settled = eight("skip-locked", provider)
    assert settlements() == dict.fromkeys((order.reference for order in orders), 1)
    assert set(statuses().values()) == {"abandoned"}
    assert totals() == (0, 0)
    assert sorted(provider.asked["lookup"]) == sorted(order.key for order in orders)
    assert sum(settled) == ROWS
    assert min(settled) >= 1, "each had a row of its own when all were asking at once"


def test_without_it_the_same_eight_all_settle_the_first_row() -> None:
    """The same workers and no lock: eight copies come back for one, so the test above could have failed."""
    old_orders(ROWS)
    eight("none", meeting())
    assert settlements()["W-1"] == WORKERS
    assert totals().phantom >= WORKERS - 1


# --- One row's claim ----------------------------------------------------------------------------------------------


def test_a_row_that_is_locked_elsewhere_is_stepped_past_and_not_waited_for() -> None:
    """The run ends while the row is still locked; the next run settles it."""
    first, _ = old_orders(2)
    ours = worker()
    with Boxes(1) as box, transaction.atomic():
        Order.objects.select_for_update().get(pk=first.pk)
        assert box.run(ours.sweep) == [1]
        assert ours.kinds("W-1") == [Kind.SKIPPED]
        assert statuses() == {"W-1": "pending", "W-2": "abandoned"}
    assert worker().sweep() == 1
    assert totals() == (0, 0)


def test_a_row_is_locked_for_as_long_as_it_is_worked_on() -> None:
    """During the question nobody else gets it, and the price is there to see: a transaction that stands open."""
    first, second = old_orders(2)
    seen = {}

    def look(key: str) -> None:
        if key == first.key:
            seen["rows"] = claimable_elsewhere(first), claimable_elsewhere(second)
            with connections["journal"].cursor() as cursor:
                cursor.execute("select state from pg_stat_activity where pid = %s", (session(),))
                seen["state"] = cursor.fetchone()

    assert worker(Asking(look)).sweep() == 2
    assert seen == {"rows": (False, True), "state": ("idle in transaction",)}


def test_a_row_settled_between_list_and_claim_is_not_settled_again() -> None:
    """The claim looks at the row that it locks, not at the list: nothing is asked about it."""
    first, second = old_orders(2)

    def meanwhile(key: str) -> None:
        if key == first.key:
            with Boxes(1) as other:
                assert other.run(lambda: release_unguarded(second, make_permit("box-b"))) == [Result.DONE]

    ours = worker(Asking(meanwhile))
    assert ours.sweep() == 1
    [skipped] = [event for event in ours.events if event.order == "W-2"]
    assert (skipped.kind, skipped.data) == (Kind.SKIPPED, ELSEWHERE)
    assert settlements() == {"W-1": 1, "W-2": 1}
    assert totals() == (0, 0)


def test_a_row_without_an_answer_is_stepped_past_and_left_pending() -> None:
    """Asked once a run, left unlocked and pending; the run goes on with the rows behind it."""
    first, *_ = old_orders(3)
    provider = Asking(lambda key: UNKNOWN if key == first.key else None)
    for run, settled in enumerate((2, 0), start=1):
        ours = worker(provider)
        assert ours.sweep() == settled
        assert ours.kinds("W-1") == [Kind.ASKED, Kind.ANSWERED, Kind.SKIPPED]
        assert provider.asked["lookup"].count(first.key) == run
    assert statuses() == {"W-1": "pending", "W-2": "abandoned", "W-3": "abandoned"}
    assert claimable(first)


# --- A session that ends ------------------------------------------------------------------------------------------


def test_settled_is_journalled_behind_the_claim_s_commit() -> None:
    """When the journal says it, another session reads it."""
    old_orders(2)
    read = []

    def look(event: object) -> None:
        if ours.events[-1].kind is Kind.SETTLED:
            with connections["journal"].cursor() as cursor:
                cursor.execute("select status from shop_order where reference = %s", (ours.events[-1].order,))
                read.append(cursor.fetchone())

    ours = worker()
    ours.on_event = look
    ours.sweep()
    assert read == [("abandoned",)] * 2


def test_a_session_that_ends_between_settle_and_commit_leaves_nothing_written_and_nothing_claimed_done() -> None:
    """The settle has returned, the claim's COMMIT has not: no `settled` in the journal, and the run is over."""
    old_orders(2)

    def release_then_end(order: Order, permit: Permit) -> Result:
        result = release_unguarded(order, permit)
        end_session(session())
        return result

    ours = Worker("skip-locked", replace(FORMS["unguarded"], release=release_then_end))
    with pytest.raises(OperationalError):
        ours.sweep()
    assert ours.kinds("W-1") == [Kind.ASKED, Kind.ANSWERED, Kind.SETTLING]
    assert (ours.kinds("W-2"), ours.kinds()[-1], ours.events[-1].data["settled"]) == ([], Kind.DIED, 0)
    assert statuses() == {"W-1": "pending", "W-2": "pending"}
    assert (settlements(), totals()) == ({}, (0, 0))
    assert worker().sweep() == 2
    assert (settlements(), totals()) == ({"W-1": 1, "W-2": 1}, (0, 0))


def test_a_worker_whose_session_is_ended_gives_its_row_back_at_once() -> None:
    """Another worker settles it while the first still waits for its answer, and the first then writes nothing."""
    first, _ = old_orders(2)
    asking, answered, processes = threading.Event(), threading.Event(), []

    def wait(key: str) -> None:
        processes.append(session())
        asking.set()
        assert answered.wait(30)

    late = worker(Asking(wait))
    with Boxes(1) as box:
        started = box.start(late.sweep)
        assert asking.wait(30)
        assert not claimable(first)
        end_session(processes[0])
        assert worker().sweep() == 2
        answered.set()
        [ended] = outcomes(started)
    assert isinstance(ended, OperationalError)
    assert (late.kinds("W-1")[-1], late.kinds()[-1]) == (Kind.SETTLING, Kind.DIED)
    assert (settlements(), totals()) == ({"W-1": 1, "W-2": 1}, (0, 0))
