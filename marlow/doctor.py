"""What this machine and this configuration have, and what to do about what they have not."""

import importlib.metadata
import platform
import shutil
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import httpx
import psycopg
import redis
from django.conf import settings
from django.core import checks
from django.core.exceptions import ImproperlyConfigured
from django.db import DatabaseError, connections

from grading import judges
from grading.deadline import in_zone
from grading.sandbox import trial
from marlow.clock import ClockError, real_now
from marlow.servers import etcd, faketime, hosts, pgbouncer, zookeeper
from marlow.servers import postgres as embedded_postgres
from marlow.servers import redis as embedded_redis
from marlow.servers.launcher import ServerError
from shop.words import count
from sweeper.box import demand_lock
from sweeper.checks import KEEPALIVES, NAMED_SERVERS
from sweeper.locks import LOCKS
from sweeper.locks.keepalive import let_go_after
from sweeper.locks.ports import LockUnavailable
from sweeper.locks.postgres_advisory import key_of

CHROMIUM = ("chromium", "chromium-browser", "google-chrome")
CONNECT = 3  # real seconds to wait for a server
# In: names of Postgres settings. Out: a row each, in their order, in seconds (or probes): what the server's side of
# this very connection lives by, asked of its kernel. A Unix socket has no such thing and answers 0.
IN_FORCE = """
    select setting::int / case unit when 'ms' then 1000 else 1 end
    from unnest(%s::text[]) with ordinality as asked (name, place) join pg_settings using (name)
    order by place
"""
JUDGE = "`celery --app marlow.judging worker --beat`"
OWN = "`make demo` brings its own while it runs"


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
    yield from (
        _optional("etcd", etcd.binary, "for SWEEPER_LOCK=etcd without a server of your own"),
        _optional("ZooKeeper", _zookeeper, "for SWEEPER_LOCK=zookeeper without a server of your own"),
        _optional("pgbouncer", pgbouncer.binary, "for seeing a pooler break the advisory lock"),
        _optional("libfaketime", faketime.library, "for stepping the clocks of Redis servers"),
        _namespaces(),
    )
    yield from sandbox()
    yield from _settings()
    yield (database := _database())
    if database.state is State.OK:
        yield judging()
    yield _redis("broker", settings.CELERY_BROKER_URL, "CELERY_BROKER_URL")
    yield locks()
    yield _provider()
    yield vanished_box()
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


def _optional(what: str, find: Callable[[], Path], wanted: str) -> Finding:
    """A program that only some demonstrations and tests want."""
    try:
        return Finding(State.OK, what, f"{find().name} ({wanted})")
    except ServerError as missing:
        return Finding(State.NOTE, what, f"not installed ({wanted})", str(missing))


def _zookeeper() -> Path:
    """Its jar, where there is a Java to run it."""
    zookeeper.command(Path("zoo.cfg"))
    return zookeeper.binary()


def _namespaces() -> Finding:
    what, wanted = "network hosts", "for cutting the power of boxes in network namespaces"
    if lacking := hosts.missing():
        return Finding(State.NOTE, what, f"none can be made ({wanted})", lacking)
    return Finding(State.OK, what, f"root and ip ({wanted})")


def sandbox() -> Iterator[Finding]:
    """Where it does not start, answers that are programs are left to an instructor; nothing runs without it."""
    what = "sandbox"
    if lacking := trial.starts():
        yield Finding(State.NOTE, what, "does not start (answers in Python can't be judged here)", lacking)
        return
    yield Finding(State.OK, what, "starts (bubblewrap, namespaces, seccomp)")
    if trial.bounded_together():
        yield Finding(State.OK, "sandbox memory", "bounded for all copies of a program together, by a cgroup")
    else:
        yield Finding(State.NOTE, "sandbox memory", trial.UNBOUND, "Let the judging worker write to a cgroup.")


def _settings() -> Iterator[Finding]:
    """What the system checks say, and the strategy that is set."""
    said = [message for message in checks.run_checks() if message.level >= checks.WARNING]
    for message in said:
        if message.id == "sweeper.E008" and _own(NAMED_SERVERS[LOCKS[settings.SWEEPER_LOCK].server][0]):
            yield Finding(State.NOTE, "settings", message.msg, OWN)
        else:
            state = State.MISSING if message.level >= checks.ERROR else State.NOTE
            yield Finding(state, "settings", message.msg, message.hint or "")
    if not said:
        names = ("SWEEPER_LOCK", "SWEEPER_SETTLE", "SWEEPER_QUESTION")
        yield Finding(State.OK, "settings", ", ".join(f"{name}={getattr(settings, name)}" for name in names))


def _own(setting: str) -> bool:
    """Whether a server that the demo would bring is meant: none was named, or one on this machine by default."""
    named = getattr(settings, setting)
    return settings.DEMO and setting not in settings.GIVEN_SERVERS and (not named or "127.0.0.1" in named)


