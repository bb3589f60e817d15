"""A clerk's talk with its desk: the process, its pipes, and how long it is waited for."""

import json
import os
import select
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from exercises.handed.checks import Check, Evidence, Outcome, Result
from marlow.clock import monotonic
from marlow.servers.launcher import end_left_over, leashed

Message = dict[str, Any]
DESK = (sys.executable, "-m", "grading.desk")
LONGEST = 16 * 1024**2  # bytes of one line
STARTS_IN = 60.0  # real seconds until a new desk answers: a laboratory is set up meanwhile
GRACE = 0.1  # real seconds that it has to end by itself
NOT_KEPT = str.maketrans({"\x00": "�"})


class DeskFailed(Exception):
    """It ended, said what is no message, or kept its clerk waiting. Says which."""


class Desk:
    """One running. Whatever goes wrong with it, it is done for: `end` it and start another."""

    def __init__(self, command: Sequence[str], record: Path, folder: Path, environment: Mapping[str, str]) -> None:
        end_left_over(record)
        self._rest = b""
        self.process = subprocess.Popen(
            leashed(command, record, grace=GRACE),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=dict(environment),
            cwd=folder,
        )

    def ask(self, question: Message, seconds: float, every: float, hear: Callable[[str | None], None]) -> Message:
        """Its last word on this. `hear` is told what it says meanwhile, and None every so often (real seconds).

        Raises DeskFailed, and what `hear` raises.
        """
        self._send(question)
        ends = monotonic() + seconds
        while True:
            line = self._line(min(every, ends - monotonic()))
            if line is None:
                if monotonic() >= ends:
                    raise DeskFailed(f"It was stopped after {seconds:g} s of the clock.")
                hear(None)
                continue
            message = parse(line)
            if "say" not in message:
                return message
            hear(str(message["say"]))

    def end(self) -> None:
        """With everything that it started."""
        self.process.terminate()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                with suppress(OSError):  # what was still to be sent
                    pipe.close()

    def _send(self, question: Message) -> None:
        assert self.process.stdin is not None  # noqa: S101  a pipe was asked for
        try:
            self.process.stdin.write(json.dumps(question).encode() + b"\n")
            self.process.stdin.flush()
        except OSError as gone:
            raise DeskFailed("The judging process ended.") from gone

    def _line(self, seconds: float) -> bytes | None:
        """The next one; None where there is none within these seconds."""
        assert self.process.stdout is not None  # noqa: S101  likewise
        ends = monotonic() + seconds
        while b"\n" not in self._rest:
            ready, _, _ = select.select([self.process.stdout], [], [], max(0.0, ends - monotonic()))
            if not ready:
                return None
            more = os.read(self.process.stdout.fileno(), 65536)
            if not more:
                raise DeskFailed("The judging process ended in the middle of it.")
            self._rest += more
            if len(self._rest) > LONGEST:
                raise DeskFailed("The judging process said more than is read.")
        line, _, self._rest = self._rest.partition(b"\n")
        return line


def result_in(said: Message, check: Check) -> Result:
    """What the desk says of a check. Raises DeskFailed where it is none."""
    if "failed" in said:
        raise DeskFailed(f"The check broke off: {said['failed']}")
    try:
        told = said["result"]
        evidence = Evidence(**{**told["evidence"], "wrong": tuple(told["evidence"]["wrong"])})
        result = Result(Outcome(told["outcome"]), told["sentence"], told["points"], evidence)
    except (KeyError, TypeError, ValueError) as garbled:
        raise DeskFailed("The judging process said what is no result.") from garbled
    sound = type(result.points) is int and isinstance(result.sentence, str) and isinstance(evidence.text, str)
    if not sound or not 0 <= result.points <= check.points:
        raise DeskFailed("The judging process said what is no result.")
    return result


def told(result: Result) -> Message:
    """As `result_in` reads it."""
    return {
        "result": {
            "outcome": result.outcome.value,
            "sentence": result.sentence,
            "points": result.points,
            "evidence": result.evidence.as_json(),
        }
    }


def parse(line: bytes) -> Message:
    """With nothing in it that Postgres would not keep. Raises DeskFailed."""
    try:
        found = json.loads(line)
    except (ValueError, RecursionError) as garbled:
        raise DeskFailed("The judging process said what is no message.") from garbled
    if not isinstance(found, dict):
        raise DeskFailed("The judging process said what is no message.")
    kept: Message = _kept(found)
    return kept


def _kept(value: Any) -> Any:
    if isinstance(value, str):
        return value.translate(NOT_KEPT).encode("utf-8", "replace").decode()
    if isinstance(value, list):
        return [_kept(one) for one in value]
    if isinstance(value, dict):
        return {_kept(name): _kept(one) for name, one in value.items()}
    return value
