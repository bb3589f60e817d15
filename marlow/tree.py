"""The processes of one shop: provider, two boxes, web, and the play that runs before them, as one tree (honcho)."""

import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from shlex import join
from typing import Any

from honcho.manager import Manager

from marlow.again import SAYS
from marlow.clock import real_sleep
from marlow.servers.launcher import end_left_over, leashed, tail

GRACE = 1.0  # real seconds between asking a process of the demo to end and ending it


class LogFiles:
    """A honcho printer that keeps the lines of each process in a file of its own; a new beginning is shown too."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.width = 0

    def write(self, message: Any) -> None:
        data = message.data if isinstance(message.data, bytes) else message.data.encode()
        with (self.folder / f"{message.name}.log").open("ab") as file:
            file.write(data)
        if data.startswith(SAYS.encode()):
            print(f"{message.name}: {data.decode(errors='replace').strip()}", file=sys.stderr, flush=True)


class Tree(Manager):  # type: ignore[misc]  # honcho ships no types
    """All processes live and end together; when `play` ends, so do they.

    Each is on a leash, so that not even kill -9 of this process leaves one behind.
    """

    def __init__(self, folder: Path, play: Sequence[str], environment: Mapping[str, str]) -> None:
        super().__init__(printer=LogFiles(folder))
        self.folder, self.command, self.environment = folder, list(play), dict(environment)
        self.play: subprocess.Popen[bytes] | None = None
        self.interrupted = False
        self.early = ""  # the process that ended before the play did

    def add(self, name: str, command: Sequence[str], *, urgent: bool = False, **extra: str) -> None:
        """A process by its name, with variables of its own; `urgent` ones run before other work where that may be."""
        (self.folder / f"{name}.log").write_bytes(b"")
        record = self.folder / f"{name}.group"
        end_left_over(record)
        line = join(leashed(command, record, grace=GRACE, urgent=urgent))
        process = self.add_process(name, f"exec {line}", env=dict(self.environment))
        process.env.update(extra)

    def run(self) -> int:
        """Start everything, play, stop everything; the exit status of the play, or 1 if a process ended early."""
        self.loop()
        if self.early:
            return 1
        if self.interrupted:
            return 130
        status = 1 if self.play is None else self.play.wait()
        return status if status in (0, 1) else 1

    def terminate(self) -> None:
        """Called by honcho for a signal and for a process that ended: the play ends first, then the rest."""
        if self.play is None or self.play.poll() is None:
            self.early = next((name for name, process in self._processes.items() if "returncode" in process), "")
            self.interrupted = not self.early
            if self.play is not None:
                self.play.terminate()
        else:
            super().terminate()

    def last_words(self) -> str:
        """Which process ended by itself, and the end of its log; empty when none did."""
        if self.early:  # first: the play was then ended by us
            status = self._processes[self.early].get("returncode")
            return f"{self.early} ended early, with status {status}:\n{tail(self.folder / f'{self.early}.log')}"
        if (
            self.play is not None
            and self.play.poll() is not None
            and self.play.returncode < 0
            and not self.interrupted
        ):
            return f"The play itself was ended by signal {-self.play.returncode}."
        return ""

    def _start(self) -> None:
        super()._start()
        threading.Thread(target=self._direct, daemon=True).start()

    def _direct(self) -> None:
        """Play once every process has its number, and end the tree with the play."""
        while not self._all_started():
            real_sleep(0.02)
        if not (self.interrupted or self.early):
            self.play = subprocess.Popen(self.command, env=self.environment)
            self.play.wait()
        super().terminate()


def manage(*words: str) -> list[str]:
    """A command line of ours, run by this Python."""
    return [sys.executable, str(Path(__file__).resolve().parent.parent / "manage.py"), *words]
