"""How often the live Wednesday comes out as the lesson's table says: python -m bench.evenings [evenings] [loops].

Plays `manage.py up --once --json` so many times, as the shop that shipped, beside so many processes that do nothing
but keep the processors busy, and prints what each came to. The floor is the table: 2, 2, 1, every time.
"""

import json
import subprocess
import sys
import tempfile
from collections import Counter

from marlow.clock import monotonic

EXPECTED = (2, 2, 1)
KEYS = ("phantom", "double_settles", "foreign_deletes")


def main(evenings: int, loops: int) -> int:
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(loops)]
    seen: Counter[tuple[int, ...]] = Counter()
    try:
        for evening in range(1, evenings + 1):
            began = monotonic()
            seen[counts := play()] += 1
            second = "as the table" if counts == EXPECTED else "OTHERWISE"
            print(f"{evening:3} {counts} {second}, {monotonic() - began:.1f} s", flush=True)
    finally:
        for process in busy:
            process.kill()
    print(f"{seen[EXPECTED]} of {evenings} as the table, beside {loops} busy loops")
    return 0 if seen[EXPECTED] == evenings else 1


def play() -> tuple[int, ...]:
    with tempfile.TemporaryDirectory() as folder:
        played = subprocess.run(
            ["env", f"MARLOW_STATE_DIR={folder}", sys.executable, "manage.py", "up", "--once", "--json"],
            capture_output=True,
            text=True,
            check=True,
        )
    verdict = json.loads(played.stdout.splitlines()[-1])
    return tuple(verdict[key] for key in KEYS)


if __name__ == "__main__":
    sys.exit(main(*(int(word) for word in [*sys.argv[1:], *("20", "2")[len(sys.argv) - 1 :]])))
