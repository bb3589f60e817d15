"""The kinds of event a journal may hold, and one event as data."""

import uuid
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any


class Kind(StrEnum):
    """What can happen in a run. Timelines, oracles and grading know these and no others."""

    STARTED = "started"  # the run began; nothing is held yet
    ACQUIRED = "acquired"  # the lock said yes: holder, token, deadline
    REFUSED = "refused"  # the lock said no: to whom it said yes, if it knows
    REDELIVERED = "redelivered"  # the message came a second time and was not swept again
    LISTED = "listed"  # which orders are pending and old enough: rows
    ASKED = "asked"  # a question went to the provider
    ANSWERED = "answered"  # yes, no or unknown came back
    SETTLING = "settling"  # intent, before the COMMIT: outcome
    SETTLED = "settled"  # the COMMIT came back: outcome
    UNTOUCHED = "untouched"  # a guarded write matched no row: somebody else had settled it
    SKIPPED = "skipped"  # the row is being worked on elsewhere, or the answer was unknown
    STALE = "stale"  # the fence refused the write: token, highest
    LOST = "lost"  # the run learned that its lease or its session is gone
    STOPPED = "stopped"  # and ended before its next step because of it
    OWED = "owed"  # somebody else had abandoned the order; the money that landed was written down as due back
    RELEASED = "released"  # the lock was let go: released (ours, not_ours, unknown), deleted
    FINISHED = "finished"
    DIED = "died"  # the run ended by an error or was found dead: error


@dataclass(frozen=True)
class Event:
    """One thing that happened in one run. `data` holds what its kind needs and must be JSON."""

    at: datetime
    box: str
    run: uuid.UUID
    kind: Kind
    order: str = ""
    answer: str = ""
    token: int | None = None
    data: dict[str, Any] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """The event as a verdict shows it: `{at, box, run, kind, …}`, empty fields left out."""
        named = {"order": self.order, "answer": self.answer, "token": self.token}
        return {
            "at": self.at.isoformat(),
            "box": self.box,
            "run": str(self.run),
            "kind": str(self.kind),
            **{name: value for name, value in named.items() if value not in ("", None)},
            **self.data,
        }
