"""A connection to one Redis server: redis-py's own, below its client, for that one may ask twice."""

import ssl
import struct
import sys
from collections.abc import Callable
from concurrent.futures import Future
from socket import SO_RCVTIMEO, SO_SNDTIMEO, SOL_SOCKET
from typing import Any

from redis.connection import Connection, parse_url
from redis.exceptions import ConnectionError, InvalidResponse, NoScriptError, RedisError, ResponseError
from redis.exceptions import TimeoutError as NotYet

from sweeper.locks.live.questions import Question

FAILURES = (OSError, RedisError)


class Wire:
    """A connection that failed is never used again: a late reply would answer another question.

    `timeout` is in real seconds, for connecting and, unless `admit` says otherwise, for each answer. `connect`, `ask`
    and `answer` raise what is in FAILURES; after that, `drop` it. Nothing is retried.
    """

    def __init__(self, url: str, timeout: float) -> None:
        options = parse_url(url)  # type: ignore[no-untyped-call]  # redis-py types it not
        kind: Any = options.pop("connection_class", Connection)
        # No CLIENT SETINFO, no HELLO: where there is no password and no database number, to connect is TCP alone.
        # redis-py's low-level connection retries nothing unless it is told to.
        options |= {"socket_timeout": timeout, "socket_connect_timeout": timeout, "driver_info": None, "protocol": 2}
        self._make: Callable[[], Any] = lambda: kind(**options)
        self._connection = self._make()
        self.opening: Future[None] | None = None
        self.open = False  # and ours to ask
        self.asked: Question | None = None  # what it has not answered yet
        self._knows: set[str] = set()  # the scripts that were seen to run on this connection

    def connect(self) -> None:
        """May be called from a thread of its own; `admit` says when that is over."""
        self._connection.connect()

    def admit(self, patience: float | None = None) -> None:
        """It has connected. `patience`: real seconds for which an answer is waited for at a time."""
        self.opening, self.open = None, True
        if patience is None:
            return
        lent = self._connection._sock
        if sys.platform == "linux" and not isinstance(lent, ssl.SSLSocket):
            # Python asks the kernel twice for each answer, once whether it may; the kernel can keep the time itself.
            self._connection.update_current_socket_timeout(None)
            for way in (SO_RCVTIMEO, SO_SNDTIMEO):
                lent.setsockopt(SOL_SOCKET, way, struct.pack("ll", 0, int(patience * 1e6)))
        else:
            self._connection.update_current_socket_timeout(patience)

    def spoke(self) -> bool:
        """Whether there is something to read. If nobody was asked, it was closed, or speaks out of turn."""
        try:
            return bool(self._connection.can_read(0))
        except FAILURES:
            return True

    def fileno(self) -> int:
        """For a poll over several. redis-py lends nobody its socket, and to ask each by `spoke` costs a poll each."""
        return int(self._connection._sock.fileno())

    def ask(self, question: Question) -> None:
        """A script goes in full to a connection that is new: if the server is frozen, nobody will be there to hear
        that it does not know the script, and what it is to delete would stay.
        """
        known = not question.sha or question.sha in self._knows
        self._connection._sock.sendall(question.packed if known else question.in_full())
        self.asked = question

    def answer(self) -> Any:
        """To what it was asked. redis-py's TimeoutError: not yet; it may be tried again, or the connection dropped.

        A server that forgot its scripts is asked once more, in full, before the answer is waited for again.
        """
        if self.asked is None:
            raise RuntimeError("This connection was asked nothing.")
        try:
            answer = self._connection.read_response(disconnect_on_error=False)
        except NoScriptError:
            self._knows.discard(self.asked.sha)
            self.ask(self.asked)
            return self.answer()
        except ConnectionError as error:
            if isinstance(error.__context__, BlockingIOError):  # how the kernel puts it, and redis-py passes it on
                raise NotYet from error
            raise
        if self._connection._parser._reader.has_data():
            raise InvalidResponse("The server said more than it was asked.")
        if self.asked.sha:
            self._knows.add(self.asked.sha)
        self.asked = None
        return answer

    def drop(self) -> None:
        """Close what is open; what is still being opened is closed as soon as it is."""
        late = self._connection
        if self.opening is None:
            late.disconnect()
        elif not self.opening.cancel():
            self.opening.add_done_callback(lambda _: late.disconnect())
        self._connection = self._make()
        self.opening, self.open, self.asked = None, False, None
        self._knows.clear()


def knows_no_get(error: BaseException | None) -> bool:
    """What a Redis before 7.0 makes of GET beside NX."""
    return isinstance(error, ResponseError) and "syntax" in str(error)
