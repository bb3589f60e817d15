"""A bound on the memory and the processes of all lanes of a program together: rlimits are per process.

Only where a cgroup can be written, version 1 or 2; elsewhere the sandbox does without, and `doctor` says so.
"""

import os
from collections.abc import Sequence
from contextlib import suppress
from itertools import count
from pathlib import Path

from grading.sandbox.limits import Limits
from marlow.clock import wait_until

ROOT = Path("/sys/fs/cgroup")
PREFIX = "marlow-"
DYING = 2.0  # real seconds that killed processes are given to be gone
_numbers = count(1)


class Cgroup:
    """`folders`: none where nothing could be written."""

    def __init__(self, folders: Sequence[Path]) -> None:
        self.folders = folders

    def take(self, pid: int) -> None:
        """This process and all that it will start."""
        for folder in self.folders:
            (folder / "cgroup.procs").write_text(str(pid))

    def out_of_memory(self) -> int:
        """How often somebody in here was killed for want of memory."""
        for folder in self.folders:
            for name in ("memory.oom_control", "memory.events"):
                with suppress(OSError, StopIteration, ValueError):
                    lines = (folder / name).read_text().splitlines()
                    return int(next(line for line in lines if line.startswith("oom_kill ")).split()[1])
        return 0

    def close(self) -> None:
        """Kill whoever is left, and take the folders away. One that can't be is swept up by the next."""
        wait_until(lambda: all(_gone(folder) for folder in self.folders), DYING)


def _gone(folder: Path) -> bool:
    with suppress(OSError):
        for pid in (folder / "cgroup.procs").read_text().split():
            os.kill(int(pid), 9)
    with suppress(OSError):
        folder.rmdir()
    return not folder.exists()


def cgroup(limits: Limits) -> Cgroup:
    """A new one, bounded; or one that bounds nothing."""
    sweep()
    name = f"{PREFIX}{os.getpid()}-{next(_numbers)}"
    many = str(limits.lanes * (limits.processes + 2))
    wanted = (
        [(ROOT / name, {"memory.max": str(limits.total), "memory.swap.max": "0", "pids.max": many})]
        if (ROOT / "cgroup.controllers").exists()
        else [
            (ROOT / "memory" / name, {"memory.limit_in_bytes": str(limits.total)}),
            (ROOT / "pids" / name, {"pids.max": many}),
        ]
    )
    made: list[Path] = []
    for folder, bounds in wanted:
        with suppress(OSError):
            folder.mkdir()
            made.append(folder)
            for file, bound in bounds.items():
                if file != "memory.swap.max" or (folder / file).exists():
                    (folder / file).write_text(bound)
            continue
        Cgroup(made).close()  # half a bound would be taken for a whole one
        return Cgroup(())
    return Cgroup(made)


def sweep() -> None:
    """Take away what killed workers left."""
    for parent in (ROOT, ROOT / "memory", ROOT / "pids"):
        for folder in parent.glob(f"{PREFIX}*-*"):
            pid = folder.name.removeprefix(PREFIX).partition("-")[0]
            if pid.isdigit() and not Path(f"/proc/{pid}").exists():
                with suppress(OSError):
                    folder.rmdir()
