"""What the provider's answer asks of an order, and carrying it out. The checkout and the sweeper decide alike."""

from dataclasses import dataclass

from shop.models import Order, Settlement
from shop.permit import Permit
from shop.provider.answers import Answer, Verdict
from shop.settle import Form, Result

Outcome = Settlement.Outcome


class NoDecision(Exception):
    """An unknown answer decides nothing: leave the order for the next run."""


@dataclass(frozen=True)
class Decision:
    """Complete, release, or refund and release. `amount_minor` is what landed, 0 where nothing did."""

    outcome: Settlement.Outcome
    amount_minor: int = 0
    why: str = ""


def decide(order: Order, answer: Answer) -> Decision:
    """Money landed: complete, or refund where it is another amount. Never moved: release. Raises NoDecision."""
    if not answer.known:
        raise NoDecision(f"No answer about order {order.reference}: {answer.why}")
    if answer.verdict is Verdict.NO:
        return Decision(Outcome.RELEASED)
    landed = order.amount_minor if answer.amount_minor is None else answer.amount_minor
    if landed != order.amount_minor:
        return Decision(Outcome.REFUNDED, landed, f"{landed} landed, {order.amount_minor} was asked")
    return Decision(Outcome.COMPLETED, landed)


def carry_out(decision: Decision, order: Order, permit: Permit, form: Form) -> Result:
    """Write it in this form. Money that landed for an order which was abandoned meanwhile becomes due back: OWED."""
    match decision.outcome:
        case Outcome.RELEASED:
            return form.release(order, permit)
        case Outcome.REFUNDED:
            return form.refund(order, permit, decision.amount_minor, decision.why)
    if (result := form.complete(order, permit)) is not Result.UNTOUCHED:
        return result
    # Abandoned by somebody while we asked: the money goes back. Paid by somebody: all is well, and still untouched.
    return form.refund(order, permit, decision.amount_minor, "the money landed after the order was abandoned")
