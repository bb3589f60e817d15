"""In whose name an order is settled, and what must be true of the lock for the write to go through."""

import uuid
from dataclasses import dataclass
from datetime import datetime

from marlow.clock import Clock


class SessionLost(Exception):
    """The database session that took the lock is not the one that writes: nothing was written."""


class StaleToken(Exception):
    """The fence has seen a higher token than ours: nothing was written."""

    def __init__(self, name: str, token: int, highest: int) -> None:
        super().__init__(f"Fence {name} stands at {highest}; a write with token {token} was refused.")
        self.name, self.token, self.highest = name, token, highest


@dataclass(frozen=True)
class Permit:
    """Handed to every settle.

    `session` is the value `marlow.run` must have in the writing session (None: the lock lives elsewhere); `fence`
    and `token` are compared by the fenced form.
    """

    clock: Clock
    box: str
    run: uuid.UUID | None = None
    session: str | None = None
    fence: str = ""
    token: int | None = None

    def now(self) -> datetime:
        return self.clock.now()
