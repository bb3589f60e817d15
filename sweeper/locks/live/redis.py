"""One Redis, asked once."""

import os
import threading
from typing import Any

from redis.exceptions import NoScriptError, ResponseError

from marlow.clock import Clock
from sweeper.locks.live.questions import DELETE_IF_EQUAL, EXPIRE_IF_EQUAL, Question, command, milliseconds, running
from sweeper.locks.live.wire import FAILURES, NOTHING, Wire
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
                return _text(self._ask(command("SET", key, value, "NX", "GET", "PX", milliseconds(self.clock, ttl))))
            except LockUnavailable as refused:
                if not isinstance(refused.__cause__, ResponseError) or "syntax" not in str(refused.__cause__):
                    raise
                self.before_seven = True
        return None if self.set_if_absent(key, value, ttl) else self.get(key) or ""

    def get(self, key: str) -> str | None:
        return _text(self._ask(command("GET", key)))

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
                return self._answer(question)
            except FAILURES as error:
                self._wire.drop()
                raise LockUnavailable(f"The lock's Redis did not answer: {error}") from error

    def _ready(self) -> None:
        if self._wire.spoke():
            self._wire.drop()
        if self._wire.socket is None:
            self._wire.connection.connect()
            self._wire.admit(self.timeout)

    def _answer(self, question: Question) -> Any:
        try:
            return self._exchange(question)
        except NoScriptError:
            return self._exchange(question)  # in full, this time

    def _exchange(self, question: Question) -> Any:
        self._wire.ask(question)
        while (answer := self._wire.answer(question)) is NOTHING:
            pass  # the rest is on its way, and waited for
        return answer


def _text(answer: Any) -> str | None:
    return answer.decode(errors="replace") if isinstance(answer, bytes) else None
