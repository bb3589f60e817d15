"""The laboratory's servers as the locks see them: `sweeper.locks.ports`, one adapter a box and server.

Every question begins with a step, at which the laboratory may let another box go first. Then the server answers, and
what it does is one event. Durations are virtual seconds. A server that is down is a LockUnavailable.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TypeVar

from exercises.lab.servers import NotDone, SessionOver, Unreachable, VirtualEtcd, VirtualRedis, VirtualZooKeeper
from sweeper.locks.ports import Created, LockUnavailable, Node

Answer = TypeVar("Answer")

# What becomes of a question: None, it is answered; True, it is carried out and the answer is lost; False, it is lost.
Fate = bool | None
# What is about to be asked, in words; the names of what it touches; whether it may change that.
Step = Callable[[str, tuple[str, ...], bool], Fate]


class RedisPort:
    """One box's way to one Redis. Its keys are resources: `redis:lock:sweeper`."""

    def __init__(self, server: VirtualRedis, step: Step, name: str = "redis") -> None:
        self.server, self.step, self.name = server, step, name

    def set_if_absent(self, key: str, value: str, ttl: float) -> bool:
        return _answer(self._step("SET NX", key), lambda: self.server.set_if_absent(key, value, milliseconds(ttl)))

    def set_or_get(self, key: str, value: str, ttl: float) -> str | None:
        return _answer(self._step("SET NX GET", key), lambda: self.server.set_or_get(key, value, milliseconds(ttl)))

    def get(self, key: str) -> str | None:
        return _answer(self._step("GET", key, writes=False), lambda: self.server.get(key))

    def delete(self, key: str) -> bool:
        return _answer(self._step("DEL", key), lambda: self.server.delete(key))

    def delete_if_equal(self, key: str, value: str) -> bool:
        return _answer(self._step("compare-and-delete", key), lambda: self.server.delete_if_equal(key, value))

    def expire_if_equal(self, key: str, value: str, ttl: float) -> bool:
        return _answer(
            self._step("compare-and-expire", key), lambda: self.server.expire_if_equal(key, value, milliseconds(ttl))
        )

    def _step(self, question: str, key: str, writes: bool = True) -> Fate:
        return self.step(f"{self.name} {question} {key}", (f"{self.name}:{key}",), writes)


class RedisNodesPort:
    """One box's way to several, all asked in one step. A key is one resource on all: `redlock:lock:sweeper`."""

    def __init__(self, servers: Sequence[VirtualRedis], step: Step, name: str = "redlock") -> None:
        self.servers, self.step, self.name = tuple(servers), step, name

    def set_or_get(self, key: str, value: str, ttl: float) -> list[str | None]:
        def asked(server: VirtualRedis) -> str:
            there = server.set_or_get(key, value, milliseconds(ttl))
            return value if there is None else there

        return self._ask("SET NX GET", key, asked)

    def delete_if_equal(self, key: str, value: str) -> list[bool | None]:
        return self._ask("compare-and-delete", key, lambda server: server.delete_if_equal(key, value))

    def expire_if_equal(self, key: str, value: str, ttl: float) -> list[bool | None]:
        lives = milliseconds(ttl)
        return self._ask("compare-and-expire", key, lambda server: server.expire_if_equal(key, value, lives))

    def _ask(self, question: str, key: str, asked: Callable[[VirtualRedis], Answer]) -> list[Answer | None]:
        fate = self.step(f"{self.name} {question} {key}", (f"{self.name}:{key}",), True)
        if fate is False:
            return [None] * len(self.servers)
        answers = [_answer_or_none(asked, server) for server in self.servers]
        return answers if fate is None else [None] * len(self.servers)


class EtcdPort:
    """One box's way to etcd. The cluster is one resource, for every write moves its revision."""

    def __init__(self, server: VirtualEtcd, step: Step, name: str = "etcd") -> None:
        self.server, self.step, self.name = server, step, name

    def grant(self, ttl: float) -> int:
        return _answer(self._step("grant a lease"), lambda: self.server.grant(ttl))

    def create(self, key: str, value: str, lease: int) -> Created:
        made = _answer(self._step(f"create {key}"), lambda: self.server.create(key, value, lease))
        return Created(made.succeeded or made.value == value, made.revision, made.value)

    def keep_alive(self, lease: int) -> bool:
        return _answer(self._step("keep the lease alive"), lambda: self.server.keep_alive(lease))

    def revoke(self, lease: int) -> bool:
        return _answer(self._step("revoke the lease"), lambda: self.server.revoke(lease))

    def get(self, key: str) -> str | None:
        return _answer(self._step(f"get {key}", writes=False), lambda: self.server.get(key))

    def _step(self, question: str, writes: bool = True) -> Fate:
        return self.step(f"{self.name} {question}", (self.name,), writes)


