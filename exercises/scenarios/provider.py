"""The payment provider of the laboratory: the same questions, answered in virtual time."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime

from exercises.scenarios.ports import Fate
from marlow.clock import Clock
from shop.provider.answers import Answer, LandedCharge, Verdict

TIMEOUT = 10.0  # virtual seconds that the shop waits for an answer
TOO_LATE = TIMEOUT + 1.0
Step = Callable[[str, tuple[str, ...], bool], Fate]


@dataclass
class Charge:
    """A charge that landed."""

    amount_minor: int
    at: datetime
    refunded: set[str] = field(default_factory=set)


@dataclass
class VirtualProvider:
    """One provider for all boxes. `latency`: virtual seconds from a question to its answer; the answer is what was
    true when the question arrived. Where it takes longer than the shop waits, nothing is done: money that would have
    moved by then never moves, as with the live provider when its client has gone.

    `pace` stands in for `latency` where it changes: asked once for each question, by its kind, when it arrives. Where
    it counts them, questions about two orders are no longer independent; an exploration must do without.
    """

    latency: float = 0.0
    pace: Callable[[str], float] | None = None
    charges: dict[str, Charge] = field(default_factory=dict)
    barred: set[str] = field(default_factory=set)
    dark: bool = False

    def takes(self, question: str) -> float:
        """Virtual seconds until a question of this kind, which arrives now, is answered."""
        return self.latency if self.pace is None else self.pace(question)

    def land(self, key: str, amount_minor: int, at: datetime) -> bool:
        """The money of this key moves, unless the key was barred or it moved already; did it?"""
        if key in self.barred or key in self.charges:
            return False
        self.charges[key] = Charge(amount_minor, at)
        return True


class ProviderPort:
    """One box's way to it: `shop.provider.answers.Provider`."""

    def __init__(self, provider: VirtualProvider, clock: Clock, step: Step) -> None:
        self.provider, self.clock, self.step = provider, clock, step

    def charge(self, key: str, amount_minor: int) -> Answer:
        def asked() -> Answer:
            if key in self.provider.barred:
                return Answer(Verdict.NO, why="barred")
            self.provider.land(key, amount_minor, self.clock.now())
            return self._found(key)

        return self._ask("charge", key, True, asked)

    def lookup(self, key: str) -> Answer:
        return self._ask("lookup", key, False, lambda: self._found(key))

    def cancel(self, key: str) -> Answer:
        def asked() -> Answer:
            if key not in self.provider.charges:
                self.provider.barred.add(key)
            return self._found(key)

        return self._ask("cancel", key, True, asked)

    def refund(self, charge_key: str, refund_key: str, amount_minor: int) -> Answer:
        def asked() -> Answer:
            charge = self.provider.charges.get(charge_key)
            if charge is None:
                return Answer(Verdict.NO, why="no such charge")
            charge.refunded.add(refund_key)
            return Answer(Verdict.YES, amount_minor)

        return self._ask("refund", charge_key, True, asked)

    def charges_since(self, since: datetime) -> list[LandedCharge] | None:
        self.step("provider charges", ("provider",), False)
        return [
            LandedCharge(key, charge.amount_minor, charge.at, bool(charge.refunded))
            for key, charge in self.provider.charges.items()
            if charge.at >= since
        ]

    def _found(self, key: str) -> Answer:
        charge = self.provider.charges.get(key)
        return Answer(Verdict.NO) if charge is None else Answer(Verdict.YES, charge.amount_minor)

    def _ask(self, question: str, key: str, writes: bool, asked: Callable[[], Answer]) -> Answer:
        fate = self.step(f"provider {question} {key}", (f"provider:{key}",), writes)
        takes = self.provider.takes(question)
        if self.provider.dark or fate is False or takes > TIMEOUT:
            self.clock.sleep(TIMEOUT)
            return Answer(Verdict.UNKNOWN, why="timeout")
        answer, latency = asked(), TOO_LATE if fate else takes
        if latency:
            self.clock.sleep(min(latency, TIMEOUT))
        return answer if latency <= TIMEOUT else Answer(Verdict.UNKNOWN, why="timeout")
