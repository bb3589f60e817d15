"""Money to give back: written first, sent after, moved once."""

from datetime import timedelta

import pytest

from shop.models import Refund
from shop.refunds import Sent, owe, owed, send_due
from tests.fakes import NO, UNKNOWN, WEDNESDAY, YES, Boxes, ScriptedProvider, StandingClock, make_book, make_order

pytestmark = pytest.mark.django_db
real_commits = pytest.mark.django_db(transaction=True, databases=["default", "journal"])

LATER = WEDNESDAY + timedelta(minutes=5)


def owe_for(key="charge-1", amount=1299, at=WEDNESDAY, order=True) -> Refund:
    holder = make_order(make_book(number=Refund.objects.count()), "abandoned", key=key) if order else None
    owe(key, amount, order=holder, why="landed late", at=at)
    return Refund.objects.get(charge_key=key)


def test_a_refund_that_is_due_is_sent_under_its_own_key():
    """yes: sent, with its time, and the order says refunded."""
    refund, provider = owe_for(), ScriptedProvider()
    assert send_due(provider, StandingClock(LATER)) == Sent(sent=1)
    refund.refresh_from_db()
    assert (refund.state, refund.sent_at, refund.order.refunded_at) == ("sent", LATER, LATER)
    assert provider.refunds == {"refund-charge-1": 1299}


def test_a_refund_the_provider_refuses_is_not_asked_again():
    """no: refused, for people to look at; the order is not refunded."""
    refund, provider = owe_for(), ScriptedProvider(NO)
    assert send_due(provider, StandingClock()) == Sent(refused=1)
    assert send_due(provider, StandingClock()) == Sent()
    refund.refresh_from_db()
    assert (refund.state, refund.sent_at, refund.order.refunded_at) == ("refused", None, None)


def test_a_refund_without_an_answer_stays_due_and_is_asked_again():
    """unknown: due, and sent by the next call under the same key."""
    refund, provider = owe_for(), ScriptedProvider(UNKNOWN, YES)
    assert send_due(provider, StandingClock()) == Sent(due=1)
    refund.refresh_from_db()
    assert (refund.state, refund.order.refunded_at) == ("due", None)
    assert send_due(provider, StandingClock()) == Sent(sent=1)
    assert provider.asked["refund"] == ["refund-charge-1"] * 2


def test_one_unanswered_refund_does_not_hold_up_the_others():
    """Oldest first, each by itself."""
    for number, minutes in enumerate((3, 1, 2)):
        owe_for(f"charge-{number}", at=WEDNESDAY + timedelta(minutes=minutes))
    provider = ScriptedProvider(UNKNOWN, NO, YES)
    assert send_due(provider, StandingClock()) == Sent(sent=1, refused=1, due=1)
    assert provider.asked["refund"] == ["refund-charge-1", "refund-charge-2", "refund-charge-0"]


def test_a_charge_without_an_order_is_refunded_too():
    """Money for which no order was ever found."""
    owe_for(order=False)
    assert send_due(ScriptedProvider(), StandingClock()) == Sent(sent=1)


def test_a_charge_is_owed_once():
    """Written twice, owed once, with the first amount and reason; no error for the second writer."""
    assert not owed("charge-1")
    owe_for()
    owe("charge-1", 5, order=None, why="again", at=LATER)
    assert owed("charge-1")
    assert Refund.objects.get().amount_minor == 1299


@real_commits
def test_two_senders_at_once_move_the_money_once_and_write_once():
    """While the first has the provider's yes in hand, a second sends the same refund from start to end."""
    refund = owe_for()
    with Boxes(1) as boxes:
        provider, early, late = ScriptedProvider(), StandingClock(WEDNESDAY), StandingClock(LATER)
        second = []

        def overtake():
            provider.meanwhile = None
            second.extend(boxes.run(lambda: send_due(provider, early)))

        provider.meanwhile = overtake
        assert send_due(provider, late) == Sent()
    assert second == [Sent(sent=1)]
    refund.refresh_from_db()
    assert (refund.sent_at, refund.order.refunded_at) == (WEDNESDAY, WEDNESDAY)
    assert provider.refunds == {"refund-charge-1": 1299}
    assert not provider.asked_inside_transaction
