"""A command that is killed is started anew; asked to end, it ends for good."""

import os
import signal
import subprocess
import sys

from marlow.clock import wait_until

CHILD = "import os, time; print(os.getpid(), flush=True); time.sleep(60)"


def test_a_killed_command_is_started_anew_and_ends_with_whoever_is_asked_to():
    command = [sys.executable, "-m", "marlow.again", sys.executable, "-c", CHILD]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as again:
        try:
            first = int(again.stdout.readline())
            os.kill(first, signal.SIGKILL)
            assert "ended with status -9" in again.stdout.readline()
            second = int(again.stdout.readline())
            assert second != first
            again.terminate()
            assert again.wait(10) == signal.SIGTERM
            assert wait_until(lambda: not os.path.exists(f"/proc/{second}"), 5)
        finally:
            again.kill()
