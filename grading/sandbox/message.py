"""What the sandbox says: one JSON object a line, bounded, and taken for nothing but data."""

import json
import re
from math import isfinite
from typing import Any, NoReturn

from exercises.handed.checks import TheirsFailed
from grading.sandbox.limits import Limits

GARBLED = "Your program said something that is no message: leave the sandbox’s own pipes alone."
KINDS = {
    "hello": {"hello"},
    "read": {"read"},
    "ready": {"ready"},
    "missing": {"missing"},
    "ended": {"ended", "cpu"},
    "answer": {"answer"},
    "ask": {"ask", "arguments"},
    "raised": {"raised", "words", "line"},
}
# Addresses differ from run to run, and a verdict must not.
ADDRESS, ODD = re.compile(r"0x[0-9a-fA-F]+"), re.compile(r"[^\x20-\x7e\u00a0-\ud7ff\ue000-\uffff]+")


def parse(line: bytes, limits: Limits) -> tuple[str, dict[str, Any]]:
    """Its kind and itself. Raises TheirsFailed."""
    try:
        message = json.loads(line, object_pairs_hook=_once, parse_constant=_refuse, parse_float=_finite)
        kind = next(kind for kind, names in KINDS.items() if names == set(message))
        if not isinstance(message, dict) or not _sound(message, limits.deep):
            raise ValueError
        line.decode()
        json.dumps(message, ensure_ascii=False).encode()  # a lone surrogate is no text
    except (ValueError, TypeError, StopIteration, RecursionError) as garbled:
        raise TheirsFailed(GARBLED) from garbled
    return kind, message


def as_line(message: dict[str, Any]) -> bytes:
    return json.dumps(message, allow_nan=False).encode() + b"\n"


def what_it_raised(message: dict[str, Any]) -> str:
    """As a sentence for the student."""
    name, words, line = plain(message["raised"]), plain(message["words"]), message["line"]
    where = f" in line {line}" if isinstance(line, int) and 0 < line < 100_000 else ""
    return f"Your program raised {name or 'an exception'}{where}{': ' + words if words else ''}."


def plain(text: object) -> str:
    """Short, printable, and the same from run to run."""
    return ODD.sub(" ", ADDRESS.sub("0x…", str(text)[:200])).strip()


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(found := dict(pairs)) != len(pairs):
        raise ValueError("a name twice")
    return found


def _refuse(constant: str) -> NoReturn:
    raise ValueError(constant)


def _finite(text: str) -> float:
    if not isfinite(number := float(text)):
        raise ValueError(text)
    return number


def _sound(value: Any, deep: int) -> bool:
    """Not nested too deeply, and without a NUL character."""
    if isinstance(value, str):
        return "\x00" not in value
    if isinstance(value, dict):
        return deep > 0 and all(_sound(each, deep - 1) for pair in value.items() for each in pair)
    return not isinstance(value, list) or (deep > 0 and all(_sound(each, deep - 1) for each in value))
