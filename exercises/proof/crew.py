"""A box process as whoever directs it sees it: told to sweep, stopped, continued, killed."""

import signal
import sys
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from marlow.servers.dialogue import Dialogue

READY_WITHIN = 30.0  # real seconds
ANSWERS_WITHIN = 30.0


class BoxProcess:
    """A box named `name`, its log in `folder`. `variables` are added to what it inherits; `inside` is put before its
    command, to start it in a network namespace. Everything that waits for it raises Silent.
    """

    def __init__(
        self, name: str, folder: Path, variables: Mapping[str, str] | None = None, inside: Sequence[str] = ()
    ) -> None:
        given = {**(variables or {}), "MARLOW_BOX": name}
        command = [*inside, "env", *(f"{variable}={value}" for variable, value in given.items())]
        self.name = name
        self.dialogue = Dialogue(name, [*command, sys.executable, "-m", "exercises.proof", "box"], folder)
        self.dialogue.hear(READY_WITHIN)

    def tell(self, settings: Mapping[str, Any], **order: Any) -> str:
        """Have it sweep; returns the message's id, and does not wait."""
        message = uuid.uuid4().hex
        self.dialogue.say({"message": message, "settings": settings, **order})
        return message

    def answer(self) -> dict[str, Any]:
        """Wait for what became of the sweep it was told to do: `settled`, or `error`."""
        return self.dialogue.hear(ANSWERS_WITHIN)

    def stop(self) -> None:
        self.dialogue.signal(signal.SIGSTOP)

    def go_on(self) -> None:
        self.dialogue.signal(signal.SIGCONT)

    def kill(self) -> None:
        self.dialogue.signal(signal.SIGKILL)
        self.dialogue.process.wait(10)