def _absent(setting: str, what: str, found: str) -> Finding:
    """A server that does not answer: missing where it was asked for, a note where the demo brings its own."""
    if _own(setting):
        return Finding(State.NOTE, what, "none runs now", OWN)
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


def judging() -> Finding:
    """Whether anybody judges what is handed in: by when a judge of any box looked into the queue last."""
    do = f"see that one runs: {JUDGE}, or `make demo`, which has one"
    try:
        seen = judges.last_seen(now := real_now())
    except DatabaseError as away:
        return Finding(State.NOTE, "judges", str(away).strip().splitlines()[0], "manage.py migrate")
    if seen is None:
        return Finding(
            State.NOTE, "judges", "none was seen yet", f"nothing to do before something is handed in; then {do}"
        )
    found = f"last seen {count(int((now - seen).total_seconds()), 'second')} ago, on {in_zone(seen, 'UTC')}"
    if now - seen >= judges.SILENCE:
        return Finding(State.NOTE, "judges", found, do)
    return Finding(State.OK, "judges", found)


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


def locks() -> Finding:
    """What the lock of the settings stands on, asked as a box asks it before its first message."""
    lock = settings.SWEEPER_LOCK
    server = LOCKS[lock].server if lock in LOCKS else ""
    if server == "redis":
        return _redis("locks", settings.LOCK_REDIS_URL, "LOCK_REDIS_URL")
    try:
        demand_lock()
    except LockUnavailable as down:
        return _absent(NAMED_SERVERS[server][0] if server else "DATABASE_URL", "locks", f"{lock}: {down}")
    except ImproperlyConfigured:
        return Finding(State.NOTE, "locks", f"{lock} was not asked for", "see what the settings lack")
    except (ClockError, ValueError) as wrong:
        return Finding(State.MISSING, "locks", f"{lock} can't be asked for", str(wrong))
    return Finding(State.OK, "locks", f"{lock}: {server or 'the database'} is fit for it")


def _provider() -> Finding:
    try:
        httpx.get(f"{settings.PROVIDER_URL}/healthz", timeout=CONNECT).raise_for_status()
    except (httpx.HTTPError, httpx.InvalidURL) as down:
        return _absent("PROVIDER_URL", "provider", f"{settings.PROVIDER_URL}: {down}")
    return Finding(State.OK, "provider", settings.PROVIDER_URL)


def vanished_box() -> Finding:
    """How long a box that lost power keeps the advisory lock, by what the server's side of our connection says."""
    wanted = _wanted()
    try:
        taken = _taken()
    except DatabaseError:
        found = f"{_kept(wanted)}, if the server takes what is set: it could not be asked"
        return Finding(State.NOTE, "keepalive", found, "ask again when the database is there")
    # What is set to 0 is left to the server's kernel.
    if dropped := [name for name, asked, has in zip(KEEPALIVES, wanted, taken, strict=True) if asked not in (0, has)]:
        do = "let DATABASE_URL lead to Postgres over TCP, and through no pooler, which drops them"
        return Finding(State.NOTE, "keepalive", f"{_kept(taken)}: the server did not take {', '.join(dropped)}", do)
    if not all(let_go_after(*taken, in_flight=flight) for flight in (False, True)):
        return Finding(State.NOTE, "keepalive", _kept(taken), "set MARLOW_TCP_USER_TIMEOUT")
    return Finding(State.OK, "keepalive", _kept(taken))


def _wanted() -> tuple[int, int, int, int]:
    idle, interval, count, user_timeout = (int(getattr(settings, name)) for name in KEEPALIVES)
    return idle, interval, count, user_timeout


def _taken() -> tuple[int, int, int, int]:
    """The numbers in force, in the order of KEEPALIVES, on a connection opened as Django opens the shop's."""
    with closing(connections.create_connection("default")) as connection, connection.cursor() as cursor:
        cursor.execute(IN_FORCE, [[name.removeprefix("MARLOW_").lower() for name in KEEPALIVES]])
        idle, interval, count, user_timeout = (int(row[0]) for row in cursor.fetchall())
        return idle, interval, count, user_timeout


def _kept(numbers: tuple[int, int, int, int]) -> str:
    idle, flight = (let_go_after(*numbers, in_flight=flight) for flight in (False, True))
    bounds = [f"{seconds:g} s" if seconds else "without a bound" for seconds in (idle, flight)]
    return f"a vanished box keeps its lock {bounds[0]} when idle, {bounds[1]} with a reply in flight"


def _browser() -> Finding:
    for name in CHROMIUM:
        if shutil.which(name):
            return Finding(State.OK, "Chromium", f"{name} (for the browser tests)")
    return Finding(State.NOTE, "Chromium", "none, so the browser tests are skipped", "apt-get install chromium")
