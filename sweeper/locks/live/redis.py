"""One Redis, asked once."""

from collections.abc import Callable
from typing import TypeVar

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from marlow.clock import Clock
from sweeper.locks.ports import LockUnavailable

Answer = TypeVar("Answer")

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


def milliseconds(clock: Clock, ttl: float) -> int:
    """A virtual duration as Redis takes it."""
    return max(1, round(clock.real(ttl) * 1000))


class LiveRedis:
    """A client that retries by itself can answer "taken" about our own key, so this one does not.

    `timeout` is in real seconds, for the network is not on the shop's clock.
    """

    def __init__(self, url: str, clock: Clock, timeout: float = 2.0) -> None:
        self.clock = clock
        self.client = redis.Redis.from_url(
            url,
            decode_responses=True,
            socket_timeout=timeout,
            socket_connect_timeout=timeout,
            retry=Retry(NoBackoff(), 0),
        )
        self.comparing_delete = self.client.register_script(COMPARE_AND_DELETE)
        self.comparing_expire = self.client.register_script(COMPARE_AND_EXPIRE)

    def set_if_absent(self, key: str, value: str, ttl: float) -> bool:
        lives = milliseconds(self.clock, ttl)
        return bool(self._ask(lambda: self.client.set(key, value, nx=True, px=lives)))

    def get(self, key: str) -> str | None:
        value = self._ask(lambda: self.client.get(key))
        return None if value is None else str(value)

    def delete(self, key: str) -> bool:
        return bool(self._ask(lambda: self.client.delete(key)))

    def delete_if_equal(self, key: str, value: str) -> bool:
        return bool(self._ask(lambda: self.comparing_delete(keys=[key], args=[value])))

    def expire_if_equal(self, key: str, value: str, ttl: float) -> bool:
        lives = milliseconds(self.clock, ttl)
        return bool(self._ask(lambda: self.comparing_expire(keys=[key], args=[value, lives])))

    def close(self) -> None:
        self.client.close()

    def _ask(self, question: Callable[[], Answer]) -> Answer:
        try:
            return question()
        except redis.RedisError as error:
            raise LockUnavailable(f"The lock's Redis did not answer: {error}") from error
