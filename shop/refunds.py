"""Money to give back: written down when it is owed, sent afterwards, moved once however often it is sent."""

from dataclasses import dataclass
from datetime import datetime

from django.db import transaction

from marlow.clock import Clock
from shop.models import Order, Refund
from shop.provider.answers import Answer, Provider, Verdict

State = Refund.State


def owe(charge_key: str, amount_minor: int, *, order: Order | None, why: str, at: datetime) -> None:
    """Write that a charge is due back (minor units), once a charge however often; joins the caller's transaction.

    insert … on conflict do nothing: the unique `charge_key` is the arbiter between writers who can't see each other.
    """
    refund = Refund(
        charge_key=charge_key,
        key=f"refund-{charge_key}",
        order=order,
        amount_minor=amount_minor,
        state=State.DUE,
        due_at=at,
        why=why[: Refund.WHY_LENGTH],
    )
    Refund.objects.bulk_create([refund], ignore_conflicts=True)


def owed(charge_key: str) -> bool:
    """Whether this charge has a refund already, due, sent or refused."""
    return Refund.objects.filter(charge_key=charge_key).exists()


def correct(charge_key: str, amount_minor: int) -> bool:
    """A refund that was refused for another amount than what landed becomes due again, under a key of its own.

    update shop_refund … where charge_key = :key and state = 'refused' and amount_minor <> :landed: once, for the
    amount is right afterwards.
    """
    refused = Refund.objects.filter(charge_key=charge_key, state=State.REFUSED).exclude(amount_minor=amount_minor)
    key = f"refund-{charge_key}-{amount_minor}"
    return bool(refused.update(state=State.DUE, amount_minor=amount_minor, key=key))


@dataclass(frozen=True)
class Sent:
    """What one `send_due` did: refunds it marked sent, marked refused, and left due for want of an answer."""

    sent: int = 0
    refused: int = 0
    due: int = 0


def send_due(provider: Provider, clock: Clock) -> Sent:
    """Send every refund that is due, oldest first, each under its own key; call it outside transactions.

    Two senders at once may both ask: the provider moves the money once for the key, and one of them writes. An
    answer "unknown" leaves the refund due, for the next call.
    """
    marked = dict.fromkeys(State, 0)
    for refund in list(Refund.objects.filter(state=State.DUE)):
        answer = provider.refund(refund.charge_key, refund.key, refund.amount_minor)
        if not answer.known:
            marked[State.DUE] += 1
        elif (state := _settle(refund, answer, clock.now())) is not None:
            marked[state] += 1
    return Sent(marked[State.SENT], marked[State.REFUSED], marked[State.DUE])


def _settle(refund: Refund, answer: Answer, at: datetime) -> Refund.State | None:
    """Write what the provider said, if the refund is still due; None where another sender wrote first."""
    state, sent_at = (State.SENT, at) if answer.verdict is Verdict.YES else (State.REFUSED, None)
    with transaction.atomic():
        # update shop_refund … where id = :id and state = 'due': of two senders one matches.
        if not Refund.objects.filter(pk=refund.pk, state=State.DUE).update(state=state, sent_at=sent_at):
            return None
        if state == State.SENT and refund.order_id is not None:
            Order.objects.filter(pk=refund.order_id).update(refunded_at=at)
    return state
