"""`lab explore --workers`: real Celery workers over a real broker, and one of them killed."""

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from marlow.clock import real_sleep, wait_until
from marlow.settings import environment_for
from marlow.tree import manage

WELL_AT_WORK = 4.0  # real seconds from a worker's birth
WORDS = ("lab", "explore", "--lock", "none", "--orders", "1", "--faults", "1", "--kinds", "crash,lands", "--json")


def environment(folder: Path) -> dict[str, str]:
    return environment_for(MARLOW_DEMO="1", MARLOW_STATE_DIR=str(folder))


def told(output: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(output.strip().splitlines()[-1])
    return found


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What one process finds by itself."""
    done = subprocess.run(
        manage(*WORDS), env=environment(tmp_path_factory.mktemp("alone")), capture_output=True, text=True, check=False
    )
    assert done.returncode == 1, done.stderr
    return told(done.stdout)


def kinds_of(found: dict[str, Any]) -> set[tuple[str, ...]]:
    return {tuple(failure["what"]) for failure in found["failures"]}


def test_two_workers_find_what_one_process_finds(tmp_path: Path, alone: dict[str, Any]) -> None:
    """And the failure they tell is as short."""
    done = subprocess.run(
        manage(*WORDS, "--workers", "2"), env=environment(tmp_path), capture_output=True, text=True, check=False
    )
    assert done.returncode == 1, done.stderr
    found = told(done.stdout)
    assert kinds_of(found) == kinds_of(alone)
    assert found["bounds"] == alone["bounds"]
    assert found["shortest"]["schedule"] == alone["shortest"]["schedule"]


@pytest.mark.slow
@pytest.mark.live
def test_a_worker_that_is_killed_loses_nothing(tmp_path: Path, alone: dict[str, Any]) -> None:
    """kill -9 at any moment: what it had in its hands is explored again by the other one."""
    record = tmp_path / "lab" / "worker-1.group"
    with subprocess.Popen(
        manage(*WORDS, "--workers", "2"),
        env=environment(tmp_path),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as merging:
        assert wait_until(record.exists, 60), "no worker came up"
        real_sleep(WELL_AT_WORK)
        os.killpg(int(record.read_text().split()[0]), signal.SIGKILL)
        output, _ = merging.communicate(timeout=240)
    assert merging.returncode == 1
    assert kinds_of(told(output)) == kinds_of(alone)


def test_it_needs_workers_that_can_be(tmp_path: Path) -> None:
    """With what to do, and at once."""
    done = subprocess.run(
        manage(*WORDS, "--workers", "0"), env=environment(tmp_path), capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "take from 1 to" in done.stderr
