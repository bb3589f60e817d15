"""The journal in plain words: one sentence an event, with the box as its subject."""

from collections.abc import Callable
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from shop.money import pounds
from shop.words import count
from sweeper.events import Event, Kind

LONDON = ZoneInfo("Europe/London")
ANSWERS = {
    "no": "heard that the money never moved",
    "yes": "heard that the money had landed",
    "unknown": "heard nothing in time",
}
INTENTS = {"released": "release the copy", "completed": "complete the order", "refunded": "give the money back"}
OUTCOMES = {
    "released": "released it: one copy back into stock",
    "completed": "completed it: the order is paid",
    "refunded": "abandoned it: copy back into stock, money to be given back",
}


def clock(moment: datetime, tenths: bool = False) -> str:
    """The time of day in London, to the second or to its tenth."""
    here = moment.astimezone(LONDON)
    return f"{here:%H:%M:%S}.{here.microsecond // 100_000}" if tenths else f"{here:%H:%M:%S}"


def tell(event: Event, foreign: bool = False, tenths: bool = False) -> str:
    """What the box did. `foreign`: this release removed another run's key. `tenths`: of a second, in times of day."""
    if foreign:
        return "deleted the lock's key, which was another run's by then"
    if event.kind is Kind.ACQUIRED:
        return _acquired(event, event.data, tenths)
    return _WORDS[event.kind](event, event.data)


def _acquired(event: Event, data: dict[str, Any], tenths: bool = False) -> str:
    token = "" if event.token is None else f", token {event.token}"
    until = f", until {clock(datetime.fromisoformat(data['deadline']), tenths)}" if data.get("deadline") else ""
    return f"took the lock{token}{until}"


def _refused(event: Event, data: dict[str, Any]) -> str:
    holder = data.get("holder")
    return f"was refused the lock: {holder} holds it" if holder else "was refused the lock: somebody holds it"


def _listed(event: Event, data: dict[str, Any]) -> str:
    rows = data.get("rows", 0)
    return "found no order to ask about" if not rows else f"found {count(rows, 'order')} to ask about"


def _stale(event: Event, data: dict[str, Any]) -> str:
    return f"was refused by the fence: token {event.token} is older than {data.get('highest', 'the one it has seen')}"


def _owed(event: Event, data: dict[str, Any]) -> str:
    """No settle: the order had been abandoned before, and no copy moves."""
    amount = pounds(data["amount_minor"]) if data.get("amount_minor") else "the money"
    return f"wrote down {amount} as due back: somebody else had abandoned the order"


def _released(event: Event, data: dict[str, Any]) -> str:
    """By what was seen: whose key it was where that was looked at, else whether one was deleted."""
    if data.get("released") == "not_ours":
        return "went to let the lock go and found that it was no longer its own"
    if data.get("released") != "unknown":
        return "let the lock go"
    if data.get("deleted"):
        return "deleted the lock's key without looking whose it was"
    return "tried to let the lock go, and can't tell whether it did"


def _because(words: str) -> Callable[[Event, dict[str, Any]], str]:
    """The words, and the reason where the event gives one."""

    def told(event: Event, data: dict[str, Any]) -> str:
        why = data.get("why") or data.get("error")
        return f"{words}: {why}" if why else words

    return told


_WORDS: dict[Kind, Callable[[Event, dict[str, Any]], str]] = {
    Kind.STARTED: lambda event, data: "began a run",
    Kind.ACQUIRED: _acquired,
    Kind.REFUSED: _refused,
    Kind.REDELIVERED: lambda event, data: "got the same message again and did not sweep twice",
    Kind.LISTED: _listed,
    Kind.ASKED: lambda event, data: "asked the provider about it",
    Kind.ANSWERED: lambda event, data: ANSWERS.get(event.answer, f"heard “{event.answer}”"),
    Kind.SETTLING: lambda event, data: f"set out to {INTENTS.get(data.get('outcome', ''), 'settle it')}",
    Kind.SETTLED: lambda event, data: OUTCOMES.get(data.get("outcome", ""), "settled it"),
    Kind.UNTOUCHED: lambda event, data: "wrote nothing: somebody else had settled it first",
    Kind.SKIPPED: _because("left it for the next run"),
    Kind.STALE: _stale,
    Kind.LOST: _because("learned that its lock was gone"),
    Kind.STOPPED: lambda event, data: "stopped there",
    Kind.OWED: _owed,
    Kind.RELEASED: _released,
    Kind.FINISHED: lambda event, data: f"finished, {count(data.get('settled', 0), 'order')} settled",
    Kind.DIED: _because("died"),
}
