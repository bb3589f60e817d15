"""A process of ours that is spoken to in lines of JSON, on a leash."""

import json
import os
import queue
import subprocess
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from marlow.clock import wait_until
from marlow.servers.launcher import end_left_over, leashed, tail


class Silent(Exception):
    """The process said nothing in time, or ended; the sentence has the end of its log."""


class Dialogue:
    """Starts `command` at once; its errors go to `folder`/NAME.log. Ends with this process, however that goes."""

    def __init__(
        self, name: str, command: Sequence[str], folder: Path, environment: Mapping[str, str] | None = None
    ) -> None:
        self.name, self.record, self.log = name, folder / f"{name}.group", folder / f"{name}.log"
        end_left_over(self.record)
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                leashed(command, self.record),
                env=environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                start_new_session=True,
            )
        self.lines: queue.Queue[str] = queue.Queue()
        threading.Thread(target=self._listen, daemon=True).start()

    def say(self, words: Any) -> None:
        """Raises Silent when it has ended."""
        try:
            assert self.process.stdin is not None  # noqa: S101  it was opened as a pipe
            self.process.stdin.write(json.dumps(words) + "\n")
            self.process.stdin.flush()
        except BrokenPipeError as ended:
            raise self._silent("has ended") from ended

    def hear(self, seconds: float) -> dict[str, Any]:
        """Its next line. Raises Silent when there is none within so many real seconds."""
        try:
            line = self.lines.get(timeout=seconds)
        except queue.Empty as silent:
            raise self._silent(f"said nothing for {seconds:.0f} s") from silent
        if not line:
            raise self._silent("has ended")
        words: dict[str, Any] = json.loads(line)
        return words

    def spoke(self) -> bool:
        """Whether there is something to hear."""
        return not self.lines.empty()

    def alive(self) -> bool:
        return self.process.poll() is None

    def signal(self, number: int) -> None:
        """To its whole process group, past the leash."""
        wait_until(self.record.exists, 5)
        with suppress(FileNotFoundError, ProcessLookupError):
            os.killpg(int(self.record.read_text()), number)

    def end(self) -> None:
        """However it stands, it is gone afterwards."""
        self.process.terminate()
        self.process.wait()

    def _listen(self) -> None:
        """Hands on its lines, and an empty one when it has ended."""
        for line in self.process.stdout or ():
            self.lines.put(line)
        self.lines.put("")

    def _silent(self, what: str) -> Silent:
        return Silent(f"{self.name} {what}. The end of its log:\n{tail(self.log)}")
