"""What is asked of a Redis: commands as its protocol has them, and the scripts."""

import hashlib
from collections.abc import Callable
from typing import Any, NamedTuple

from marlow.clock import Clock

# KEYS[1]: the lock's key; ARGV[1]: our value. 1 if the key was ours and is gone now, 0 if nothing was done.
COMPARE_AND_DELETE = """
if redis.call("get", KEYS[1]) == ARGV[1] then
    return redis.call("del", KEYS[1])
end
return 0
"""
# KEYS[1]: the lock's key; ARGV[1]: our value; ARGV[2]: milliseconds. 1 if the key was ours and lives so long from now
# on, 0 if nothing was done.
COMPARE_AND_EXPIRE = """
if redis.call("get", KEYS[1]) == ARGV[1] then
    return redis.call("pexpire", KEYS[1], ARGV[2])
end
return 0
"""


class Script(NamedTuple):
    text: str
    sha: str


class Question(NamedTuple):
    """A command, packed once for all servers; with a script, also how to ask a server that may not know it."""

    packed: bytes
    sha: str = ""
    in_full: Callable[[], bytes] = bytes


def script(text: str) -> Script:
    return Script(text, hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest())


DELETE_IF_EQUAL = script(COMPARE_AND_DELETE)
EXPIRE_IF_EQUAL = script(COMPARE_AND_EXPIRE)


def command(*words: str | int) -> Question:
    return Question(pack(*words))


def running(script: Script, key: str, *words: str | int) -> Question:
    """Run this script on one key, by its digest where the server knows it."""
    packed = pack("EVALSHA", script.sha, 1, key, *words)
    return Question(packed, script.sha, lambda: pack("EVAL", script.text, 1, key, *words))


def pack(*words: str | int) -> bytes:
    """A command as RESP has it: redis-py's own packing costs as much as asking two servers."""
    parts = [b"*%d\r\n" % len(words)]
    for word in words:
        raw = str(word).encode()
        parts.append(b"$%d\r\n%b\r\n" % (len(raw), raw))
    return b"".join(parts)


def milliseconds(clock: Clock, ttl: float) -> int:
    """A virtual duration as Redis takes it."""
    return max(1, round(clock.real(ttl) * 1000))


def text(answer: Any) -> str | None:
    """A key's value as it was told; None where that is nil, or nothing was told."""
    return answer.decode(errors="replace") if isinstance(answer, bytes) else None
