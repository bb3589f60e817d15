"""The processes of one shop: what is said of the one that ended before the play did."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

PLAY = [sys.executable, "-c", "import time; time.sleep(60)"]
FALLS = [sys.executable, "-c", "print('box-a can not start: no lock server'); raise SystemExit(3)"]
KILLED = [sys.executable, "-c", "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"]
SCRIPT = """
import os, sys; from pathlib import Path; from marlow.tree import Tree
folder, play, box = Path(sys.argv[1]), eval(sys.argv[2]), eval(sys.argv[3])
tree = Tree(folder, play, dict(os.environ))
tree.add("box-a", box)
status = tree.run()
print(status, tree.last_words())
"""


@pytest.mark.parametrize(
    ("play", "box", "says"),
    [
        (PLAY, FALLS, ("box-a ended early, with status 3", "no lock server")),
        (KILLED, PLAY, (f"The play itself was ended by signal {signal.SIGKILL.value}.",)),
    ],
)
def test_the_last_words_are_those_of_whoever_ended_first(
    tmp_path: Path, play: list[str], box: list[str], says: tuple[str, ...]
) -> None:
    """The play that we end because a box fell is not the one to blame."""
    seen = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(tmp_path), repr(play), repr(box)],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=Path(__file__).resolve().parents[2],
    )
    assert seen.stdout.startswith("1 "), seen.stderr
    assert all(words in seen.stdout for words in says), seen.stdout
