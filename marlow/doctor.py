"""What this machine and this configuration have, and what to do about what they have not."""

import importlib.metadata
import platform
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import httpx
import psycopg
import redis
from django.conf import settings
from django.core import checks

from marlow.servers import postgres as embedded_postgres
from marlow.servers import redis as embedded_redis
from marlow.servers.launcher import ServerError
from sweeper.locks.postgres_advisory import key_of

CHROMIUM = ("chromium", "chromium-browser", "google-chrome")
CONNECT = 3  # real seconds to wait for a server


class State(StrEnum):
    OK = "ok"
    NOTE = "note"  # optional, or only wanted by something not asked for
    MISSING = "missing"


@dataclass(frozen=True)
class Finding:
    """One line. `do` says what to do, where something is to be done."""

    state: State
    what: str
    found: str
    do: str = ""


def examine() -> Iterator[Finding]:
    """Every finding, one at a time, so that a slow server does not hold up the lines before it."""
    yield _python()
    yield from (
        _binary("embedded Postgres", embedded_postgres.binary),
        _binary("embedded Redis", embedded_redis.binary),
    )
    yield from _settings()
    yield _database()
    yield _redis("broker", settings.CELERY_BROKER_URL, "CELERY_BROKER_URL")
    yield _redis("locks", settings.LOCK_REDIS_URL, "LOCK_REDIS_URL")
    yield _provider()
    yield _vanished_box()
    yield Finding(
        State.OK, "advisory key", f"sweeper is {key_of('sweeper')} (a box that prints another is not locked out)"
    )
    yield _browser()


def _python() -> Finding:
    version = f"{platform.python_version()}, Django {importlib.metadata.version('django')}"
    return Finding(State.OK, "Python", version)


def _binary(what: str, find: Callable[[], Path]) -> Finding:
    try:
        return Finding(State.OK, what, find().name)
    except ServerError as missing:
        return Finding(State.MISSING, what, "no program found", str(missing))


def _settings() -> Iterator[Finding]:
    """What the system checks say, and the strategy that is set."""
    said = [message for message in checks.run_checks() if message.level >= checks.WARNING]
    for message in said:
        state = State.MISSING if message.level >= checks.ERROR else State.NOTE
        yield Finding(state, "settings", message.msg, message.hint or "")
    if not said:
        names = ("SWEEPER_LOCK", "SWEEPER_SETTLE", "SWEEPER_QUESTION")
        yield Finding(State.OK, "settings", ", ".join(f"{name}={getattr(settings, name)}" for name in names))


def _absent(setting: str, what: str, found: str) -> Finding:
    """A server that does not answer: missing where it was asked for, a note where the demo brings its own."""
    if settings.DEMO and setting not in settings.GIVEN_SERVERS and "127.0.0.1" in getattr(settings, setting):
        return Finding(State.NOTE, what, "none runs now", "`make demo` brings its own while it runs")
    return Finding(State.MISSING, what, found, f"start it and check {setting}")


def _database() -> Finding:
    try:
        with psycopg.connect(_libpq(), connect_timeout=CONNECT) as connection:
            row = connection.execute("select current_setting('server_version'), to_regclass('shop_order')").fetchone()
    except psycopg.OperationalError as down:
        return _absent("DATABASE_URL", "database", str(down).strip().splitlines()[0])
    version, table = row if row else ("", None)
    if table is None:
        return Finding(State.MISSING, "database", f"Postgres {version}, without Marlow's tables", "manage.py migrate")
    return Finding(State.OK, "database", f"Postgres {version}")


def _libpq() -> str:
    plain = settings.DATABASES["default"]
    fields = {"host": "HOST", "port": "PORT", "dbname": "NAME", "user": "USER", "password": "PASSWORD"}
    return psycopg.conninfo.make_conninfo(**{name: plain[key] for name, key in fields.items() if plain.get(key)})


def _redis(what: str, url: str, setting: str) -> Finding:
    try:
        with redis.Redis.from_url(url, socket_timeout=CONNECT, socket_connect_timeout=CONNECT) as client:
            return Finding(State.OK, what, f"Redis {client.info('server')['redis_version']}")
    except (redis.RedisError, ValueError) as down:
        return _absent(setting, what, str(down))


def _provider() -> Finding:
    try:
        httpx.get(f"{settings.PROVIDER_URL}/healthz", timeout=CONNECT).raise_for_status()
    except (httpx.HTTPError, httpx.InvalidURL) as down:
        return _absent("PROVIDER_URL", "provider", f"{settings.PROVIDER_URL}: {down}")
    return Finding(State.OK, "provider", settings.PROVIDER_URL)


def _vanished_box() -> Finding:
    """The number the keepalive settings promise for a box that lost power while it held the advisory lock."""
    idle = (
        settings.MARLOW_TCP_KEEPALIVES_IDLE
        + settings.MARLOW_TCP_KEEPALIVES_INTERVAL * settings.MARLOW_TCP_KEEPALIVES_COUNT
    )
    flight = settings.MARLOW_TCP_USER_TIMEOUT
    if not flight:
        found = f"a vanished box keeps its lock {idle} s when idle, and without a bound with a reply in flight"
        return Finding(State.NOTE, "keepalive", found, "set MARLOW_TCP_USER_TIMEOUT")
    found = f"a vanished box keeps its lock {idle} s when idle, {flight} s with a reply in flight"
    return Finding(State.OK, "keepalive", found)


def _browser() -> Finding:
    for name in CHROMIUM:
        if shutil.which(name):
            return Finding(State.OK, "Chromium", f"{name} (for the browser tests)")
    return Finding(State.NOTE, "Chromium", "none, so the browser tests are skipped", "apt-get install chromium")
