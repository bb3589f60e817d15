"""A command that is started anew when it ends by itself, as systemd or Compose would do it.

python -m marlow.again FILE COMMAND …

It is on a leash whose record is FILE: what a killed command leaves of its own is ended before the next one begins.
"""

import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from marlow.clock import monotonic, real_sleep
from marlow.servers.launcher import leashed

SAYS = "started anew: "  # what a line of ours begins with, so that `up` can tell it from the command's own
PAUSE, LONGEST = 2.0, 60.0  # real seconds before it is started anew; doubled each time it did not live for LONGEST
GRACE = 0.5  # real seconds between asking it to end and ending it: less than whoever asks us gives


def main(record: str, *command: str) -> int:
    """Until somebody asks for the end; then the command is asked too, and its exit status returned."""
    ending: list[int] = []

    def end(number: int, frame: Any) -> None:
        ending.append(number)
        child.terminate()

    line, wait = leashed(command, Path(record), grace=GRACE), PAUSE
    child, began = _begun(line)
    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGINT, end)
    while True:
        status = child.wait()
        if ending:
            return abs(status)
        wait = PAUSE if monotonic() - began >= LONGEST else wait
        print(f"{SAYS}it ended with status {status}, and is tried again in {wait:g} s", flush=True)
        real_sleep(wait)
        if ending:
            return abs(status)
        wait = min(2 * wait, LONGEST)
        child, began = _begun(line)


def _begun(line: Sequence[str]) -> tuple["subprocess.Popen[bytes]", float]:
    """In a group of its own: a leash that was killed with us would end nothing."""
    return subprocess.Popen(line, process_group=0), monotonic()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
