"""A student's Python in bubblewrap: one port call a message, and everything that decides stays out here.

A program has lanes: sandboxes in which the source has been read, each with room for one copy at a time. A copy is
forked there in about a millisecond, and its lane serves the next one when it has ended. A lane that misbehaves is
killed whole and another takes its place.
"""

import os
import select
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from typing import Any

from exercises.handed.checks import CouldNotDecide, Json, Port, Program, Talk, TheirsFailed
from grading.sandbox.bubblewrap import Bubblewrap
from grading.sandbox.cgroup import Cgroup, cgroup
from grading.sandbox.limits import Limits
from grading.sandbox.message import GARBLED, as_line, parse, what_it_raised
from marlow.clock import monotonic

CPU, KILL = 24, 9  # signals
LETTING_GO = 1.0  # real seconds that a copy has to end when it is told to
OVER = {
    "cpu": "Your program used up its {cpu} s of CPU time: look for a loop that never ends.",
    "memory": "Your program used up its {memory} MiB of memory.",
    "cpu altogether": "Your program’s calls used up {cpu_altogether} s of CPU time altogether: make them quicker.",
    "killed": "Your program was killed: it used up its CPU time or its memory.",
    "ended": "Your program ended in the middle of a call: it must return or raise.",
    "talks": "Your program said more than {message} bytes in one message.",
    "asks": "Your program asked more than {questions} questions in one call: look for a loop that never ends.",
}


@contextmanager
def sandboxed(source: str, name: str, limits: Limits | None = None) -> Iterator[Program]:
    """The class of this name in this source. Raises TheirsFailed, CouldNotDecide."""
    program = Sandboxed(source, name, limits or Limits())
    try:
        program.give_back(program.lane())  # what can't be read is found out before anything is explored
        yield program
    finally:
        program.close()


class Sandboxed:
    """A Program, with the lanes that wait for work."""

    def __init__(self, source: str, name: str, limits: Limits) -> None:
        self.source, self.name, self.limits = source, name, limits
        self.bound, self.used = cgroup(limits), Used()
        self._idle: list[Lane] = []
        self._all: list[Lane] = []

    @contextmanager
    def start(self) -> Iterator[Talk]:
        """Raises TheirsFailed, CouldNotDecide."""
        lane = self.lane()
        try:
            lane.start()
            yield lane
        finally:
            self.give_back(lane)

    def lane(self) -> "Lane":
        if self._idle:
            return self._idle.pop()
        if len(self._all) >= self.limits.lanes:
            raise CouldNotDecide(f"More than {self.limits.lanes} copies of one program at once are not to be had.")
        lane = Lane(self.source, self.name, self.limits, self.bound, self.used)
        self._all.append(lane)
        return lane

    def give_back(self, lane: "Lane") -> None:
        if lane.let_go():
            self._idle.append(lane)
            return
        lane.close()
        self._all.remove(lane)

    def close(self) -> None:
        for lane in self._all:
            lane.close()
        self._all.clear()
        self._idle.clear()
        self.bound.close()


@dataclass
class Used:
    """By one program, in all its lanes. `waited`: real seconds that it has kept the judge waiting; `cpu`: seconds of
    its copies that have ended, as the sandbox itself says: who forges it is left to the clock.
    """

    waited: float = 0.0
    cpu: float = 0.0


