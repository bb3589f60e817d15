"""The lock that only saves work, on a real Redis: one of many, the next after the ttl, and everybody without it."""

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.conf import settings as live_settings
from pytest_django import Settings
from redis import Redis

from marlow.clock import RealClock, wait_until
from marlow.servers.redis import EmbeddedRedis
from sweeper.checks import sweeper_settings
from sweeper.locks import LOCKS
from sweeper.locks.base import Lease, Lock
from sweeper.locks.efficiency import EfficiencyLock, Probably, Turn
from sweeper.locks.live import LiveRedis
from tests.fakes import Boxes

PODS = 12
LONG = 60.0  # longer than any test


@pytest.fixture
def redis() -> Iterator[LiveRedis]:
    with Redis.from_url(live_settings.LOCK_REDIS_URL) as client:
        client.flushdb()
    redis = LiveRedis(live_settings.LOCK_REDIS_URL, RealClock())
    yield redis
    redis.close()


def lock_over(redis: LiveRedis) -> EfficiencyLock:
    return EfficiencyLock(redis, lambda: uuid.uuid4().hex)


def test_one_of_many_callers_is_told_to_go_ahead(redis: LiveRedis) -> None:
    """Twelve pods ask at once; one is probably first, and eleven are spared the work."""
    lock = lock_over(redis)
    with Boxes(PODS) as pods:
        turns: list[Turn] = pods.run(*[lambda: lock.turn("front page", LONG)] * PODS)
    assert [turn.probably for turn in turns].count(Probably.FIRST) == 1
    assert [turn.probably for turn in turns].count(Probably.SOMEBODY_ELSES) == PODS - 1
    assert sum(turn.go_ahead for turn in turns) == 1
    assert all(turn.asked for turn in turns)


def test_names_are_apart_and_so_are_the_locks(redis: LiveRedis) -> None:
    """Another page is another key, and none of them is a lock's of the same name."""
    lock = lock_over(redis)
    for name in ("front page", "sweeper", "x\r\nFLUSHALL\r\n*"):
        assert lock.turn(name, LONG).go_ahead
        assert not lock.turn(name, LONG).go_ahead
    assert redis.set_if_absent("lock:sweeper", "box-a:1", LONG)


def test_after_the_ttl_the_next_one_goes_ahead(redis: LiveRedis) -> None:
    """Nobody released anything: the expiry is the point. And the first one, however slow, is not told."""
    lock = lock_over(redis)
    assert lock.turn("front page", 0.2).go_ahead
    assert wait_until(lambda: lock.turn("front page", LONG).go_ahead, 5)
    assert not lock.turn("front page", LONG).go_ahead


def test_a_turn_given_back_early_lets_the_next_one_go(redis: LiveRedis) -> None:
    """By compare and delete; once it is gone there is nothing left to give back."""
    lock = lock_over(redis)
    turn = lock.turn("front page", LONG)
    assert turn.give_back()
    assert not turn.give_back()
    assert lock.turn("front page", LONG).go_ahead


def test_nobody_gives_back_another_one_s_turn(redis: LiveRedis) -> None:
    """Neither who was told no, nor the first one after its ttl is over and the next is at work."""
    lock = lock_over(redis)
    overrun = lock.turn("front page", 0.2)
    assert wait_until(lambda: lock.turn("front page", LONG).go_ahead, 5)
    refused = lock.turn("front page", LONG)
    assert not refused.give_back()
    assert not overrun.give_back()
    assert not lock.turn("front page", LONG).go_ahead


def test_without_its_redis_everybody_goes_ahead(tmp_path: Path) -> None:
    """The opposite of what a lock must do: a double run is harmless here, and no run is not."""
    server = EmbeddedRedis(tmp_path).start()
    redis = LiveRedis(server.url, RealClock(), timeout=0.5)
    lock = lock_over(redis)
    before = lock.turn("front page", LONG)
    server.stop()
    turns = [lock.turn("front page", LONG) for _ in range(3)]
    assert [(turn.go_ahead, turn.asked) for turn in turns] == [(True, False)] * 3
    assert not before.give_back()
    redis.close()


def test_it_is_no_lock_and_no_setting_makes_it_one(settings: Settings) -> None:
    """Not in the registry, nothing to hold, no token: a sweep can't be run behind it."""
    assert not issubclass(EfficiencyLock, Lock)
    assert not issubclass(Turn, Lease)
    assert EfficiencyLock not in LOCKS.values()
    assert not hasattr(EfficiencyLock, "acquire")
    for name in ("efficiency", "EfficiencyLock"):
        settings.SWEEPER_LOCK = name
        assert [message.id for message in sweeper_settings()] == ["sweeper.E001"]
