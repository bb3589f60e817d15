"""The rules of the house are lints, and the lints are tested: each is shown one breach."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
BIN = Path(sys.executable).parent


@pytest.mark.parametrize(
    "line",
    [
        "import time\ntime.sleep(1)",
        "import time\ntime.monotonic()",
        "from datetime import UTC, datetime\ndatetime.now(UTC)",
        "from django.utils import timezone\ntimezone.now()",
        "import os\nos.environ['HOME']",
        "import os\nos.getenv('HOME')",
    ],
)
def test_time_and_environment_are_read_in_one_place_only(line: str) -> None:
    """A room that reads the clock or the environment by itself can't be played in virtual time."""
    checked = subprocess.run(
        [BIN / "ruff", "check", "--stdin-filename", "sweeper/breach.py", "-"],
        input=f'"""A breach."""\n\n{line}\n',
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert checked.returncode == 1
    assert "TID251" in checked.stdout


@pytest.mark.parametrize(
    ("room", "reaches_up"),
    [
        ("marlow/clock.py", "shop.models"),
        ("marlow/servers/redis.py", "sweeper.models"),
        ("shop/isbn.py", "sweeper.models"),
        ("shop/isbn.py", "exercises.models"),
        ("sweeper/slots.py", "exercises.models"),
        ("exercises/models.py", "grading.judge"),
        ("sweeper/slots.py", "marlow.settings"),
    ],
)
def test_no_room_imports_one_above_it(tmp_path: Path, room: str, reaches_up: str) -> None:
    """grading > exercises > sweeper > shop, the clock and the servers below all, the wiring imported by none."""
    rooms = ("marlow", "shop", "sweeper", "exercises", "grading", "pyproject.toml")
    subprocess.run(["cp", "-r", *(ROOT / name for name in rooms), tmp_path], check=True)
    assert _lint_imports(tmp_path).returncode == 0
    with (tmp_path / room).open("a") as file:
        file.write(f"\nimport {reaches_up}\n")
    broken = _lint_imports(tmp_path)
    assert broken.returncode == 1
    assert "BROKEN" in broken.stdout


def _lint_imports(folder: Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [BIN / "lint-imports", "--no-cache"], cwd=folder, capture_output=True, text=True, check=False
    )
