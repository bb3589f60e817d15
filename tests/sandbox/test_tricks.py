"""More programs that mean harm: to the processes around them, to the messages, and to what is said of them."""

import pytest

from grading.sandbox.python import sandboxed
from tests.sandbox.conftest import IMPATIENT, SMALL, answer, told
from tests.sandbox.test_attacks import CPU, ENDED, KILLED, WALL, program, spared

pytestmark = pytest.mark.usefixtures("nothing_left")

PIPE = "sys.modules['__main__'].SAID"
FORKING = r"""FORKING = '''
import os
try:
    os.fork()
except OSError as refused:
    os.write(%d, b'{"answer": %%d}\\n' %% refused.errno)
'''
"""
RAISED = "Your program raised"
BEFORE = (
    "import ctypes, json, os, re, sys, time\nclass Evil(Exception):\n    def __str__(self): raise SystemExit\n"
    "class Long(Exception):\n    def __str__(self): return 'x' * 10**6\n"
)
VERDICTS = {
    "a signal to the first process": ("os.kill(1, 9)\nreturn 'on'", ("returned", "on")),
    "a stop of its own": ("os.kill(os.getpid(), 19)", WALL),
    "the death of the one above, and an answer later": (
        f"os.kill(os.getppid(), 9)\ntime.sleep(0.5)\nos.write({PIPE}, b'{{\"answer\": 1}}\\n')",
        KILLED,
    ),
    "another program in its place": ("os.execv('/bin/true', ['true'])", ENDED),
    "another user by a program that has the right": ("os.execv('/bin/su', ['su', '-c', 'id'])", ENDED),
    "a fork by another Python in its place": (
        f"os.set_inheritable({PIPE}, True)\nos.execv('/usr/bin/python3', ['python3', '-S', '-c', FORKING % {PIPE}])",
        ("returned", 11),
    ),
    "an end that is put off": ("import atexit\natexit.register(time.sleep, 99)\nreturn 1", ("returned", 1)),
    "a regular expression without end": ("return re.match('(a+)+$', 'a' * 40 + 'b')", CPU),
    "a number without end": ("return 9**9**9", CPU),
    "no number": (
        "return float('nan')",
        ("failed", f"{RAISED} ValueError: Out of range float values are not JSON compliant."),
    ),
    "an exception that raises when it is read": ("raise Evil", ("failed", f"{RAISED} Evil in line 17.")),
    "an exception that talks without end": ("raise Long", ("failed", f"{RAISED} Long in line 17: {'x' * 200}.")),
    "a name in two lines": (
        "raise type('A\\nB', (Exception,), {})('x\\ny')",
        ("failed", f"{RAISED} A B in line 17: x y."),
    ),
    "words of the inside's own": (
        "return [self.port.end(), self.port.said(1), self.port.ended()]",
        ("returned", [["end", []], ["said", [1]], ["ended", []]]),
    ),
    "being worth less to the kernel's choice": (
        "os.write(os.open('/proc/self/oom_score_adj', os.O_WRONLY), b'-1000')",
        ("failed", f"{RAISED} PermissionError in line 17: [Errno 13] Permission denied."),
    ),
    "a place before everybody": (
        "os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))",
        ("failed", f"{RAISED} PermissionError in line 17: [Errno 1] Operation not permitted."),
    ),
}


@pytest.mark.parametrize("what", VERDICTS)
def test_it_gains_nothing_and_is_told(what):
    body, verdict = VERDICTS[what]
    limits = IMPATIENT if verdict == WALL else SMALL
    assert told(program(body, BEFORE + FORKING), limits=limits) == verdict
    spared()


def test_a_million_inodes_find_no_place():
    body = """
made = 0
for at in [line.split()[1] for line in open('/proc/mounts')] + ['/dev', '/etc', '/tmp', '/dev/shm']:
    for make in (os.mkdir, os.mkfifo, lambda path: os.symlink('x', path), lambda path: open(path, 'x')):
        try:
            make(at + '/made')
            made += 1
        except OSError:
            pass
return made"""
    assert told(program(body)) == ("returned", 0)


def test_no_right_is_left_and_none_can_be_had():
    body = """
names = ('CapInh', 'CapPrm', 'CapEff', 'CapBnd', 'CapAmb', 'NoNewPrivs', 'Seccomp', 'Groups')
lines = [line.split() for line in open('/proc/self/status')]
return {line[0]: line[1:] for line in lines if line[0].rstrip(':') in names}"""
    kind, rights = told(program(body))
    nothing = ["0" * 16]
    assert (kind, rights.pop("Groups:")) == ("returned", [])
    assert (rights.pop("NoNewPrivs:"), rights.pop("Seccomp:")) == (["1"], ["2"])
    assert set(map(tuple, rights.values())) == {tuple(nothing)}


def test_only_the_systems_own_files_are_there():
    kind, seen = told(program("return [sorted(os.listdir('/')), sorted(os.listdir('/dev')), os.listdir('/etc')]"))
    assert kind == "returned"
    assert set(seen[0]) <= {"bin", "dev", "etc", "lib", "lib64", "proc", "usr"}
    assert seen[1:] == [["null", "urandom"], ["ld.so.cache"]]


def test_a_copy_that_stops_the_one_above_it_costs_only_its_own_lane():
    source = program("os.kill(os.getppid(), 19)\nreturn 'mine'")
    with sandboxed(source, "Answer", SMALL) as made:
        for _ in range(2):
            with made.start() as talk:
                assert talk.call("run", [], answer) == "mine"
    spared()


@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        ("{}['x']\nclass Answer: pass", f"{RAISED} KeyError in line 1: 'x'."),
        ("Answer = 5", f"{RAISED} TypeError: 'int' object is not callable."),
        ("x = bytearray(10**9)", f"{RAISED} MemoryError in line 1."),
        ("import sys; sys.exit()", f"{RAISED} SystemExit in line 1."),
        ("while True: pass", CPU[1]),
    ],
)
def test_a_source_that_can_not_be_read_to_its_end_is_told_why(source, sentence):
    assert told(source) == ("failed", sentence)
