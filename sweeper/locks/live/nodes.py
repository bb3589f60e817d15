"""Several independent Redises, all asked at once."""

import hashlib
import os
import select
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from typing import Any, NamedTuple, Protocol

from redis.connection import Connection, parse_url
from redis.exceptions import NoScriptError, RedisError

from marlow.clock import Clock, monotonic
from sweeper.locks.live.redis import COMPARE_AND_DELETE, COMPARE_AND_EXPIRE, milliseconds

NOTHING = object()  # no answer: nil is one


class Wire(Protocol):
    """What is used of redis-py's connection, which has no types of its own."""

    _sock: Any

    def connect(self) -> None: ...

    def disconnect(self) -> None: ...

    def send_packed_command(self, command: Sequence[bytes], check_health: bool) -> None: ...

    def read_response(self) -> Any: ...


class Script(NamedTuple):
    text: str
    sha: str


class Question(NamedTuple):
    """A command, packed once for all nodes; with a script, also how to ask a node that may not know it."""

    packed: bytes
    sha: str = ""
    in_full: Callable[[], bytes] = bytes


def pack(*words: str | int) -> bytes:
    """A command as RESP has it: redis-py's own packing costs as much as asking two nodes."""
    parts = [b"*%d\r\n" % len(words)]
    for word in words:
        raw = str(word).encode()
        parts.append(b"$%d\r\n%b\r\n" % (len(raw), raw))
    return b"".join(parts)


def script(text: str) -> Script:
    return Script(text, hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest())


DELETE_IF_EQUAL = script(COMPARE_AND_DELETE)
EXPIRE_IF_EQUAL = script(COMPARE_AND_EXPIRE)


class _Node:
    """One server. A connection that failed is never used again: a late reply would answer another question."""

    def __init__(self, url: str, timeout: float) -> None:
        options = parse_url(url)  # type: ignore[no-untyped-call]
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
        self.connection: Wire = self._kind(**self._options)
        self.opening: Future[None] | None = None
        self.descriptor: int | None = None  # while it is open, and ours to ask
        self.knows: set[str] = set()  # the scripts that were seen to run on this connection

    def ask(self, question: Question) -> None:
        """Raises RedisError. A script goes in full to a connection that is new: if the server is frozen, nobody will
        be there to hear that it does not know the script, and what it is to delete would stay.
        """
        known = not question.sha or question.sha in self.knows
        self.connection.send_packed_command((question.packed if known else question.in_full(),), False)

    def answer(self, question: Question) -> Any:
        """Raises RedisError. To be called when there is something to read."""
        answer = self.connection.read_response()
        if question.sha:
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
        self.opening = self.descriptor = None
        self.knows.clear()


