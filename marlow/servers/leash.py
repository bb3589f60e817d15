"""Run a command that must not outlive the process that asked for it.

`leash.py --watch PID --record FILE -- COMMAND…` starts the command in a process group of its own and waits. When the
watched process is gone, however it went (kill -9 included), or when the leash itself is told to stop, the command
gets the stop signal, the grace in real seconds, and then its whole group is killed. The group's id stands in FILE
while it may be alive. Stands on the standard library alone.
"""

import argparse
import contextlib
import os
import select
import signal
import subprocess
import sys
from pathlib import Path


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--watch", type=int, required=True, help="process id whose end ends the command")
    parser.add_argument("--record", type=Path, required=True, help="file that names the command's process group")
    parser.add_argument("--stop", default="SIGTERM", help="signal that asks the command to stop")
    parser.add_argument("--grace", type=float, default=3.0, help="real seconds between asking and killing")
    parser.add_argument("--urgent", action="store_true", help="run before other work, where we may ask for that")
    parser.add_argument("command", nargs="+")
    options = parser.parse_args()

    told, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake)
    for each in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(each, lambda number, frame: None)  # the wakeup descriptor tells the loop
    if options.urgent:
        _go_first()
    child = subprocess.Popen(options.command, process_group=0)
    options.record.write_text(str(child.pid))
    _wait_for_any(child, options.watch, told)
    if child.poll() is None:
        child.send_signal(getattr(signal, options.stop))
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(options.grace)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    options.record.unlink(missing_ok=True)
    code = child.wait()
    return code if code >= 0 else 128 - code


def _go_first() -> None:
    """Ten nice levels up, for the process and for its session's group; only root may, and others go on without."""
    with contextlib.suppress(OSError):
        os.nice(-10)
        Path("/proc/self/autogroup").write_text("-10")


def _wait_for_any(child: "subprocess.Popen[bytes]", watched: int, told: int) -> None:
    """Return when the child has ended, the watched process is gone, or a signal asked us to stop."""
    descriptors, every = [told], 0.25
    if hasattr(os, "pidfd_open"):
        try:
            descriptors += [os.pidfd_open(child.pid), os.pidfd_open(watched)]
            every = 60.0
        except ProcessLookupError:
            return
        except OSError:  # an old kernel: look every quarter of a second instead
            descriptors = [told]
    while not select.select(descriptors, [], [], every)[0]:
        if child.poll() is not None or not _alive(watched):
            return


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


if __name__ == "__main__":
    sys.exit(main())
