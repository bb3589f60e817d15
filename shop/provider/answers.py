"""What a payment provider can tell us: yes, no, or nothing we may act on."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Protocol


class Verdict(StrEnum):
    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Answer:
    """One answer. `amount_minor` is the charge's amount where there is one; `why` is for people."""

    verdict: Verdict
    amount_minor: int | None = None
    why: str = ""

    @property
    def known(self) -> bool:
        return self.verdict is not Verdict.UNKNOWN


@dataclass(frozen=True)
class LandedCharge:
    """A charge whose money moved. `refunded` says whether it moved back."""

    key: str
    amount_minor: int
    landed_at: datetime
    refunded: bool


class Provider(Protocol):
    """The provider as the shop sees it. No method raises for what the network or the provider does.

    A timeout, a broken connection, a 5xx and an answer that makes no sense are all `unknown`.
    """

    def charge(self, key: str, amount_minor: int) -> Answer:
        """Move the money once for this key. yes: it moved (now or earlier); no: declined or barred."""
        ...

    def lookup(self, key: str) -> Answer:
        """Did money move for this key? A no is not final: the charge may still land."""
        ...

    def cancel(self, key: str) -> Answer:
        """Bar the key, seen or never seen. yes: money had moved already; no: it has not and never will."""
        ...

    def refund(self, charge_key: str, refund_key: str, amount_minor: int) -> Answer:
        """Move the money back once for this refund key. yes: it moved back, now or earlier; no: nothing to refund."""
        ...

    def charges_since(self, since: datetime) -> list[LandedCharge] | None:
        """Every charge landed at or after `since`, oldest first; None when the answer is unknown."""
        ...
