"""Five orders that a laboratory misses which models too little, each found by itself, and what is right bears it."""

from datetime import UTC, datetime
from itertools import count

import pytest

from exercises.lab.database import Database
from exercises.lab.scheduler import at
from exercises.lab.steps import Mode, Step, Touch
from exercises.lab.trial import Errors, Trial
from exercises.scenarios.boxes import Setting
from exercises.scenarios.corner import Corner
from exercises.scenarios.exploration import Bounds, Exploration, Found, read
from exercises.scenarios.faults import Kind
from exercises.scenarios.oracles import WITHOUT_ORDER
from exercises.scenarios.replay import clear
from marlow.clock import StandingClock
from shop.models import Refund
from shop.provider.answers import Answer, Verdict
from shop.refunds import send_due

NOW = datetime(2026, 2, 11, 22, 0, tzinfo=UTC)
PHANTOM = "the catalogue promises copies that no shelf holds (1)"
WITHOUT = f"{WITHOUT_ORDER} (1)"


def explored(database: Database, setting: Setting, *kinds: Kind, faults: int = 1, messages: int = 1) -> Found:
    corner = Corner(setting, orders=1, messages=messages)
    return Exploration(database, corner, Bounds(faults=faults, kinds=kinds)).go()


def sentences(found: Found) -> set[str]:
    return {sentence for what in found.failures for sentence in what}


def test_1_the_lock_s_session_dies_between_the_update_and_its_commit(database: Database) -> None:
    """The other box acquires and lists, and then the first one commits. Where the lock's session is the one that
    works, nothing commits without it.
    """
    apart = explored(database, Setting("wrong:advisory-apart"), Kind.LOCK_LOST)
    assert PHANTOM in sentences(apart)
    assert explored(database, Setting("postgres-advisory"), Kind.LOST).failures == {}


def test_2_a_blocked_statement_goes_on_with_what_it_saw_when_it_was_issued(database: Database) -> None:
    """The fence was read before the wait and is not read again behind it."""
    late = explored(database, Setting("slot", "wrong:sub-select"), Kind.PAUSE, messages=2)
    assert PHANTOM in sentences(late)
    assert explored(database, Setting("slot", "fenced"), Kind.PAUSE, messages=2).failures == {}


def test_3_the_money_lands_when_the_release_is_committed_and_the_box_is_dead(database: Database) -> None:
    """No later sweep reads that row. A cancelled charge lands nowhere."""
    asked = explored(database, Setting("none", "guarded"), Kind.CRASH, Kind.LANDS, faults=2)
    assert set(asked.failures) == {(WITHOUT,)}
    assert asked.shortest is not None
    assert [fault.kind for fault in read(asked.shortest[0])[1]] == [Kind.LANDS], "no crash is needed for it"
    barred = Setting("none", "guarded", question="cancel")
    assert explored(database, barred, Kind.CRASH, Kind.LANDS, faults=2).failures == {}


def test_4_a_settle_whose_commit_nobody_answered_is_tried_again(database: Database) -> None:
    """It was carried out. Guarded, the second one matches no row."""
    again = explored(database, Setting("postgres-advisory", "wrong:retry-unguarded"), Kind.UNKNOWN_DONE)
    assert PHANTOM in sentences(again)
    right = Setting("postgres-advisory", "guarded-retry")
    assert explored(database, right, Kind.UNKNOWN_DONE, Kind.UNKNOWN_UNDONE).failures == {}


class Bank:
    """Gives money back: once for each key that it is asked with."""

    def __init__(self) -> None:
        self.keys: list[str] = []

    def refund(self, charge_key: str, refund_key: str, amount_minor: int) -> Answer:
        at(Step(f"bank refunds {charge_key}", frozenset({Touch(charge_key, Mode.WRITE)})))
        if refund_key not in self.keys:
            self.keys.append(refund_key)
        return Answer(Verdict.YES, amount_minor)


@pytest.mark.parametrize(("keeps_its_key", "holds"), [(False, False), (True, True)])
def test_5_a_refund_is_written_as_sent_after_it_was_sent(
    database: Database, keeps_its_key: bool, holds: bool
) -> None:
    """Two senders find it due. Under a new key each time the money goes back twice; the shop's keeps its own."""
    bank = Bank()
    tries = count(1)

    def under_a_new_key() -> None:
        for refund in list(Refund.objects.filter(state=Refund.State.DUE)):
            bank.refund(refund.charge_key, f"try-{next(tries)}", refund.amount_minor)
            Refund.objects.filter(pk=refund.pk).update(state=Refund.State.SENT, sent_at=NOW)

    def as_the_shop_does() -> None:
        send_due(bank, StandingClock(NOW))  # type: ignore[arg-type]  # it asks for nothing but refunds

    def set_up() -> None:
        bank.keys.clear()
        clear()
        why = "the charge landed, no order keeps it"
        Refund.objects.create(pk=1, charge_key="charge-1", key="refund-1", amount_minor=1299, due_at=NOW, why=why)

    def twice(errors: Errors) -> str | None:
        return f"given back {len(bank.keys)} times" if len(bank.keys) > 1 or errors else None

    send = as_the_shop_does if keeps_its_key else under_a_new_key
    result = Trial(database, set_up, {"a": send, "b": send}, twice).explore()
    clear()
    assert result.exhausted
    assert result.holds is holds
