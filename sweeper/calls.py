"""What a run asked of the servers around it, one round trip each, as pictures have it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sweeper.events import Event, Kind
from sweeper.findings import SHARE_ON_PURPOSE
from sweeper.locks.base import Released

# By their places in a picture, from the top; a lock stands on one of the first four, or on Postgres.
LOCK_SERVERS = {"redis": "Redis", "redlock": "Redlock", "etcd": "etcd", "zookeeper": "ZooKeeper"}
SERVERS = {**LOCK_SERVERS, "postgres": "Postgres", "provider": "Provider"}
QUESTION, STATEMENT, COMMIT, ROLLBACK, RESUMED = "question", "statement", "commit", "rollback", "resumed"
HELD_BY_ALL = {"none", *SHARE_ON_PURPOSE}  # locks that are nobody's alone: there is no key to draw


@dataclass(frozen=True)
class Call:
    """One round trip. `number` is its place among all steps, from 1; `since` that of the step at which a statement
    was asked that goes on here, having waited for another's lock. `server` is one of SERVERS, empty for none of them.
    `short` is what went over the wire, where it is shorter than `words`.
    """

    number: int
    at: datetime
    who: str
    box: str
    run: UUID
    server: str
    kind: str
    words: str
    short: str
    takes_lock: bool = False  # a statement by which a lock is asked for or let go
    since: int | None = None


@dataclass(frozen=True)
class Held:
    """A stretch in which the lock was one run's, as its server had it. `until` is when its key was to run out, `end`
    when it was gone, `taken_by` the box that deleted it though it was another run's.
    """

    run: UUID
    box: str
    start: datetime
    until: datetime | None = None
    end: datetime | None = None
    taken_by: str = ""

    @property
    def over(self) -> datetime | None:
        """When it ended, by whatever came first."""
        ends = [moment for moment in (self.until, self.end) if moment is not None]
        return min(ends, default=None)


def lock_server(calls: Sequence[Call]) -> str:
    """Where the lock's key lives: on a server of its own if one was asked, else in Postgres."""
    return next((call.server for call in calls if call.server in LOCK_SERVERS), "postgres")


def held(events: Sequence[Event], deadlines: Sequence[datetime | None], lock: str) -> list[Held]:
    """Whose the lock was, from a journal in the order in which things happened; `deadlines` are of its events."""
    if lock in HELD_BY_ALL:
        return []
    stretches: list[Held] = []
    for event, deadline in zip(events, deadlines, strict=True):
        last = stretches[-1] if stretches else None
        open_now = last is not None and last.end is None
        if event.kind is Kind.ACQUIRED:
            if last is not None and open_now:
                stretches[-1] = _ended(last, event.at)
            stretches.append(Held(event.run, event.box, event.at, deadline))
        elif last is not None and open_now and _lets_go(event, last):
            foreign = event.box if event.run != last.run else ""
            stretches[-1] = _ended(last, event.at, foreign)
    return stretches


def _lets_go(event: Event, last: Held) -> bool:
    """A key that ran out before is past deleting; a run that ends without a word leaves its key behind."""
    if event.kind is not Kind.RELEASED or (last.until is not None and event.at > last.until):
        return False
    if event.run == last.run:
        return event.data.get("released") == Released.OURS or bool(event.data.get("deleted"))
    return bool(event.data.get("deleted")) and event.data.get("released") != Released.OURS


def _ended(held: Held, at: datetime, taken_by: str = "") -> Held:
    return Held(held.run, held.box, held.start, held.until, at, taken_by)
