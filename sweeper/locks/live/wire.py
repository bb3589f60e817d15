"""A connection to one Redis server. redis-py opens it; the questions go over its socket as they are."""

import select
import ssl
import struct
import sys
from concurrent.futures import Future
from socket import SO_RCVTIMEO, SO_SNDTIMEO, SOL_SOCKET, socket
from typing import Any, Protocol

import hiredis
from redis.connection import Connection, parse_url
from redis.exceptions import ConnectionError as Disconnected
from redis.exceptions import InvalidResponse, NoScriptError, RedisError, ResponseError

from sweeper.locks.live.questions import Question

NOTHING = object()  # no answer: nil is one
FAILURES = (OSError, RedisError)


class Opening(Protocol):
    """What is used of redis-py's connection, which has no types of its own."""

    _sock: socket

    def connect(self) -> None: ...

    def disconnect(self) -> None: ...


class Wire:
    """A connection that failed is never used again: a late reply would answer another question.

    `timeout` is in real seconds, for connecting and, unless `admit` says otherwise, for each answer. `ask` and
    `answer` raise what is in FAILURES; after that, `drop` it. Nothing is retried.
    """

    def __init__(self, url: str, timeout: float) -> None:
        options = parse_url(url)  # type: ignore[no-untyped-call]  # redis-py types it not
        self._kind = options.pop("connection_class", Connection)
        # No CLIENT SETINFO, no HELLO: where there is no password and no database number, to connect is TCP alone.
        # redis-py's low-level connection retries nothing unless it is told to.
        self._options = {
            **options,
            "socket_timeout": timeout,
            "socket_connect_timeout": timeout,
            "driver_info": None,
            "protocol": 2,
        }
        self.connection: Opening = self._kind(**self._options)
        self.opening: Future[None] | None = None
        self.socket: socket | None = None  # while it is open, and ours to ask
        self.knows: set[str] = set()  # the scripts that were seen to run on this connection

    def admit(self, timeout: float) -> int:
        """It has connected: from here on the socket is ours, with this timeout (real seconds). Its descriptor."""
        self.opening, self.socket = None, self.connection._sock
        self._wait_for(self.socket, timeout)
        self._reader = hiredis.Reader(protocolError=InvalidResponse, replyError=ResponseError, notEnoughData=NOTHING)
        self._poll = select.poll()
        self._poll.register(self.socket, select.POLLIN)
        return self.socket.fileno()

    def _wait_for(self, socket: socket, seconds: float) -> None:
        """Wait so long and no longer to read or to write. Python would ask the kernel twice for each, once whether it
        may; the kernel can keep the time itself, but not for TLS, and elsewhere it is told in other words.
        """
        socket.settimeout(seconds)
        if sys.platform == "linux" and not isinstance(socket, ssl.SSLSocket):
            socket.settimeout(None)
            whole = int(seconds)
            for way in (SO_RCVTIMEO, SO_SNDTIMEO):
                socket.setsockopt(SOL_SOCKET, way, struct.pack("ll", whole, int((seconds - whole) * 1e6)))

    def spoke(self) -> bool:
        """Whether there is something to read. If nobody was asked, it was closed, or speaks out of turn."""
        return self.socket is not None and bool(self._poll.poll(0))

    def ask(self, question: Question) -> None:
        """A script goes in full to a connection that is new: if the server is frozen, nobody will be there to hear
        that it does not know the script, and what it is to delete would stay.
        """
        known = not question.sha or question.sha in self.knows
        if self.socket is None:
            raise Disconnected("There is no connection.")
        self.socket.sendall(question.packed if known else question.in_full())

    def answer(self, question: Question) -> Any:
        """What came; NOTHING where that is not all of it yet. Raises TimeoutError where nothing came in time, and
        NoScriptError where the question is to be asked again.
        """
        if self.socket is None:
            raise Disconnected("There is no connection.")
        try:
            came = self.socket.recv(4096)
        except BlockingIOError as late:  # as the kernel puts it
            raise TimeoutError("timed out") from late
        if not came:
            raise Disconnected("The server closed the connection.")
        self._reader.feed(came)
        answer = self._reader.gets()
        if self._reader.has_data() and answer is not NOTHING:
            raise InvalidResponse("The server said more than it was asked.")
        if isinstance(answer, ResponseError):
            if str(answer).startswith("NOSCRIPT"):
                self.knows.discard(question.sha)
                raise NoScriptError(str(answer))
            raise answer
        if question.sha and answer is not NOTHING:
            self.knows.add(question.sha)
        return answer

    def drop(self) -> None:
        """Close what is open; what is still being opened is closed as soon as it is."""
        late = self.connection
        if self.opening is None:
            late.disconnect()
        elif not self.opening.cancel():
            self.opening.add_done_callback(lambda _: late.disconnect())
        self.connection = self._kind(**self._options)
        self.opening = self.socket = None
        self.knows.clear()
