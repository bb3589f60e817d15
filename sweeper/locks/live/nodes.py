"""Several independent Redises, all asked at once."""

import os
import select
import threading
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from typing import Any

from redis.exceptions import NoScriptError

from marlow.clock import Clock, monotonic
from sweeper.locks.live.questions import DELETE_IF_EQUAL, EXPIRE_IF_EQUAL, Question, command, milliseconds, running
from sweeper.locks.live.wire import FAILURES, NOTHING, Wire

PATIENCE = 0.002  # real seconds for which one node's answer is waited for before the others'


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
        self._nodes = [Wire(url, self.timeout) for url in self.urls]
        self._open: dict[int, int] = {}  # descriptor: its node's place
        self._descriptors: dict[int, int] = {}  # and the other way round
        self._poll = select.poll()
        self._threads: ThreadPoolExecutor | None = None

    def set_if_absent(self, key: str, value: str, ttl: float) -> list[bool | None]:
        lives = milliseconds(self.clock, ttl)
        answers = self._ask(command("SET", key, value, "NX", "PX", lives))
        return [None if answer is NOTHING else answer is not None for answer in answers]

    def delete_if_equal(self, key: str, value: str) -> list[bool | None]:
        return self._run(running(DELETE_IF_EQUAL, key, value))

    def expire_if_equal(self, key: str, value: str, ttl: float) -> list[bool | None]:
        return self._run(running(EXPIRE_IF_EQUAL, key, value, milliseconds(self.clock, ttl)))

    def get(self, key: str) -> list[str | None]:
        answers = self._ask(command("GET", key))
        return [answer.decode(errors="replace") if isinstance(answer, bytes) else None for answer in answers]

    def close(self) -> None:
        """Let go of every connection; a question asked later opens them anew."""
        with self._turn:
            for place in range(len(self._nodes)):
                self._drop(place)
            if self._threads is not None:
                self._threads.shutdown(wait=False, cancel_futures=True)
                self._threads = None

    def _run(self, question: Question) -> list[bool | None]:
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
                for place in list(self._open.values()):
                    self._send(place, question, waiting)
                if len(self._open) < len(self._nodes):
                    self._join(question, waiting, deadline)
                self._read_in_turn(question, waiting, answers)
                if waiting:
                    self._read_as_they_come(question, waiting, answers, deadline)
            finally:
                for place in waiting:
                    self._drop(place)
        return answers

    def _send(self, place: int, question: Question, waiting: set[int]) -> None:
        try:
            self._nodes[place].ask(question)
            waiting.add(place)
        except FAILURES:
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
            if node.socket is None:
                node.opening = self._threads.submit(node.connection.connect)
                opening[node.opening] = place
        return opening

    def _read_in_turn(self, question: Question, waiting: set[int], answers: list[Any]) -> None:
        """Most answers: while the first is waited for the others come, and to be woken by each would cost more."""
        for place in list(waiting):
            self._read(place, question, waiting, answers)

    def _read_as_they_come(self, question: Question, waiting: set[int], answers: list[Any], deadline: float) -> None:
        """Until none is missing or the time is over."""
        while waiting and (ready := self._poll.poll(max(0.0, deadline - monotonic()) * 1000)):
            for descriptor, _ in ready:
                place = self._open[descriptor]
                if place in waiting:
                    self._read(place, question, waiting, answers)
                else:
                    self._drop(place)

    def _read(self, place: int, question: Question, waiting: set[int], answers: list[Any]) -> None:
        try:
            answer = answers[place] = self._nodes[place].answer(question)
            if answer is not NOTHING:
                waiting.discard(place)
        except TimeoutError:
            pass  # it is still waited for
        except NoScriptError:
            self._send(place, question, waiting)
        except FAILURES:
            waiting.discard(place)
            self._drop(place)

    def _admit(self, place: int) -> None:
        descriptor = self._descriptors[place] = self._nodes[place].admit(PATIENCE)
        self._open[descriptor] = place
        self._poll.register(descriptor, select.POLLIN)

    def _drop(self, place: int) -> None:
        descriptor = self._descriptors.pop(place, None)
        if descriptor is not None:
            self._poll.unregister(descriptor)
            del self._open[descriptor]
        self._nodes[place].drop()
