"""A student's Python in bubblewrap: one port call a message, and everything that decides stays out here."""

from collections.abc import Iterator
from contextlib import contextmanager

from exercises.handed.checks import CouldNotDecide, Program


@contextmanager
def sandboxed(source: str, name: str) -> Iterator[Program]:
    """The class of this name in this source. Raises TheirsFailed, CouldNotDecide."""
    raise CouldNotDecide("There is no sandbox yet.")
    yield  # type: ignore[unreachable]
