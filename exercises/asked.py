"""The laboratory's steps read for people: which server was asked what, and which fault struck.

They are kept as JSON (`at`, `who`, `step`) and may be of another day's laboratory: what can't be read is left out,
and keeps its number.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import NAMESPACE_OID, UUID, uuid5

from sweeper.calls import COMMIT, LOCK_SERVERS, QUESTION, RESUMED, ROLLBACK, STATEMENT, Call
from sweeper.findings import Finding
from sweeper.kept import UNREADABLE, moment

FAULT = "fault"
GOES_ON = " goes on"
VERBS = ("SELECT", "INSERT", "UPDATE", "DELETE", "WITH")
ABOUT_LOCKS = ("advisory", "sweeper_jobrun", "shop_fence")  # what statements about a lock in Postgres name
REDIS = {
    "SET NX": "set the key, unless it is there",
    "SET NX GET": "set the key, or say whose it is",
    "GET": "look at the key",
    "DEL": "delete the key",
    "compare-and-delete": "delete the key, if it is mine",
    "compare-and-expire": "keep the key, if it is mine",
}
PROVIDER = {
    "charge": "charge {}",
    "lookup": "did the money of {} move?",
    "cancel": "cancel {}, unless it moved",
    "refund": "give back {}",
    "charges": "which charges landed?",
}
# By the name of a fault: what it did, to the box it names.
FAULTS = {
    "pause": "{} stands still, past a deadline",
    "pause-short": "{} stands still, short of a deadline",
    "crash": "{} is killed",
    "power": "{} loses its power",
    "lost": "{}’s sessions end",
    "lock-lost": "the session of {}’s lock ends",
    "unknown-done": "{}’s COMMIT is done, and it never hears so",
    "unknown-undone": "{}’s session ends before its COMMIT",
    "lock-done": "the lock’s answer to {} is lost",
    "lock-undone": "{}’s question to the lock is lost",
    "clock": "the lock server’s clock steps past a deadline",
    "clock-short": "the lock server’s clock steps short of a deadline",
    "box-clock": "{}’s clock steps past a deadline",
    "box-clock-short": "{}’s clock steps short of a deadline",
    "box-clock-back": "{}’s clock steps back",
    "failover": "the lock’s server fails over, without its keys",
    "provider-done": "the provider’s answer to {} comes too late",
    "provider-dark": "the provider answers nobody any more",
    "lands": "the money moves after all",
}


def run_of(name: str) -> UUID:
    """The id under which a run is known that the laboratory calls by this name, `box-a/1`."""
    return uuid5(NAMESPACE_OID, name)


def read(steps: Any) -> list[Call]:
    """All steps that can be read, those without a server and the faults (without a box) included."""
    calls: list[Call] = []
    asked: dict[tuple[str, str], int] = {}  # of each statement: when it was last asked
    for number, kept in enumerate(steps if isinstance(steps, list) else [], start=1):
        try:
            call = _call(number, moment(kept["at"]), kept["who"], kept["step"], asked)
        except UNREADABLE:
            continue
        calls.append(call)
    return calls


def _call(number: int, at: datetime, who: str, step: str, asked: dict[tuple[str, str], int]) -> Call:
    name = who.partition(" ")[0]  # `box-a/1 beside` works for box-a/1
    box = "" if who.startswith("fault") or step.startswith("Postgres notices") else name.partition("/")[0]
    server, kind, words = _read(step, box)
    short = step.removeprefix(f"{server} ").replace("wednesday-", "").replace(" lock:sweeper", "")
    since = asked.get((who, step.removesuffix(GOES_ON))) if kind == RESUMED else None
    asked[who, step] = number
    about = any(word in step for word in ABOUT_LOCKS)
    return Call(number, at, name if box else "", box, run_of(name), server, kind, words, short, about, since)


def _read(step: str, box: str) -> tuple[str, str, str]:
    """The server, the kind, and the words."""
    if not box:
        return "", FAULT, fault_in_words(step)
    first, _, rest = step.partition(" ")
    if first in LOCK_SERVERS:
        return first, QUESTION, _redis(rest) if first in ("redis", "redlock") else rest
    if first == "provider":
        question, _, key = rest.partition(" ")
        words = PROVIDER[question].format(key.removeprefix("wednesday-")) if question in PROVIDER else rest
        return first, QUESTION, words
    if step.endswith(GOES_ON):
        return "postgres", RESUMED, f"{step.removesuffix(GOES_ON)}, after waiting"
    if step in ("COMMIT", "ROLLBACK"):
        return "postgres", COMMIT if step == "COMMIT" else ROLLBACK, step
    if first in VERBS or "advisory" in step:
        return "postgres", STATEMENT, step
    return "", STATEMENT, step


def _redis(text: str) -> str:
    return REDIS.get(text.rpartition(" ")[0], text)


def fault_in_words(step: str) -> str:
    """`pause of box-a` as a sentence’s beginning; what is none of FAULTS, as it is."""
    kind, of, box = step.partition(" of ")
    return FAULTS[kind].format(box) if of and kind in FAULTS else step


def faults(calls: Sequence[Call]) -> list[Finding]:
    """What struck, as findings: they are why what follows went as it did."""
    return [
        Finding(FAULT, call.at, call.words, f"Here {call.words}: a fault.", (call.run,))
        for call in calls
        if call.kind == FAULT
    ]
