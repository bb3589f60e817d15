"""Several independent Redises, all asked at once."""

import os
import select
import threading
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from typing import Any

from redis.exceptions import TimeoutError as NotYet

from marlow.clock import Clock, monotonic
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

NOTHING = object()  # no answer: nil is one
PATIENCE = 0.002  # real seconds for which one node's answer is waited for before the others'


class LiveRedisNodes:
    """Every question goes to all nodes before any answer is read, and all answers share one deadline: `timeout` real
    seconds from the question. However many nodes are down, frozen or behind a black hole, a question takes no longer.

    A node that fails is left out of this answer and opened anew for the next question, within that one's deadline.
    Nothing is retried. Threads may share it (they take turns), and a forked child gets connections of its own.
    """

    def __init__(self, urls: Sequence[str], clock: Clock, timeout: float) -> None:
        self.urls, self.clock, self.timeout = tuple(urls), clock, timeout
        self.before_seven = False  # one of them: such a server knows no GET beside NX
        self._begin()

    def _begin(self) -> None:
        self._process = os.getpid()
        self._turn = threading.Lock()
        self._idle: select.poll | None = None  # over the open ones; None where one was opened or closed since
        self._nodes = [Wire(url, self.timeout) for url in self.urls]
        self._threads: ThreadPoolExecutor | None = None

    def set_or_get(self, key: str, value: str, ttl: float) -> list[str | None]:
        """One question where every Redis is of version 7.0 or later; else three, the first for nothing."""
        set_it = ("SET", key, value, "NX")
        lives = ("PX", milliseconds(self.clock, ttl))
        if not self.before_seven:
            told = self._ask(command(*set_it, "GET", *lives))
            if not self.before_seven:
                return [value if answer is None else text(answer) for answer in told]
        self._ask(command(*set_it, *lives))
        return [text(answer) if answer else "" for answer in self._ask(command("GET", key))]

    def delete_if_equal(self, key: str, value: str) -> list[bool | None]:
        return self._run(running(DELETE_IF_EQUAL, key, value))

    def expire_if_equal(self, key: str, value: str, ttl: float) -> list[bool | None]:
        return self._run(running(EXPIRE_IF_EQUAL, key, value, milliseconds(self.clock, ttl)))

    def close(self) -> None:
        """Let go of every connection; a question asked later opens them anew."""
        with self._turn:
            for node in self._nodes:
                self._drop(node)
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
        with self._turn:
            deadline = monotonic() + self.timeout
            self._drop_who_spoke()
            try:
                closed = []
                for node in self._nodes:
                    if node.open:
                        self._send(node, question)
                    else:
                        closed.append(node)
                if closed:
                    self._join(closed, question, deadline)
                while not self._read(answers) and monotonic() < deadline:
                    pass
            finally:
                for node in self._nodes:
                    if node.asked:
                        self._drop(node)
        return answers

    def _drop_who_spoke(self) -> None:
        """Nobody was asked: it was closed, or speaks out of turn."""
        if self._idle is None:
            self._idle = select.poll()
            for node in self._nodes:
                if node.open:
                    self._idle.register(node, select.POLLIN)
        if self._idle.poll(0):
            for node in self._nodes:
                if node.open and node.spoke():
                    self._drop(node)

    def _drop(self, node: Wire) -> None:
        node.drop()
        self._idle = None

    def _send(self, node: Wire, question: Question) -> None:
        try:
            node.ask(question)
        except FAILURES:
            self._drop(node)

    def _join(self, closed: list[Wire], question: Question, deadline: float) -> None:
        """Open what is closed, side by side, and ask each node as soon as it is open."""
        opening = self._start_opening(closed)
        try:
            for opened in as_completed(opening, max(0.0, deadline - monotonic())):
                node = opening.pop(opened)
                if opened.exception() is None:
                    node.admit(PATIENCE)
                    self._idle = None
                    self._send(node, question)
                else:
                    self._drop(node)
        except TimeoutError:
            pass
        finally:
            for node in opening.values():
                self._drop(node)

    def _start_opening(self, closed: list[Wire]) -> dict[Future[None], Wire]:
        if self._threads is None:
            self._threads = ThreadPoolExecutor(2 * len(self._nodes), "connecting")  # some may still end their last
        opening = {}
        for node in closed:
            node.opening = self._threads.submit(node.connect)
            opening[node.opening] = node
        return opening

    def _read(self, answers: list[Any]) -> bool:
        """Each in turn, for as long as PATIENCE: while the first is waited for the others come. True: all have."""
        complete = True
        for place, node in enumerate(self._nodes):
            if node.asked:
                try:
                    answers[place] = node.answer()
                except NotYet:
                    complete = False
                except FAILURES as error:
                    self.before_seven |= knows_no_get(error)
                    self._drop(node)
        return complete
