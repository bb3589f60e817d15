"""Small stand-ins for what comes from outside: a clock that stands, a provider that says what it was told to say."""

from collections import defaultdict
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import count

from django.db import connection

from shop.provider.answers import Answer, LandedCharge, Verdict

WEDNESDAY = datetime(2026, 2, 11, 21, 50, tzinfo=UTC)

YES = Answer(Verdict.YES)
NO = Answer(Verdict.NO)
UNKNOWN = Answer(Verdict.UNKNOWN)


class StandingClock:
    """Stands still until it is advanced; sleeping advances it and takes no real time."""

    def __init__(self, now: datetime = WEDNESDAY) -> None:
        self._now = now

    def now(self) -> datetime:
        return self._now

    def real(self, seconds: float) -> float:
        return 0.0

    def sleep(self, seconds: float) -> None:
        self.advance(seconds)

    def ticking(self) -> bool:
        return True

    def advance(self, seconds: float) -> None:
        self._now += timedelta(seconds=seconds)


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
