"""Lanes: what is used again, what is thrown away, and who is blamed when one breaks."""

import os

import pytest

from exercises.handed.checks import CouldNotDecide, TheirsFailed
from grading.sandbox.bubblewrap import SPARE
from grading.sandbox.limits import Limits
from grading.sandbox.python import Sandboxed, sandboxed
from tests.sandbox.conftest import IMPATIENT, SMALL, answer, told

pytestmark = pytest.mark.usefixtures("nothing_left")

PLAIN = """
class Answer:
    def __init__(self, port): self.port = port
    def run(self): return self.port.get('key')
"""
ENDED = ("failed", "Your program ended in the middle of a call: it must return or raise.")
SLOW = "Your program was stopped: one call kept the judge waiting for 1 s of the clock. "
WALL = ("could not decide", SLOW + "It may sleep, or the machine was busy.")
KILLED = ("failed", "Your program was killed: it used up its CPU time or its memory.")


class Abandoned(BaseException):
    """As a fibre that nobody goes on with is unwound."""


def abandon(name, arguments):
    raise Abandoned


def sandbox_of(program: Sandboxed) -> list[int]:
    return [lane.wrap.process.pid for lane in program._all]


def test_a_talk_that_the_port_breaks_off_costs_no_sandbox():
    with sandboxed(PLAIN, "Answer", SMALL) as program:
        before = sandbox_of(program)
        for _ in range(5):
            with pytest.raises(Abandoned), program.start() as talk:
                talk.call("run", [], abandon)
        assert sandbox_of(program) == before


def test_nothing_of_theirs_runs_any_more_once_the_port_has_broken_off():
    source = """
class Answer:
    def __init__(self, port): self.port = port
    def run(self):
        try:
            self.port.first()
        finally:
            self.port.last()
"""
    asked = []

    def port(name, arguments):
        asked.append(name)
        raise Abandoned

    with sandboxed(source, "Answer", SMALL) as program:
        with pytest.raises(Abandoned), program.start() as talk:
            talk.call("run", [], port)
        with pytest.raises(Abandoned), program.start() as talk:
            talk.call("run", [], port)
    assert asked == ["first", "first"]


def test_an_exception_of_theirs_costs_no_sandbox_either():
    with sandboxed(PLAIN, "Answer", SMALL) as program:
        before = sandbox_of(program)
        with pytest.raises(TheirsFailed), program.start() as talk:
            talk.call("no_such_method", [], answer)
        with program.start() as talk:
            assert talk.call("run", [], answer) == ["get", ["key"]]
        assert sandbox_of(program) == before


def test_a_lane_is_replaced_after_so_many_copies():
    with sandboxed(PLAIN, "Answer", Limits(starts=3)) as program:
        seen = set()
        for _ in range(9):
            with program.start() as talk:
                seen.update(sandbox_of(program))
                talk.call("run", [], answer)
        assert len(seen) == 3


def test_starting_copies_is_not_charged_to_the_time_of_reading_the_source():
    source = """
from os import getppid
from resource import RLIMIT_CPU, getrlimit, prlimit
reading = getrlimit(RLIMIT_CPU)[0]
class Answer:
    def __init__(self, port): pass
    def run(self): return [reading, prlimit(getppid(), RLIMIT_CPU)[0], *getrlimit(RLIMIT_CPU)]
"""
    assert told(source, limits=Limits(cpu=2)) == ("returned", [2, 2 + SPARE, 2, 3])


def test_many_short_waits_are_bounded_altogether():
    source = "import time\n" + PLAIN.replace("return", "time.sleep(0.1); return")
    with sandboxed(source, "Answer", Limits(altogether=0.5)) as program:

        def often():
            for _ in range(20):
                with program.start() as talk:
                    talk.call("run", [], answer)

        with pytest.raises(CouldNotDecide, match=r"kept the judge waiting for 0\.5 s altogether of the clock"):
            often()


def test_a_little_cpu_time_in_each_of_many_copies_is_theirs_altogether():
    source = PLAIN.replace("return", "any(n < 0 for n in range(2_000_000)); return")
    with sandboxed(source, "Answer", Limits(cpu_altogether=1)) as program:

        def often():
            for _ in range(100):
                with program.start() as talk:
                    talk.call("run", [], answer)

        with pytest.raises(TheirsFailed, match="used up 1 s of CPU time altogether: make them quicker"):
            often()


@pytest.mark.parametrize("body", ["os._exit(0)", "os.kill(os.getpid(), 11)"])
def test_a_source_that_ends_while_it_is_read_has_itself_to_blame(body):
    assert told(f"import os\n{body}\n{PLAIN}") == ENDED


def test_a_source_that_lets_go_of_its_pipes_is_waited_for_and_no_longer():
    source = "import os, time\nos.closerange(0, 32)\ntime.sleep(60)\n"
    assert told(source + PLAIN, limits=IMPATIENT) == WALL


def test_a_process_that_the_source_leaves_behind_takes_the_place_of_its_copies():
    source = "import os, time\nif os.fork() == 0: time.sleep(60)\n" + PLAIN
    assert told(source) == ENDED


def test_a_program_that_does_not_listen_can_not_keep_the_judge_from_talking_on():
    source = """
import os, sys, time
class Answer:
    def __init__(self, port): pass
    def run(self):
        os.write(sys.modules['__main__'].SAID, b'{"ask": "x", "arguments": []}\\n')
        time.sleep(60)
"""
    with sandboxed(source, "Answer", IMPATIENT) as program, program.start() as talk:
        with pytest.raises(CouldNotDecide) as why:
            talk.call("run", [], lambda name, arguments: "x" * 1_000_000)
        assert str(why.value) == WALL[1]


def test_a_pipe_that_was_ready_and_is_no_more_does_not_hold_the_judge(monkeypatch):
    """Who is inside can read what it said itself, between our being told of it and our reading it."""
    with sandboxed(PLAIN, "Answer", IMPATIENT) as program, program.start() as talk:
        read, theirs = os.read, talk.wrap.read

        def stolen(number, most):
            if number == theirs:
                monkeypatch.setattr(os, "read", read)
                read(theirs, most)
            return read(number, most)

        monkeypatch.setattr(os, "read", stolen)
        with pytest.raises(CouldNotDecide, match="kept the judge waiting for 1 s"):
            talk.call("run", [], answer)


@pytest.mark.parametrize("code", ["[]", "1e999", "Infinity", '"0"', "[" * 5000])
def test_a_forged_status_of_the_sandbox_decides_nothing(code):
    source = f"""
import os
class Answer:
    def __init__(self, port): pass
    def run(self):
        for n in range(3, 32):
            try:
                status = os.open('/proc/1/fd/%d' % n, os.O_WRONLY | os.O_NONBLOCK)
                os.write(status, b'[]\\n{{"exit-code": {code}}}\\n')
            except OSError: pass
        os.kill(os.getppid(), 9)
        os._exit(0)
"""
    assert told(source) == KILLED


def test_a_sandbox_that_is_killed_from_outside_is_not_held_against_the_program():
    def port(name, arguments):
        talk.wrap.process.kill()
        talk.wrap.process.wait()

    source = "import time\n" + PLAIN.replace("return self.port.get('key')", "time.sleep(self.port.get('key') or 60)")
    with sandboxed(source, "Answer", SMALL) as program, program.start() as talk, pytest.raises(CouldNotDecide) as why:
        talk.call("run", [], port)
    assert str(why.value) == "The sandbox was ended from outside, and not by your program."
