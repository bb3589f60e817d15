"""A command that is killed is started anew; asked to end, it ends for good."""

import os
import signal
import subprocess
import sys
from pathlib import Path

from marlow.clock import wait_until

CHILD = "import os, time; print(os.getpid(), flush=True); time.sleep(60)"


def test_a_killed_command_is_started_anew_and_ends_with_whoever_is_asked_to(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "marlow.again", str(tmp_path / "group"), sys.executable, "-c", CHILD]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as again:
        try:
            first = int(again.stdout.readline())
            os.kill(first, signal.SIGKILL)
            assert "it ended with status 137, and is tried again in 2 s" in again.stdout.readline()
            second = int(again.stdout.readline())
            assert second != first
            os.kill(second, signal.SIGKILL)
            assert "tried again in 4 s" in again.stdout.readline()
            third = int(again.stdout.readline())
            again.terminate()
            assert again.wait(10) == 128 + signal.SIGTERM
            assert wait_until(lambda: not os.path.exists(f"/proc/{third}"), 5)
        finally:
            again.kill()
