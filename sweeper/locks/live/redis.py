"""One Redis, asked once."""

import os
import threading
from typing import Any

from marlow.clock import Clock
from sweeper.locks.live.questions import (
    DELETE_IF_EQUAL,
    EXPIRE_IF_EQUAL,
    Question,
    command,
    milliseconds,
    running,
    text,
)
from sweeper.locks.live.wire import FAILURES, Wire, knows_no_get
from sweeper.locks.ports import LockUnavailable


class LiveRedis:
    """A client that retries by itself can answer "taken" about our own key, so this one does not.

    One connection, opened with the first question and again with the first one after it failed or was closed.
    Threads may share it (they take turns), and a forked child gets one of its own. `timeout` is in real seconds, for
    the network is not on the shop's clock.
    """

    def __init__(self, url: str, clock: Clock, timeout: float = 2.0) -> None:
        self.url, self.clock, self.timeout = url, clock, timeout
        self.before_seven = False  # such a server knows no GET beside NX
        self._begin()

    def _begin(self) -> None:
        self._process, self._turn = os.getpid(), threading.Lock()
        self._wire = Wire(self.url, self.timeout)

    def set_if_absent(self, key: str, value: str, ttl: float) -> bool:
        return self._ask(command("SET", key, value, "NX", "PX", milliseconds(self.clock, ttl))) is not None

    def set_or_get(self, key: str, value: str, ttl: float) -> str | None:
        """One command from Redis 7.0 on; before that two, between which the key may have gone: empty then."""
        if not self.before_seven:
            try:
                return text(self._ask(command("SET", key, value, "NX", "GET", "PX", milliseconds(self.clock, ttl))))
            except LockUnavailable as refused:
                if not knows_no_get(refused.__cause__):
                    raise
                self.before_seven = True
        return None if self.set_if_absent(key, value, ttl) else self.get(key) or ""

    def get(self, key: str) -> str | None:
        return text(self._ask(command("GET", key)))

    def delete(self, key: str) -> bool:
        return bool(self._ask(command("DEL", key)))

    def delete_if_equal(self, key: str, value: str) -> bool:
        return bool(self._ask(running(DELETE_IF_EQUAL, key, value)))

    def expire_if_equal(self, key: str, value: str, ttl: float) -> bool:
        return bool(self._ask(running(EXPIRE_IF_EQUAL, key, value, milliseconds(self.clock, ttl))))

    def close(self) -> None:
        """Let go of the connection; a question asked later opens another."""
        with self._turn:
            self._wire.drop()

    def _ask(self, question: Question) -> Any:
        if self._process != os.getpid():
            self._begin()
        with self._turn:
            try:
                self._ready()
                self._wire.ask(question)
                return self._wire.answer()
            except FAILURES as error:
                self._wire.drop()
                raise LockUnavailable(f"The lock's Redis did not answer: {error}") from error

    def _ready(self) -> None:
        if self._wire.open and self._wire.spoke():
            self._wire.drop()
        if not self._wire.open:
            self._wire.connect()
            self._wire.admit()
