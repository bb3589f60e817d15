"""The ports over real servers."""

from typing import Any

import redis
from django.db import DatabaseError, InterfaceError, connections
from redis.backoff import NoBackoff
from redis.retry import Retry

from marlow.clock import Clock
from sweeper.locks.base import LockUnavailable

# KEYS[1]: the lock's key; ARGV[1]: our value. 1 if the key was ours and is gone now, 0 if nothing was done.
COMPARE_AND_DELETE = """
if redis.call("get", KEYS[1]) == ARGV[1] then
    return redis.call("del", KEYS[1])
end
return 0
"""


class LiveRedis:
    """One Redis, asked once: a client that retries by itself can answer "taken" about our own key.

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
        self.script = self.client.register_script(COMPARE_AND_DELETE)

    def set_if_absent(self, key: str, value: str, ttl: float) -> bool:
        milliseconds = max(1, round(self.clock.real(ttl) * 1000))
        return bool(self._ask(lambda: self.client.set(key, value, nx=True, px=milliseconds)))

    def get(self, key: str) -> str | None:
        value = self._ask(lambda: self.client.get(key))
        return None if value is None else str(value)

    def delete(self, key: str) -> bool:
        return bool(self._ask(lambda: self.client.delete(key)))

    def delete_if_equal(self, key: str, value: str) -> bool:
        return bool(self._ask(lambda: self.script(keys=[key], args=[value])))

    def close(self) -> None:
        self.client.close()

    def _ask(self, question: Any) -> Any:
        try:
            return question()
        except redis.RedisError as error:
            raise LockUnavailable(f"The lock's Redis did not answer: {error}") from error


class LivePostgres:
    """Django's own connection: the session that locks is the session that works."""

    def __init__(self, alias: str = "default") -> None:
        self.alias = alias

    def row(self, sql: str, params: tuple[Any, ...] = ()) -> tuple[Any, ...] | None:
        try:
            with connections[self.alias].cursor() as cursor:
                cursor.execute(sql, params)
                row: tuple[Any, ...] | None = cursor.fetchone()
                return row
        except (DatabaseError, InterfaceError) as error:
            raise LockUnavailable(f"Postgres did not answer: {error}") from error
