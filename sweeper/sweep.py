"""The sweep: orders that nobody came back for, asked about one by one, and settled.

One code path. Celery runs it on two boxes, the laboratory runs the very same function; what it needs comes in as
arguments, and it knows nothing of either.
"""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from marlow.clock import Clock
from shop.decide import carry_out, decide
from shop.models import Order
from shop.permit import Permit, SessionLost, StaleToken
from shop.provider.answers import Answer, Provider
from shop.settle import Form, Result
from sweeper.events import Event, Kind
from sweeper.journal import Journal, Run
from sweeper.locks.base import Lease, Lock, Refusal, Release, Released


@dataclass(frozen=True)
class Rules:
    """How to sweep. Durations are virtual seconds."""

    job: str = "sweeper"
    ttl: float = 120.0
    pending_for: float = 120.0
    stop_on_lost_lease: bool = True


class LeaseLost(Exception):
    """The run learned that its lock is no longer its own, and was told to stop then."""


class LockMislaid(Exception):
    """A lock that nothing but its own session can end was gone when it was to be let go."""


# What became of one row: the event that says so, and its particulars. Noted once the row's claim is committed.
Outcome = tuple[Kind, dict[str, Any]]
ELSEWHERE: Outcome = (Kind.SKIPPED, {"why": "another worker has it, or has settled it"})


def sweep(
    run: Run, *, lock: Lock, form: Form, provider: Provider, clock: Clock, journal: Journal, rules: Rules
) -> int:
    """One run: acquire, list, ask, settle, release. Returns how many orders it settled.

    A refusal is no error. Whatever ends the run early is journalled and raised; the lock is released in any case.
    """
    return _Sweep(run, form, provider, clock, journal, rules).under(lock)


@dataclass
class _Sweep:
    run: Run
    form: Form
    provider: Provider
    clock: Clock
    journal: Journal
    rules: Rules
    settled: int = 0

    def under(self, lock: Lock) -> int:
        try:
            lease = lock.acquire(self.rules.job, self.rules.ttl)
            if isinstance(lease, Refusal):
                self._note(Kind.REFUSED, holder=lease.holder)
                return 0
            self._work_then_release(lease)
        except Exception as error:
            self._note(Kind.DIED, error=f"{type(error).__name__}: {error}"[:500], settled=self.settled)
            raise
        return self.settled

    def _work_then_release(self, lease: Lease) -> None:
        ending = Kind.FINISHED
        try:
            deadline = lease.deadline.isoformat() if lease.deadline and lease.end_renewal is None else None
            self._note(Kind.ACQUIRED, token=lease.token, holder=lease.holder, deadline=deadline)
            self._work(lease)
        except (LeaseLost, SessionLost, StaleToken) as lost:
            kind = Kind.STALE if isinstance(lost, StaleToken) else Kind.LOST
            highest = lost.highest if isinstance(lost, StaleToken) else None
            self._note(kind, token=lease.token, why=str(lost), highest=highest)
            ending = Kind.STOPPED
        finally:
            release = lease.release()
            self._note(Kind.RELEASED, released=str(release.released), deleted=release.deleted)
        if ending is Kind.FINISHED:
            _demand_it_was_ours(lease, release)
        self._note(ending, settled=self.settled)

    def _work(self, lease: Lease) -> None:
        permit = Permit(
            clock=self.clock,
            box=self.run.box,
            run=self.run.run,
            session=lease.session,
            fence=self.rules.job if self.form.fenced else "",
            token=lease.token,
        )
        for order in self._list(permit):
            self._demand(lease)
            with lease.claim(order) as claimed:
                kind, particulars = self._handle(order, lease, permit) if claimed else ELSEWHERE
            self.settled += kind is Kind.SETTLED
            self._note(kind, order=order.reference, **particulars)

    def _list(self, permit: Permit) -> list[Order]:
        """Pending for longer than the rule says, oldest first; behind the fence, where the form has one."""
        old = self.clock.now() - timedelta(seconds=self.rules.pending_for)
        pending = Order.objects.filter(status=Order.Status.PENDING, created_at__lt=old)
        orders = self.form.read(permit, pending.order_by("created_at", "id"))
        self._note(Kind.LISTED, rows=len(orders), orders=[order.reference for order in orders])
        return orders

    def _handle(self, order: Order, lease: Lease, permit: Permit) -> Outcome:
        answer = self._ask(order)
        if not answer.known:
            return Kind.SKIPPED, {"why": f"no answer: {answer.why}"[:200]}
        self._demand(lease)
        decision = decide(order, answer)
        outcome = str(decision.outcome)
        self._note(Kind.SETTLING, order=order.reference, token=permit.token, outcome=outcome)
        match carry_out(decision, order, permit, self.form):
            case Result.DONE:
                return Kind.SETTLED, {"token": permit.token, "outcome": outcome}
            case Result.OWED:
                return Kind.OWED, {"amount_minor": decision.amount_minor, "why": decision.why}
            case Result.UNTOUCHED:
                return Kind.UNTOUCHED, {"outcome": outcome}

    def _ask(self, order: Order) -> Answer:
        self._note(Kind.ASKED, order=order.reference, question=self.run.question)
        question = self.provider.cancel if self.run.question == "cancel" else self.provider.lookup
        answer = question(order.key)
        self._note(Kind.ANSWERED, order=order.reference, answer=str(answer.verdict), why=answer.why)
        return answer

    def _demand(self, lease: Lease) -> None:
        """With stop-on-lost-lease, no question and no write once the lock is known to be gone."""
        if self.rules.stop_on_lost_lease and not lease.still_held():
            raise LeaseLost("The lease is over; the rest is left to the next run.")

    def _note(self, kind: Kind, *, order: str = "", answer: str = "", token: int | None = None, **data: Any) -> None:
        kept = {name: value for name, value in data.items() if value not in ("", None)}
        event = Event(self.clock.now(), self.run.box, self.run.run, kind, order, answer, token, kept)
        self.journal.write(event)


def _demand_it_was_ours(lease: Lease, release: Release) -> None:
    """An unlock that answers "not yours" is an error where no clock can have ended the lock."""
    if lease.session is not None and release.released is Released.NOT_OURS:
        raise LockMislaid(
            "The lock was no longer this session's when it was to be let go: somebody else may have held it "
            "meanwhile. Look for a pooler in transaction mode, or a connection that was opened anew."
        )