class LiveRedisNodes:
    """Every question goes to all nodes before any answer is read, and all answers share one deadline: `timeout` real
    seconds from the question. However many nodes are down, frozen or behind a black hole, a question takes no longer.

    A node that fails is left out of this answer and opened anew for the next question, within that one's deadline.
    Nothing is retried. Threads may share it (they take turns), and a forked child gets connections of its own.
    """

    def __init__(self, urls: Sequence[str], clock: Clock, timeout: float) -> None:
        self.urls, self.clock, self.timeout = tuple(urls), clock, timeout
        self._begin()

    def _begin(self) -> None:
        self._process = os.getpid()
        self._turn = threading.Lock()
        self._nodes = [_Node(url, self.timeout) for url in self.urls]
        self._open: dict[int, int] = {}  # descriptor: its node's place
        self._poll = select.poll()
        self._threads: ThreadPoolExecutor | None = None

    def set_if_absent(self, key: str, value: str, ttl: float) -> list[bool | None]:
        lives = milliseconds(self.clock, ttl)
        answers = self._ask(Question(pack("SET", key, value, "NX", "PX", lives)))
        return [None if answer is NOTHING else answer is not None for answer in answers]

    def delete_if_equal(self, key: str, value: str) -> list[bool | None]:
        return self._run(DELETE_IF_EQUAL, key, value)

    def expire_if_equal(self, key: str, value: str, ttl: float) -> list[bool | None]:
        return self._run(EXPIRE_IF_EQUAL, key, value, milliseconds(self.clock, ttl))

    def get(self, key: str) -> list[str | None]:
        answers = self._ask(Question(pack("GET", key)))
        return [answer.decode(errors="replace") if isinstance(answer, bytes) else None for answer in answers]

    def close(self) -> None:
        """Let go of every connection; a question asked later opens them anew."""
        with self._turn:
            for place in range(len(self._nodes)):
                self._drop(place)
            if self._threads is not None:
                self._threads.shutdown(wait=False, cancel_futures=True)
                self._threads = None

    def _run(self, script: Script, key: str, *words: str | int) -> list[bool | None]:
        packed = pack("EVALSHA", script.sha, 1, key, *words)
        question = Question(packed, script.sha, lambda: pack("EVAL", script.text, 1, key, *words))
        return [None if answer is NOTHING else answer == 1 for answer in self._ask(question)]

    def _ask(self, question: Question) -> list[Any]:
        """An answer a node, NOTHING where there was none."""
        if self._process != os.getpid():
            self._begin()
        answers: list[Any] = [NOTHING] * len(self._nodes)
        waiting: set[int] = set()
        with self._turn:
            deadline = monotonic() + self.timeout
            for descriptor, _ in self._poll.poll(0):  # nobody was asked: it was closed, or speaks out of turn
                self._drop(self._open[descriptor])
            try:
                for place in tuple(self._open.values()):
                    self._send(place, question, waiting)
                if len(self._open) < len(self._nodes):
                    self._join(question, waiting, deadline)
                self._collect(question, waiting, answers, deadline)
            finally:
                for place in waiting:
                    self._drop(place)
        return answers

    def _send(self, place: int, question: Question, waiting: set[int]) -> None:
        waiting.add(place)
        try:
            self._nodes[place].ask(question)
        except RedisError:
            waiting.discard(place)
            self._drop(place)

    def _join(self, question: Question, waiting: set[int], deadline: float) -> None:
        """Open what is closed, side by side, and ask each node as soon as it is open."""
        opening = self._start_opening()
        try:
            for opened in as_completed(opening, max(0.0, deadline - monotonic())):
                place = opening.pop(opened)
                if opened.exception() is None:
                    self._admit(place)
                    self._send(place, question, waiting)
                else:
                    self._drop(place)
        except TimeoutError:
            pass
        finally:
            for place in opening.values():
                self._drop(place)

    def _start_opening(self) -> dict[Future[None], int]:
        if self._threads is None:
            self._threads = ThreadPoolExecutor(2 * len(self._nodes), "connecting")  # some may still end their last
        opening = {}
        for place, node in enumerate(self._nodes):
            if node.descriptor is None:
                node.opening = self._threads.submit(node.connection.connect)
                opening[node.opening] = place
        return opening

    def _collect(self, question: Question, waiting: set[int], answers: list[Any], deadline: float) -> None:
        """Read answers as they come, until none is missing or the time is over."""
        while waiting and (ready := self._poll.poll(max(0.0, deadline - monotonic()) * 1000)):
            for descriptor, _ in ready:
                place = self._open[descriptor]
                if place in waiting:
                    self._read(place, question, waiting, answers)
                else:
                    self._drop(place)

    def _read(self, place: int, question: Question, waiting: set[int], answers: list[Any]) -> None:
        node = self._nodes[place]
        try:
            answers[place] = node.answer(question)
            waiting.discard(place)
        except NoScriptError:
            node.knows.discard(question.sha)
            self._send(place, question, waiting)
        except RedisError:
            waiting.discard(place)
            self._drop(place)

    def _admit(self, place: int) -> None:
        node = self._nodes[place]
        node.opening, node.descriptor = None, int(node.connection._sock.fileno())
        self._open[node.descriptor] = place
        self._poll.register(node.descriptor, select.POLLIN)

    def _drop(self, place: int) -> None:
        node = self._nodes[place]
        if node.descriptor is not None:
            self._poll.unregister(node.descriptor)
            del self._open[node.descriptor]
        node.drop()