class ZooKeeperPort:
    """One box's session. It begins with the first question and lasts for as long as the server hears of the box: by
    its questions, and by `keep_alive`, which is what the client's own threads do while the box is alive.

    What `session` says is this box's belief, and asks nobody. A session that ended is known to be over once the
    server has said so, to a heartbeat or to a question; the client then begins another, as the live one does, and a
    question that was asked in the old one is not asked again. One that was asked while the server was down is lost
    for good, where the live client may still send it when the server is back.
    """

    def __init__(self, server: VirtualZooKeeper, step: Step, timeout: float, name: str = "zookeeper") -> None:
        """`timeout`: how long the session outlives a box that is gone, in virtual seconds."""
        self.server, self.step, self.timeout, self.name = server, step, timeout, name
        self._number = 0  # none yet
        self._connected = False

    def create(self, prefix: str, value: str) -> Node:
        """Two events, as on the real server: another box's may come between the making and the look around."""
        parent = prefix.rpartition("/")[0]
        made, session = self._ask(
            f"create {prefix}", lambda: (self.server.create(self._number, prefix, value), self._number)
        )
        return Node(made.path, made.czxid, f"{session:x}", self.children(parent))

    def children(self, parent: str) -> Sequence[str]:
        return self._ask(f"children {parent}", lambda: self.server.children(self._number, parent), writes=False)

    def get(self, path: str) -> str | None:
        return self._ask(f"get {path}", lambda: self.server.get(self._number, path), writes=False)

    def delete(self, path: str) -> bool:
        return self._ask(f"delete {path}", lambda: self.server.delete(self._number, path))

    def session(self) -> str:
        return f"{self._number:x}" if self._connected else ""

    def keep_alive(self) -> bool:
        """One heartbeat; due well within the timeout, a third of it apart. False: the session that there was is over,
        or the server gave no answer. Nothing is asked before the first question.
        """
        if not self._number:
            return False
        try:
            self._ask("heartbeat", lambda: self.server.keep_alive(self._number))
        except LockUnavailable:
            return False
        return True

    def close(self) -> None:
        """End the session, and with it every node of ours that is left. A server that is down finds out by itself."""
        if self._number:
            fate = self._step("close the session")
            number, self._number, self._connected = self._number, 0, False
            with suppress(Unreachable):
                _carried_out(fate, lambda: self.server.close(number))

    def _ask(self, question: str, asked: Callable[[], Answer], writes: bool = True) -> Answer:
        if not self._number:
            _answer(self._step("open a session"), self._open)
        fate = self._step(question, writes)
        if not self._number:
            raise LockUnavailable("The session was closed in the meantime.")
        try:
            answer = _carried_out(fate, asked)
        except SessionOver as over:
            self._open()
            raise LockUnavailable(str(over)) from over
        except Unreachable as gone:
            self._connected = False
            raise LockUnavailable(str(gone)) from gone
        except NotDone as refused:
            raise LockUnavailable(str(refused)) from refused
        self._connected = True
        return answer

    def _open(self) -> None:
        self._number, self._connected = self.server.open(self.timeout), True

    def _step(self, question: str, writes: bool = True) -> Fate:
        return self.step(f"{self.name} {question}", (self.name,), writes)


def milliseconds(ttl: float) -> int:
    """As Redis takes it."""
    return max(1, round(ttl * 1000))


def _answer(fate: Fate, asked: Callable[[], Answer]) -> Answer:
    try:
        return _carried_out(fate, asked)
    except NotDone as refused:
        raise LockUnavailable(str(refused)) from refused


def _carried_out(fate: Fate, asked: Callable[[], Answer]) -> Answer:
    """Raises Unreachable where the question or its answer is lost."""
    if fate is False:
        raise Unreachable("No answer: the question was lost.")
    answer = asked()
    if fate:
        raise Unreachable("No answer: it was lost.")
    return answer


def _answer_or_none(asked: Callable[[VirtualRedis], Answer], server: VirtualRedis) -> Answer | None:
    try:
        return asked(server)
    except Unreachable:
        return None
