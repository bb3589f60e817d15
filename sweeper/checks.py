"""System checks: names and pairs of settings. Whether a server answers is for worker start and `doctor` to say."""

import re
from collections.abc import Iterable
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning, register

from shop.settle import FORMS
from sweeper.locks import LOCKS
from sweeper.locks.base import Renewal

QUESTIONS = ("lookup", "cancel")
LONGEST = 31_536_000  # virtual seconds: a year
KEEPALIVES = (
    "MARLOW_TCP_KEEPALIVES_IDLE",
    "MARLOW_TCP_KEEPALIVES_INTERVAL",
    "MARLOW_TCP_KEEPALIVES_COUNT",
    "MARLOW_TCP_USER_TIMEOUT",
)

# What a lock's server is named by: the setting, what must stand there, and an example.
NAMED_SERVERS = {
    "redlock": (
        "LOCK_REDLOCK_URLS",
        "an odd number of different, independent Redis servers, three or more (two databases of one are one)",
        "redis://one:6379/0,redis://two:6379/0,redis://three:6379/0",
    ),
    "etcd": ("LOCK_ETCD_URLS", "the client URLs of its members", "http://one:2379,http://two:2379"),
    "zookeeper": ("LOCK_ZOOKEEPER_HOSTS", "the addresses of its servers", "one:2181,two:2181"),
}


@register()
def sweeper_settings(app_configs: Any = None, **kwargs: Any) -> list[CheckMessage]:
    """Refuse names nobody knows and pairs that make no sense, saying what to set instead."""
    named: list[tuple[str, str, Iterable[str], str]] = [
        ("SWEEPER_LOCK", settings.SWEEPER_LOCK, LOCKS, "sweeper.E001"),
        ("SWEEPER_SETTLE", settings.SWEEPER_SETTLE, FORMS, "sweeper.E002"),
        ("SWEEPER_QUESTION", settings.SWEEPER_QUESTION, QUESTIONS, "sweeper.E003"),
    ]
    found: list[CheckMessage] = [
        Error(f"{setting} is {value!r}, which nobody knows.", hint=f"Set it to one of: {', '.join(known)}.", id=code)
        for setting, value, known, code in named
        if value not in known
    ]
    if not found:
        found += _pair(settings.SWEEPER_LOCK, settings.SWEEPER_SETTLE) + _renewal(settings.SWEEPER_LOCK)
        found += _addresses(LOCKS[settings.SWEEPER_LOCK].server)
    return found + _numbers() + _servers()


@register(deploy=True)
def safe_in_production(app_configs: Any = None, **kwargs: Any) -> list[CheckMessage]:
    """Warn about a lock or a settle that the laboratory keeps for showing what goes wrong."""
    lock, settle = settings.SWEEPER_LOCK, settings.SWEEPER_SETTLE
    if lock not in LOCKS or settle not in FORMS:
        return []
    best = "fenced+guarded" if LOCKS[lock].mints_token else "guarded"
    found: list[CheckMessage] = []
    if settle != best:
        hint = f"Set SWEEPER_SETTLE={best}."
        found.append(
            Warning(f"SWEEPER_SETTLE={settle} under {lock} is not the safe form.", hint=hint, id="sweeper.W002")
        )
    if settings.SWEEPER_QUESTION != "cancel":
        said = "SWEEPER_QUESTION=lookup leaves the key open: a charge may land after its order was released."
        found.append(Warning(said, hint="Set SWEEPER_QUESTION=cancel.", id="sweeper.W003"))
    return found


def _pair(lock: str, settle: str) -> list[CheckMessage]:
    if FORMS[settle].fenced and not LOCKS[lock].mints_token:
        minting = ", ".join(name for name, strategy in LOCKS.items() if strategy.mints_token)
        return [
            Error(
                f"SWEEPER_SETTLE is {settle!r}, but the lock {lock!r} hands out no token to compare.",
                hint=f"Set SWEEPER_SETTLE=guarded, or SWEEPER_LOCK to one of: {minting}.",
                id="sweeper.E004",
            )
        ]
    return []


