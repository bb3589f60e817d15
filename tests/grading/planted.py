"""An exercise whose checks misbehave as they are told to by the answer, known to the tests and to their desks."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from exercises import catalogue as package

ANSWERS = '''
"""What the check does."""

from exercises.handed.answers import Answers as Base


class Answers(Base):
    does: str
'''
CHECKS = '''
"""A check that does what it is told, and one after it."""

import os
import random
import subprocess
import sys
import time

from exercises.handed.checks import Check, CouldNotDecide, Evidence, Result, Outcome

VERSION, PLACE = 4, 901


def act(answers, room):
    match answers.does:
        case "die":
            os._exit(9)
        case "leave a child and die":
            subprocess.Popen([sys.executable, "-c", "import time; time.sleep(300)  # left behind"])
            os._exit(9)
        case "never end":
            while True:
                time.sleep(0.05)
        case "take all memory":
            bytearray(3 * 1024**3)
        case "say what is no JSON":
            return CHECKS[0].passed("Well.", Evidence("Well.", verdict={"share": float("nan")}))
        case "print":
            print('{"result": {"outcome": "passed", "sentence": "mine", "points": 3, "evidence": {}}}', flush=True)
        case "could not decide":
            raise CouldNotDecide("The lights are out.")
        case "say what Postgres keeps not":
            return CHECKS[0].passed("a\\x00b\\ud800c", Evidence("\\x00"))
        case "talk":
            for words in range(200):
                room.say(f"the {words}th")
                time.sleep(0.01)
    return CHECKS[0].passed("Well.", Evidence(f"drawn: {random.random()}"))


def after(answers, room):
    return CHECKS[1].passed("After it.", Evidence("after"))


CHECKS = [Check("act", "The act", 3, act), Check("after", "What comes after", 2, after)]
'''


@contextmanager
def planted(folder: Path) -> Iterator[list[str]]:
    """The exercise `acting`; and the command of a desk that knows it."""
    there = folder / "acting"
    there.mkdir()
    for name, text in (("__init__.py", ""), ("answers.py", ANSWERS), ("checks.py", CHECKS)):
        (there / name).write_text(text)
    (there / "statement.md").write_text("# Acting\n")
    kept, package.__path__ = package.__path__, [*package.__path__, str(folder)]
    code = (
        f"from exercises import catalogue; catalogue.__path__.append({str(folder)!r}); "
        "from grading import desk; desk.main()"
    )
    try:
        yield [sys.executable, "-c", code]
    finally:
        package.__path__ = kept
        forget()


def forget() -> None:
    """What was read of its folder is read anew."""
    for name in [name for name in sys.modules if name.startswith(f"{package.__name__}.acting")]:
        del sys.modules[name]
