"""Names and pairs that make no sense are refused with a sentence that says what to set."""

import pytest
from django.core.exceptions import ImproperlyConfigured
from pytest_django import Settings

from sweeper.box import demand_known_settings
from sweeper.checks import safe_in_production, sweeper_settings


@pytest.mark.parametrize(
    ("setting", "value", "says"),
    [
        ("SWEEPER_LOCK", "redis-navie", "redis-naive"),
        ("SWEEPER_SETTLE", "gaurded", "guarded"),
        ("SWEEPER_QUESTION", "ask", "lookup, cancel"),
        ("SWEEPER_TTL", 0.0, "above 0"),
        ("MARLOW_TIME_SCALE", -1.0, "above 0"),
        ("SWEEPER_TTL", float("nan"), "above 0"),
        ("PROVIDER_TIMEOUT", 1e308, "above 0"),
        ("MARLOW_TCP_KEEPALIVES_IDLE", -1, "0 to 32767"),
    ],
)
def test_an_unknown_value_is_refused_with_the_known_ones(
    settings: Settings, setting: str, value: object, says: str
) -> None:
    """A slip of the pen never starts a box."""
    setattr(settings, setting, value)
    [message] = sweeper_settings()
    assert setting in message.msg
    assert says in (message.hint or "")
    with pytest.raises(ImproperlyConfigured, match=setting):
        demand_known_settings()


@pytest.mark.parametrize(
    "urls",
    [
        "",
        "redis://one,redis://two",
        "redis://one,redis://two,redis://three,redis://four",
        "redis://one/0,redis://one/1,redis://two/0",
        "redis://one,redis://:secret@ONE:6379,redis://two",
        "redis://one,redis://me:a,secret,@,b@two:6379",
        "unix:///run/a?db=1,unix:///run/a?db=2,redis://two",
        "redis://one,redis://two:port,redis://three",
        "redis://one,http://two,three",
    ],
)
def test_redlock_is_refused_servers_that_are_too_few_even_or_one_in_two_guises(settings: Settings, urls: str) -> None:
    """Two databases of one server fail together: they are one vote. Passwords stay out of what is said."""
    settings.SWEEPER_LOCK, settings.LOCK_REDLOCK_URLS = "redlock", urls
    [message] = sweeper_settings()
    assert message.id == "sweeper.E008"
    assert message.msg.startswith("LOCK_REDLOCK_URLS is ")
    assert "secret" not in message.msg
    assert "Set LOCK_REDLOCK_URLS like redis://one:6379/0" in (message.hint or "")


@pytest.mark.parametrize(
    "urls",
    [
        "redis://one,redis://two,redis://three",
        "redis://one:1/0,redis://one:2/0,rediss://user:secret@one:3/0",
        "unix:///run/a,unix:///run/b,redis://[::1]:6379",
    ],
)
def test_redlock_takes_an_odd_number_of_different_servers(settings: Settings, urls: str) -> None:
    """Several on one host too: a laptop has one."""
    settings.SWEEPER_LOCK, settings.LOCK_REDLOCK_URLS = "redlock", urls
    assert sweeper_settings() == []


@pytest.mark.parametrize("lock", ["none", "redis-naive", "redis-token", "postgres-advisory"])
def test_a_fence_without_a_token_is_refused(settings: Settings, lock: str) -> None:
    """There is nothing to compare."""
    settings.SWEEPER_LOCK, settings.SWEEPER_SETTLE = lock, "fenced"
    [message] = sweeper_settings()
    assert message.id == "sweeper.E004"
    assert "slot" in (message.hint or "")


@pytest.mark.parametrize("settle", ["unguarded", "guarded", "fenced", "fenced+guarded"])
def test_a_lock_that_mints_tokens_takes_every_settle(settings: Settings, settle: str) -> None:
    """slot's number is a token."""
    settings.SWEEPER_LOCK, settings.SWEEPER_SETTLE = "slot", settle
    assert sweeper_settings() == []


@pytest.mark.parametrize(
    ("lock", "settle", "question", "warned"),
    [
        ("postgres-advisory", "guarded", "cancel", []),
        ("slot", "fenced+guarded", "cancel", []),
        ("slot", "guarded", "cancel", ["sweeper.W002"]),
        ("redis-token", "unguarded", "cancel", ["sweeper.W002"]),
        ("postgres-advisory", "guarded", "lookup", ["sweeper.W003"]),
    ],
)
def test_a_deployment_is_warned_of_what_only_a_lesson_wants(
    settings: Settings, lock: str, settle: str, question: str, warned: list[str]
) -> None:
    """Guarded everywhere, fenced too where the lock mints a token, and a question that bars the key."""
    settings.SWEEPER_LOCK, settings.SWEEPER_SETTLE, settings.SWEEPER_QUESTION = lock, settle, question
    found = safe_in_production()
    assert [message.id for message in found] == warned
    assert all("Set SWEEPER_" in (message.hint or "") for message in found)


def test_one_redis_for_queue_and_lock_is_warned_about(settings: Settings) -> None:
    """It works, until somebody breaks the lock's Redis on purpose."""
    settings.BROKER_APART_FROM_LOCKS = False
    assert [message.id for message in sweeper_settings()] == ["sweeper.W001"]


def test_production_s_defaults_are_the_safe_ones() -> None:
    """Nobody has to know the lesson to be safe."""
    from django.conf import settings

    assert (settings.SWEEPER_LOCK, settings.SWEEPER_SETTLE) == ("postgres-advisory", "guarded")
    assert (settings.SWEEPER_QUESTION, settings.SWEEPER_STOP_ON_LOST_LEASE) == ("cancel", True)
