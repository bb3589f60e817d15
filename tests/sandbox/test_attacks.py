"""Programs that mean harm: each is contained, the student is told a sentence, and the judge works on."""

import json
import os
import signal

import psutil
import pytest

from exercises.handed.checks import TheirsFailed
from grading.sandbox import trial
from grading.sandbox.limits import Limits
from grading.sandbox.python import sandboxed
from marlow import doctor
from marlow.clock import wait_until
from tests.sandbox.conftest import IMPATIENT, SMALL, answer, told

pytestmark = pytest.mark.usefixtures("nothing_left")

CPU = ("failed", "Your program used up its 1 s of CPU time: look for a loop that never ends.")
MEMORY = "Your program used up its 96 MiB of memory."
SLOW = "Your program was stopped: one call kept the judge waiting for 1 s of the clock. "
WALL = ("could not decide", SLOW + "It may sleep, or the machine was busy.")
GARBLED = ("failed", "Your program said something that is no message: leave the sandbox’s own pipes alone.")
ENDED = ("failed", "Your program ended in the middle of a call: it must return or raise.")
KILLED = ("failed", "Your program was killed: it used up its CPU time or its memory.")
LONG = ("failed", "Your program said more than 4096 bytes in one message.")
ASKS = ("failed", "Your program asked more than 50 questions in one call: look for a loop that never ends.")


def program(body: str, before: str = "import ctypes, json, os, socket, sys, threading, time") -> str:
    """A class whose one method does this."""
    lines = "\n        ".join(body.strip().splitlines())
    made = "class Answer:\n    def __init__(self, port): self.port = port\n    def run(self):"
    return f"{before}\n{made}\n        {lines}\n"


def refusal(body: str) -> str:
    """What does this, and returns the name of the exception that stopped it."""
    inner = "\n    ".join(body.strip().splitlines())
    return program(
        f"try:\n    {inner}\n    return 'done'\nexcept BaseException as error:\n    return repr(error)[:80]"
    )


def spared() -> None:
    """A program that means well is judged as ever."""
    assert told(program("return self.port.get('key')")) == ("returned", ["get", ["key"]])


