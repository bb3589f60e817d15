"""The process groups of servers under a folder, and what those servers need installed."""

from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from marlow.servers.launcher import ServerError


def demand(find: Callable[[], object]) -> None:
    """Skip where a system package is missing, saying what to install: CI installs it, and a skip there fails."""
    try:
        find()
    except ServerError as missing:
        pytest.skip(str(missing))


def groups_in(folder: Path) -> list[int]:
    return [int(path.read_text()) for path in folder.rglob("*.group")]


def gone(groups: list[int]) -> bool:
    return not any(psutil.pid_exists(group) and psutil.Process(group).status() != "zombie" for group in groups)