class Lane:
    """One sandbox and the talk with the copy in it."""

    def __init__(self, source: str, name: str, limits: Limits, bound: Cgroup, used: Used) -> None:
        self.limits, self.bound, self.used = limits, bound, used
        self._rest = b""
        self._running = False  # a copy is in there
        self._broken = False
        self._read = False  # their source, and so anything of theirs
        self._waited = 0.0
        self._starts = 0
        self._killed = bound.out_of_memory()
        self.wrap = Bubblewrap(limits, bound)
        try:
            self._hello()
            self._read = True
            self._send({"source": source, "name": name})
            kind, message = self._hear("read", "missing", "raised")
            if kind == "missing":
                raise TheirsFailed(f"There is no class {name} in your program: name it so.")
            if kind == "raised":
                raise TheirsFailed(what_it_raised(message))
        except BaseException:
            self.close()
            raise

    def start(self) -> None:
        """A new instance."""
        self._waited = 0.0
        self._starts += 1
        if self.used.cpu > self.limits.cpu_altogether:
            raise self._over("cpu altogether")
        self._send({"start": True})
        self._running = True
        kind, message = self._hear("ready", "raised")
        if kind == "raised":
            raise TheirsFailed(what_it_raised(message))

    def call(self, name: str, arguments: Sequence[Json], port: Port) -> Json:
        """As `Talk` has it. The lane is good for another copy only where it is known what comes next in its pipe."""
        self._waited = 0.0
        self._broken = True
        self._send({"call": name, "arguments": list(arguments)})
        for _ in range(self.limits.questions + 1):
            kind, message = self._hear("answer", "raised", "ask")
            self._broken = False
            if kind == "answer":
                return message["answer"]
            if kind == "raised":
                raise TheirsFailed(what_it_raised(message))
            said = port(*_question(message))  # what this raises finds the copy waiting, and able to be let go
            self._broken = True
            self._send({"said": said})
        raise self._over("asks")

    def let_go(self) -> bool:
        """Whether this lane can serve another copy: the one in it has ended, by itself or by being told to."""
        if self._broken or self._starts >= self.limits.starts:
            return False
        if not self._running:
            return True
        self._waited = self.limits.wall - LETTING_GO
        try:
            self._send({"end": True})
            self._hear("ended")
        except (TheirsFailed, CouldNotDecide):
            return False
        self._running = False
        return True

    def close(self) -> None:
        self.wrap.close()

    def _hello(self) -> None:
        """Nothing of theirs has been read yet: whatever goes wrong up to here is the judge's failure."""
        try:
            self._hear("hello")
        except TheirsFailed as not_theirs:
            raise self.wrap.did_not_start() from not_theirs

    def _send(self, message: dict[str, Any]) -> None:
        line = memoryview(as_line(message))
        while line:
            self._wait([], [self.wrap.write])
            with suppress(BlockingIOError):
                try:
                    line = line[os.write(self.wrap.write, line) :]
                except BrokenPipeError:
                    raise self._gone() from None

    def _hear(self, *kinds: str) -> tuple[str, dict[str, Any]]:
        """The next message, which is one of these kinds. Raises TheirsFailed, CouldNotDecide."""
        while b"\n" not in self._rest:
            if len(self._rest) > self.limits.message:
                raise self._over("talks")
            self._rest += self._more()
        line, _, self._rest = self._rest.partition(b"\n")
        if len(line) > self.limits.message:
            raise self._over("talks")
        kind, message = parse(line, self.limits)
        if kind == "ended":
            self._count(message["cpu"])
        if kind == "ended" and kind not in kinds:
            self._running = False  # the copy is gone and its lane is not
            raise self._by_signal(message["ended"])
        if kind not in kinds:
            raise TheirsFailed(GARBLED)
        return kind, message

    def _count(self, seconds: Any) -> None:
        if not isinstance(seconds, float) or seconds < 0:  # an int may be too large for one
            raise TheirsFailed(GARBLED)
        self.used.cpu += seconds

    def _more(self) -> bytes:
        self._wait([self.wrap.read], [])
        try:
            more = os.read(self.wrap.read, 65536)
        except BlockingIOError:
            return b""
        if not more:
            raise self._gone()
        return more

    def _wait(self, reading: list[int], writing: list[int]) -> None:
        """Until one of these is ready, and not for ever. Raises CouldNotDecide."""
        left = min(self.limits.wall - self._waited, self.limits.altogether - self.used.waited)
        began = monotonic()
        read, write, _ = select.select(reading, writing, [], max(0.0, left))
        took = monotonic() - began
        self._waited += took
        self.used.waited += took
        if not read and not write:
            raise self._too_slow()

    def _too_slow(self) -> CouldNotDecide:
        self._broken = True
        self.wrap.end()
        what = f"one call kept the judge waiting for {self.limits.wall:g} s"
        if self.used.waited >= self.limits.altogether:
            what = f"its calls kept the judge waiting for {self.limits.altogether:g} s altogether"
        return CouldNotDecide(
            f"Your program was stopped: {what} of the clock. It may sleep, or the machine was busy."
        )

    def _gone(self) -> Exception:
        """Everything in the sandbox has ended: by their doing, if bubblewrap says with which status."""
        self._broken = True
        code = self.wrap.exit_code()
        if code is None and not self._read:
            return self.wrap.did_not_start()
        if code is None and self.bound.out_of_memory() == self._killed:
            return CouldNotDecide("The sandbox was ended from outside, and not by your program.")
        return self._by_signal(128 - code if code is not None and code > 128 else code)

    def _by_signal(self, status: object) -> Exception:
        """`status`: negative for a signal."""
        self._broken = True
        killed = self.bound.out_of_memory()
        if killed > self._killed:
            self._killed = killed
            return self._over("memory")
        return self._over({-CPU: "cpu", -KILL: "killed"}.get(status, "ended") if isinstance(status, int) else "ended")

    def _over(self, what: str) -> TheirsFailed:
        self._broken = True
        limits = self.limits
        return TheirsFailed(OVER[what].format(**{**asdict(limits), "memory": limits.total // 1024**2}))


def _question(message: dict[str, Any]) -> tuple[str, list[Json]]:
    """Raises TheirsFailed."""
    if not isinstance(message["ask"], str) or not isinstance(message["arguments"], list):
        raise TheirsFailed(GARBLED)
    return message["ask"], message["arguments"]