# --- What never happens: the kernel or the file system refuses, and the program goes on with the exception ---------
REFUSED = {
    "fork": ("os.fork()", "BlockingIOError(11"),
    "a thread": ("threading.Thread(target=print).start()", 'RuntimeError("can\'t start new thread")'),
    "another program": ("import subprocess; subprocess.run(['/bin/true'])", "BlockingIOError(11"),
    "a memfd": ("os.memfd_create('x')", "PermissionError(1"),
    "a socket on loopback": ("socket.create_connection(('127.0.0.1', 5432))", "PermissionError(1"),
    "a unix socket": ("socket.socket(socket.AF_UNIX).connect('\\0abstract')", "PermissionError(1"),
    "a pair of sockets": ("socket.socketpair()", "PermissionError(1"),
    "a file in /tmp": ("open('/tmp/x', 'w')", "FileNotFoundError(2"),
    "a file in /dev/shm": ("open('/dev/shm/x', 'w')", "FileNotFoundError(2"),
    "a file at the top": ("open('/x', 'w')", "OSError(30"),
    "a folder at the top": ("os.mkdir('/x')", "OSError(30"),
    "a link out of it": ("os.symlink('/proc/1/root', '/x')", "OSError(30"),
    "a file in /usr": ("open('/usr/x', 'w')", "OSError(30"),
    "a device": ("os.mknod('/dev/sda', 0o60600, 2048)", "PermissionError(1"),
    "passwords": ("open('/etc/shadow').read()", "FileNotFoundError(2"),
    "root's home": ("os.listdir('/root')", "FileNotFoundError(2"),
    "the project": (f"os.listdir({os.getcwd()!r})", "FileNotFoundError(2"),
    "the project's code": ("import exercises.catalogue.advisory.checks", "ModuleNotFoundError("),
    "the project's libraries": ("import django", "ModuleNotFoundError("),
    "the judge's process": (f"open('/proc/{os.getpid()}/environ').read()", "FileNotFoundError(2"),
    "a signal to the judge": (f"os.kill({os.getpid()}, 9)", "ProcessLookupError(3"),
    "a kernel setting": ("open('/proc/sys/kernel/core_pattern', 'w')", "OSError(30"),
    "more memory by raising a limit": (
        "import resource; resource.setrlimit(resource.RLIMIT_AS, (2**40, 2**40))",
        "ValueError('not allowed to raise maximum limit')",
    ),
    "more processes by raising a limit": (
        "import resource; resource.setrlimit(resource.RLIMIT_NPROC, (99, 99))",
        "ValueError('not allowed to raise maximum limit')",
    ),
    "memory in one process": ("x = bytearray(10**9)", "MemoryError()"),
    "descriptors without end": ("keep = [os.dup(0) for _ in range(99)]", "OSError(24"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_it_is_refused(what):
    body, error = REFUSED[what]
    kind, said = told(refusal(body))
    assert kind == "returned"
    assert said.startswith(error)
    spared()


SYSCALLS = {
    "ptrace": (101, 0),
    "unshare": (272, 0x10000000),
    "mount": (165, 0),
    "process_vm_readv": (310, 1),
    "bpf": (321, 0),
    "keyctl": (250, 0),
}


@pytest.mark.parametrize("call", SYSCALLS)
def test_a_bare_call_to_the_kernel_is_refused(call):
    number, argument = SYSCALLS[call]
    body = (
        f"libc = ctypes.CDLL(None, use_errno=True)\nreturn [libc.syscall({number}, {argument}), ctypes.get_errno()]"
    )
    assert told(program(body)) == ("returned", [-1, 1])
    spared()


def test_a_process_with_namespaces_of_its_own_is_refused():
    body = "libc = ctypes.CDLL(None, use_errno=True)\nreturn [libc.syscall(56, 0x10000011, 0), ctypes.get_errno()]"
    assert told(program(body)) == ("returned", [-1, 1])


# --- What can be seen in there: nothing of anybody ---
def test_the_environment_is_empty_their_own_and_their_parents(monkeypatch):
    monkeypatch.setenv("SECRET_KEY", "of-the-judge")
    body = """
seen = [sorted(os.environ)]
for who in ('self', os.getppid(), 1):
    try:
        seen.append(open(f'/proc/{who}/environ').read().replace(chr(0), ' '))
    except PermissionError:
        seen.append('')
return seen"""
    kind, seen = told(program(body))
    assert kind == "returned"
    assert "of-the-judge" not in json.dumps(seen)
    assert set(seen[0]) <= {"PYTHONHASHSEED", "PWD", "LC_CTYPE"}


def test_no_process_but_their_own_is_seen():
    kind, seen = told(program("return [pid for pid in os.listdir('/proc') if pid.isdigit()]"))
    assert (kind, len(seen)) == ("returned", 3)


def test_no_descriptor_but_their_own_pipes_is_open():
    kind, seen = told(
        program("return [os.readlink('/proc/self/fd/%s' % n) for n in os.listdir('/proc/self/fd')[:-1]]")
    )
    assert kind == "returned"
    assert {name.partition(":")[0] for name in seen} <= {"/dev/null", "pipe", "/proc/8/fd"}


def test_no_file_system_can_be_written():
    body = """
found = []
for line in open('/proc/mounts'):
    try:
        open(line.split()[1] + '/x', 'w')
        found.append(line)
    except OSError:
        pass
return found"""
    assert told(program(body)) == ("returned", [])


def test_nothing_of_a_check_is_in_their_process():
    body = """
import gc
frame, seen = sys._getframe(), []
while frame:
    seen.extend(frame.f_locals)
    frame = frame.f_back
return [name for name in seen if name in ('check', 'expected', 'known', 'oracle', 'result')]"""
    assert told(program(body)) == ("returned", [])


# --- What uses up: told as theirs, or left undecided ---
USING_UP = {
    "a busy loop": ("while True: pass", CPU),
    "a busy loop in a library": ("sum(iter(int, 1))", CPU),
    "a loop that asks": ("while True: self.port.get('key')", ASKS),
    "sleeping for ever": ("time.sleep(99)", WALL),
    "reading what never comes": ("os.read(os.pipe()[0], 1)", WALL),
    "a long answer": ("return 'x' * 5000", LONG),
    "a long question": ("self.port.get('x' * 5000)", LONG),
    "a line without end": ("while True: os.write(%d, b'x' * 4000)", LONG),
    "a deep answer": ("x = []\nfor _ in range(30): x = [x]\nreturn x", GARBLED),
    "leaving": ("os._exit(0)", ENDED),
    "leaving by exception": ("sys.exit(0)", ("failed", "Your program raised SystemExit in line 5: 0.")),
    "a null pointer": ("ctypes.string_at(0)", ENDED),
    "its own death": ("os.kill(os.getpid(), 9)", KILLED),
    "the death of the one above": ("os.kill(os.getppid(), 9)\ntime.sleep(9)", KILLED),
    "a loop that ignores its signal": (
        "import signal\nsignal.signal(signal.SIGXCPU, signal.SIG_IGN)\nwhile True: pass",
        KILLED,
    ),
    "a prompt": ("return input()", ("failed", "Your program raised EOFError in line 5: EOF when reading a line.")),
}
# Where in the inside's own code the pipes are: found as any program could find them.
PIPE = "[n for n in range(3, 32) if os.path.exists('/proc/self/fd/%d' % n)][1]"


@pytest.mark.parametrize("what", USING_UP)
def test_it_is_stopped_and_told(what):
    body, verdict = USING_UP[what]
    source = program(body.replace("%d", "pipe") if "%d" in body else body)
    if "%d" in body:
        source = source.replace("    def run(self):\n", f"    def run(self):\n        pipe = {PIPE}\n")
    assert told(source, limits=IMPATIENT if verdict == WALL else SMALL) == verdict
    spared()


def test_output_without_end_goes_nowhere():
    body = "for _ in range(2000): print('x' * 4000); print('x' * 4000, file=sys.stderr)\nreturn 'done'"
    assert told(program(body)) == ("returned", "done")


def test_the_last_call_of_many_may_take_too_long_and_only_that_one_is_undecided():
    source = program("self.n = getattr(self, 'n', 0) + 1\nif self.n == 3: time.sleep(99)\nreturn self.n")
    with sandboxed(source, "Answer", Limits(wall=0.5)) as made, made.start() as talk:
        assert [talk.call("run", [], answer) for _ in range(2)] == [1, 2]
        with pytest.raises(Exception, match="kept the judge waiting") as slow:
            talk.call("run", [], answer)
        assert type(slow.value).__name__ == "CouldNotDecide"


def test_a_fork_bomb_before_any_call_is_stopped():
    kind, said = told("import os\nwhile True: os.fork()\nclass Answer: pass")
    assert (kind, said) == (
        "failed",
        "Your program raised BlockingIOError in line 2: [Errno 11] Resource temporarily unavailable.",
    )
    spared()


def test_memory_in_many_copies_is_bounded_together_where_a_cgroup_can_be_written():
    """Elsewhere `doctor` says that it is not."""
    source = program("self.x = b'x' * (60 * 1024 ** 2)\nreturn len(self.x)")
    with sandboxed(source, "Answer", SMALL) as made:
        if not made.bound.folders:
            assert trial.UNBOUND in [finding.found for finding in doctor.sandbox()]
            return
        with made.start() as one, made.start() as other, pytest.raises(TheirsFailed, match=MEMORY):
            [talk.call("run", [], answer) for talk in (one, other, one)]  # the kernel chooses whose copy is killed
    spared()


# --- What is left when the judge itself dies ---
def test_a_killed_worker_takes_the_sandbox_with_it():
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        with sandboxed(program("time.sleep(99)"), "Answer", Limits(wall=60)) as made, made.start() as talk:
            os.write(write, str(made._all[0].wrap.process.pid).encode())
            talk.call("run", [], answer)
        os._exit(0)
    os.close(write)
    wrap = int(os.read(read, 100))
    os.close(read)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    assert wait_until(lambda: not psutil.pid_exists(wrap), 5)
    spared()
