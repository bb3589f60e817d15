"""Where checks run: a process of its own, since `django.db.connection` is the laboratory's while one is open.

    python -m grading.desk

It is started by a clerk, told nothing that it does not need, and lives from judging to judging with its laboratory
open. Lines of JSON, one question and its answer at a time:

    {"open": true}                                    {"open": true, "lacking", "together"}, or {"away": why}
    {"exercise", "answers", "check", "seed"}          {"say": words} …, then {"result": {…}}, or {"failed": why}
"""

import json
import os
import random
import resource
import sys
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, BinaryIO

import django

Message = dict[str, Any]


def main() -> None:
    """Until its clerk closes the pipe."""
    questions, answers = _pipes()
    django.setup()
    _bounded()
    room = _room(lambda words: _tell(answers, {"say": words}))
    for line in questions:
        _tell(answers, answer(json.loads(line), room))


def answer(question: Message, room: Any) -> Message:
    """What is told last of this question. The laboratory's own failures are told, and end nothing."""
    if "open" in question:
        return _opened(room)
    try:
        return _judged(question, room)
    except Exception as error:
        return {"failed": f"{type(error).__name__}: {error}"}


def _opened(room: Any) -> Message:
    """Whether checks can be run here. A laboratory whose server was started anew since is opened anew."""
    away = ""
    for _ in range(2):
        try:
            _look_in(room)
        except Exception as error:
            away = str(error)
        else:
            return {"open": True, **_sandbox()}
    return {"away": away}


@cache
def _sandbox() -> Message:
    """Whether programs can be run here (`lacking`: why not), and whether a cgroup bounds their memory: as this very
    process may. Once a desk: what changes it needs another worker.
    """
    from grading.sandbox import trial

    try:
        return {"lacking": trial.starts(), "together": trial.bounded_together()}
    except Exception as error:
        return {"lacking": f"{type(error).__name__}: {error}", "together": False}


def _look_in(room: Any) -> None:
    from django.db import connection

    with room.laboratory(), connection.cursor() as cursor:
        cursor.execute("select 1")


def _judged(question: Message, room: Any) -> Message:
    """One check. Whatever is left to chance in it comes from the seed, so that it comes out the same again."""
    from exercises.handed.answers import read
    from exercises.handed.exercise import exercise
    from grading.judge import judge
    from grading.talk import told

    found = exercise(question["exercise"])
    answers = read(found.answers, question["answers"])
    chosen = [check for check in found.checks if check.name == question["check"]]
    random.seed(question["seed"])
    ((_, result),) = judge(found, answers, room, chosen)
    return told(result)


def _room(say: Callable[[str], None]) -> Any:
    from exercises.scenarios.room import KeptLaboratory
    from grading.room import JudgesRoom

    return JudgesRoom(KeptLaboratory(), say)


def _pipes() -> tuple[Iterator[bytes], BinaryIO]:
    """The clerk's. Whatever else writes to standard output goes to the log instead."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    return iter(sys.stdin.buffer.readline, b""), answers


def _tell(answers: BinaryIO, message: Message) -> None:
    try:
        line = json.dumps(message, allow_nan=False)
    except (TypeError, ValueError) as unfit:
        line = json.dumps({"failed": f"The check said what is no JSON: {unfit}"})
    answers.write(line.encode() + b"\n")
    answers.flush()


def _bounded() -> None:
    """A check that asks for more memory than this gets none: it could not decide."""
    from django.conf import settings

    most = settings.GRADING_MEMORY * 1024**2
    resource.setrlimit(resource.RLIMIT_AS, (most, most))


if __name__ == "__main__":
    main()
