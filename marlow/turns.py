"""One command at a time in one state folder."""

import contextlib
import fcntl
from collections.abc import Iterator
from pathlib import Path

from marlow.servers.launcher import ServerError


@contextlib.contextmanager
def alone(folder: Path, command: str) -> Iterator[None]:
    """Raises ServerError while another process is in here. The lock is the kernel's and goes with the process."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as unusable:
        raise ServerError(f"{folder} can't be made ({unusable.strerror}): set MARLOW_STATE_DIR.") from unusable
    with (folder / "turn.lock").open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as taken:
            raise ServerError(
                f"Another `{command}` runs here: end it with Ctrl-C, or give this one its own MARLOW_STATE_DIR."
            ) from taken
        yield
