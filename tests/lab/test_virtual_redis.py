"""The laboratory's Redis to the millisecond, with clocks that step and replicas that lag."""

from datetime import timedelta

import pytest

from exercises.lab.servers import NotAllowed
from exercises.lab.servers import VirtualRedis as Redis
from tests.fakes import StandingClock

MINUTE = 60_000
MILLISECOND = 0.001


@pytest.fixture
def clock() -> StandingClock:
    return StandingClock()


@pytest.fixture
def redis(clock: StandingClock) -> Redis:
    return Redis(clock.now)


class TestARedisKey:
    def test_is_alive_at_its_deadline_and_gone_a_millisecond_later(self, clock: StandingClock, redis: Redis) -> None:
        """Both boxes' cron fires in that second."""
        assert redis.set_if_absent("k", "b", 120_000)
        clock.advance(120)
        assert redis.get("k") == "b"
        assert redis.remaining("k") == 0
        assert not redis.set_if_absent("k", "a", 120_000)
        clock.advance(MILLISECOND)
        assert redis.remaining("k") is None
        assert redis.set_if_absent("k", "a", 120_000)

    def test_lives_in_whole_milliseconds(self, clock: StandingClock, redis: Redis) -> None:
        """What is left of one when it is set does not count."""
        clock.moment += timedelta(microseconds=900)
        redis.set_if_absent("k", "b", 1)
        clock.moment += timedelta(microseconds=1000)
        assert redis.get("k") == "b"
        clock.moment += timedelta(microseconds=100)
        assert redis.get("k") is None

    def test_that_is_renewed_lives_from_then_on(self, clock: StandingClock, redis: Redis) -> None:
        """Only by who holds it."""
        redis.set_if_absent("k", "b", 1000)
        clock.advance(1)
        assert not redis.expire_if_equal("k", "a", MINUTE)
        assert redis.expire_if_equal("k", "b", 500)
        assert redis.remaining("k") == 500

    def test_of_no_time_at_all_is_refused(self, redis: Redis) -> None:
        """And nothing is set."""
        with pytest.raises(NotAllowed, match="0 ms"):
            redis.set_if_absent("k", "b", 0)
        assert redis.get("k") is None


class TestARedisClock:
    def test_that_is_ahead_gives_keys_no_less_time(self, clock: StandingClock) -> None:
        """It is only a step that does."""
        ahead = Redis(clock.now, offset=61)
        assert ahead.time() - Redis(clock.now).time() == 61_000
        ahead.set_if_absent("k", "b", MINUTE)
        clock.advance(60)
        assert ahead.get("k") == "b"

    def test_that_steps_forward_ends_a_key_and_back_does_not_revive_it(self, redis: Redis) -> None:
        """A minute's, by 60.001 s."""
        redis.set_if_absent("k", "b", MINUTE)
        redis.step(60)
        assert redis.get("k") == "b"
        redis.step(MILLISECOND)
        redis.step(-61)
        assert redis.get("k") is None

    def test_that_steps_back_keeps_a_key_alive(self, clock: StandingClock, redis: Redis) -> None:
        """By as much as it steps."""
        redis.set_if_absent("k", "b", 1000)
        redis.step(-30)
        clock.advance(31)
        assert redis.get("k") == "b"
        clock.advance(MILLISECOND)
        assert redis.get("k") is None

    def test_that_steps_back_too_late_keeps_nothing(self, clock: StandingClock, redis: Redis) -> None:
        """The key went by itself, though nobody asked."""
        redis.set_if_absent("k", "b", 1000)
        clock.advance(2)
        redis.step(-30)
        assert redis.get("k") is None


class TestAFailover:
    def test_loses_what_was_not_shipped(self, redis: Redis) -> None:
        """The other box is told yes while the first still holds; what came in order before it is there."""
        redis.add_replica()
        redis.set_if_absent("first", "b", MINUTE)
        redis.set_if_absent("second", "b", MINUTE)
        redis.set_if_absent("third", "b", MINUTE)
        redis.replicate(2)
        assert redis.unshipped() == 1
        redis.fail_over()
        assert [redis.get(key) for key in ("first", "second", "third")] == ["b", "b", None]
        assert redis.set_if_absent("third", "a", MINUTE)

    def test_brings_back_what_was_deleted_or_renewed_since(self, clock: StandingClock, redis: Redis) -> None:
        """Each as the replica had it."""
        redis.set_if_absent("deleted", "b", MINUTE)
        redis.set_if_absent("renewed", "b", MINUTE)
        redis.add_replica()
        clock.advance(1)
        redis.delete("deleted")
        redis.expire_if_equal("renewed", "b", MINUTE)
        redis.fail_over()
        assert redis.get("deleted") == "b"
        assert redis.remaining("renewed") == MINUTE - 1000

    def test_to_a_clock_that_is_ahead_ends_keys(self, redis: Redis) -> None:
        """Deadlines are shipped as moments, not as durations."""
        redis.add_replica(offset=61)
        redis.set_if_absent("k", "b", MINUTE)
        redis.replicate()
        redis.fail_over()
        assert redis.get("k") is None

    def test_ships_a_key_s_end(self, clock: StandingClock, redis: Redis) -> None:
        """A replica whose clock is behind has it from the master that the key is over."""
        redis.add_replica(offset=-30)
        redis.set_if_absent("k", "b", 1000)
        redis.replicate()
        clock.advance(2)
        redis.replicate()
        redis.fail_over()
        assert redis.get("k") is None

    def test_from_a_master_that_is_down_is_what_it_is_for(self, redis: Redis) -> None:
        """A dead master ships nothing more; and there is one replica, once."""
        redis.add_replica()
        redis.set_if_absent("k", "b", MINUTE)
        redis.stop()
        redis.replicate()
        redis.fail_over()
        assert redis.get("k") is None
        for demand in (redis.fail_over, redis.replicate):
            with pytest.raises(NotAllowed, match="no replica"):
                demand()

    def test_to_a_replica_that_has_not_heard_yet_of_an_empty_master_finds_the_keys(self, redis: Redis) -> None:
        """Once it has heard, none."""
        redis.set_if_absent("k", "b", MINUTE)
        redis.add_replica()
        redis.stop()
        redis.start()
        assert redis.get("k") is None
        redis.fail_over()
        assert redis.get("k") == "b"
