"""Programs in the sandbox, with small limits: what takes seconds there takes tenths here."""

import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from exercises.handed.checks import CouldNotDecide, TheirsFailed
from grading.sandbox.cgroup import PREFIX, ROOT
from grading.sandbox.limits import Limits
from grading.sandbox.python import sandboxed

SMALL = Limits(cpu=1, wall=30.0, memory=192 * 1024**2, total=96 * 1024**2, questions=50, message=4096)
IMPATIENT = replace(SMALL, wall=1.0)  # for programs that wait: on a busy machine a second of CPU time takes many


def answer(name: str, arguments: list[Any]) -> Any:
    return [name, arguments]


def told(source: str, call: str = "run", limits: Limits = SMALL) -> tuple[str, Any]:
    """What becomes of a program with a class `Answer`: what it returned, or how it failed."""
    try:
        with sandboxed(source, "Answer", limits) as program, program.start() as talk:
            return "returned", talk.call(call, [], answer)
    except TheirsFailed as failed:
        return "failed", str(failed)
    except CouldNotDecide as undecided:
        return "could not decide", str(undecided)


@pytest.fixture
def nothing_left() -> Iterator[None]:
    """Neither a process nor a cgroup of this one's, and no descriptor."""
    before, there = descriptors(), set(psutil.Process().children(recursive=True))
    yield
    assert not [child.name() for child in psutil.Process().children(recursive=True) if child not in there]
    assert not [folder for folder in cgroups() if folder.name.startswith(f"{PREFIX}{os.getpid()}-")]
    assert descriptors() == before


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def cgroups() -> list[Path]:
    return [folder for parent in (ROOT, ROOT / "memory", ROOT / "pids") for folder in parent.glob(f"{PREFIX}*")]


Told = Callable[..., tuple[str, Any]]
