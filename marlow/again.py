"""A command that is started anew when it ends by itself, as systemd or Compose would do it.

python -m marlow.again COMMAND …
"""

import signal
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

from marlow.clock import real_now, real_sleep

PAUSE = 2.0  # real seconds before it is started anew


def main(command: Sequence[str]) -> int:
    """Until somebody asks for the end; then the command is asked too, and its exit status returned."""
    ending: list[int] = []

    def end(number: int, frame: Any) -> None:
        ending.append(number)
        child.terminate()

    child = subprocess.Popen(command)
    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGINT, end)
    while True:
        status = child.wait()
        if ending:
            return abs(status)
        print(f"{real_now():%H:%M:%S} ended with status {status}; started anew in {PAUSE:g} s", flush=True)
        real_sleep(PAUSE)
        if ending:
            return abs(status)
        child = subprocess.Popen(command)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