def several(addresses: str) -> tuple[str, ...]:
    """A setting that names several, separated by commas."""
    return tuple(each.strip() for each in addresses.split(",") if each.strip())


def _renewal(lock: str) -> list[CheckMessage]:
    if settings.SWEEPER_RENEW_LEASE and LOCKS[lock].renewal is Renewal.NEVER:
        renewed = ", ".join(name for name, strategy in LOCKS.items() if strategy.renewal is Renewal.OPTIONAL)
        return [
            Error(
                f"SWEEPER_RENEW_LEASE is on, but the lock {lock!r} has no lease that can be renewed.",
                hint=f"Set SWEEPER_RENEW_LEASE=0, or SWEEPER_LOCK to one of: {renewed}.",
                id="sweeper.E007",
            )
        ]
    return []


def _addresses(server: str) -> list[CheckMessage]:
    """The servers of the lock that is set are named; whether they answer is for worker start to say."""
    if server not in NAMED_SERVERS:
        return []
    name, wanted, example = NAMED_SERVERS[server]
    urls = several(getattr(settings, name))
    if _independent(urls) if server == "redlock" else urls:
        return []
    # Without the passwords: what is said here ends up in a log.
    shown = re.sub(r"//(?:(?!//).)*@", "//***@", getattr(settings, name))
    said = f"{name} is {shown!r}; the lock {settings.SWEEPER_LOCK!r} needs {wanted}."
    return [Error(said, hint=f"Set {name} like {example}.", id="sweeper.E008")]


def _independent(urls: tuple[str, ...]) -> bool:
    """Whether these are an odd number of Redis URLs, three or more, and no two of them name one host and port."""
    try:
        servers = {_redis_server(url) for url in urls}
    except ValueError:
        return False
    return len(urls) >= 3 and len(urls) % 2 == 1 and len(servers) == len(urls)


def _redis_server(url: str) -> tuple[str, int]:
    """Host and port, or the path of a socket and 0. Raises ValueError for what is no URL of a Redis."""
    split = urlsplit(url)
    if split.scheme == "unix" and split.path:
        return split.path, 0
    if split.scheme in ("redis", "rediss") and split.hostname:
        return split.hostname, 6379 if split.port is None else split.port
    raise ValueError(f"{url} names no Redis.")


def _numbers() -> list[CheckMessage]:
    durations = (
        "SWEEPER_TTL",
        "SWEEPER_EVERY",
        "SWEEPER_PENDING_FOR",
        "SWEEPER_TIME_LIMIT",
        "SWEEPER_RECONCILE_EVERY",
        "PROVIDER_TIMEOUT",
        "LOCK_REDLOCK_TIMEOUT",
        "MARLOW_TIME_SCALE",
    )
    found: list[CheckMessage] = [
        Error(
            f"{name} is {getattr(settings, name)}, and must be more than 0 and at most a year.",
            hint=f"Leave {name} out for its default, or set a number above 0.",
            id="sweeper.E005",
        )
        for name in durations
        if not 0 < getattr(settings, name) <= LONGEST
    ]
    return found + [
        Error(
            f"{name} is {getattr(settings, name)}, which Postgres refuses.",
            hint=f"Leave {name} out for its default, or set 0 to 32767.",
            id="sweeper.E006",
        )
        for name in KEEPALIVES
        if not 0 <= getattr(settings, name) <= 32_767
    ]


def _servers() -> list[CheckMessage]:
    if settings.BROKER_APART_FROM_LOCKS:
        return []
    return [
        Warning(
            "CELERY_BROKER_URL and LOCK_REDIS_URL name one Redis: whoever breaks the lock's breaks the queue too.",
            hint="Give the locks a Redis of their own.",
            id="sweeper.W001",
        )
    ]
