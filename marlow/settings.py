"""Every setting of Marlow, with its unit and its default. Production defaults are the safe ones.

Values come from the environment (django-environ), in a development checkout also from `.env`. `docs/settings.md`
lists the names below and is tested against them.
"""

import json
import os
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import environ
from django.core.exceptions import ImproperlyConfigured

BASE_DIR = Path(__file__).resolve().parent.parent


class Environment(environ.Env):  # type: ignore[misc]  # ships no types
    """django-environ, with the setting's name in what it says of a value it can't read."""

    SWITCHES = ("1", "0", "true", "false", "yes", "no", "on", "off")

    def get_value(
        self, var: str, cast: Any = None, default: Any = environ.Env.NOTSET, parse_default: bool = False
    ) -> Any:
        if cast is bool and (switch := super().get_value(var, cast=str, default="0").lower()) not in self.SWITCHES:
            raise ImproperlyConfigured(f"{var} is {switch!r}, which is neither on nor off: set 1 or 0.")
        try:
            return super().get_value(var, cast=cast, default=default, parse_default=parse_default)
        except ValueError as unreadable:
            wanted = {float: "number", int: "whole number"}.get(cast, "value")
            given = super().get_value(var, cast=str)
            raise ImproperlyConfigured(
                f"{var} is {given!r}, which is no {wanted}: set one, or leave it out."
            ) from unreadable


env = Environment()
environ.Env.read_env(BASE_DIR / ".env")

# A laptop's demo: its own secret key, embedded servers, logins printed on the screen. Never set it in production.
DEMO = env.bool("MARLOW_DEMO", default=False)
DEMO_SECRET_KEY = "demo-only-and-refused-everywhere-else-" + "0" * 20

DEBUG = env.bool("DEBUG", default=False)
SECRET_KEY = env.str("SECRET_KEY", default=DEMO_SECRET_KEY if DEMO else "")
if not DEMO:
    if not SECRET_KEY:
        raise ImproperlyConfigured("Set SECRET_KEY to fifty random characters (or MARLOW_DEMO=1 on a laptop).")
    if SECRET_KEY == DEMO_SECRET_KEY:
        raise ImproperlyConfigured("SECRET_KEY is the demo's, which everybody knows: set one of your own.")
    if DEBUG:
        raise ImproperlyConfigured("DEBUG is on and MARLOW_DEMO is not: set DEBUG=0.")

# Where embedded servers, beat files, clocks and journal spools live.
STATE_DIR = Path(env.str("MARLOW_STATE_DIR", default=str(BASE_DIR / "state")) or BASE_DIR / "state").resolve()

# A running demo leaves its servers' addresses and its sweeper's settings here, so that `manage.py shell` and `doctor`
# see the same shop.
_running: dict[str, str] = {}
if DEMO and (STATE_DIR / "demo" / "addresses.json").exists():
    _running = json.loads((STATE_DIR / "demo" / "addresses.json").read_text())
    os.environ.setdefault("MARLOW_CLOCK_FILE", _running["MARLOW_CLOCK_FILE"])


# --- Servers ------------------------------------------------------------------------------------------------------
# URLs. Celery's broker and the Redis that holds locks are two servers: whoever breaks one must not break the other.
DATABASE_URL = env.str(
    "DATABASE_URL", default=_running.get("DATABASE_URL", "postgres://marlow@127.0.0.1:5432/marlow")
)
LAB_DATABASE_URL = env.str("LAB_DATABASE_URL", default="")  # the laboratory's own cluster; empty: embedded
CELERY_BROKER_URL = env.str(
    "CELERY_BROKER_URL", default=_running.get("CELERY_BROKER_URL", "redis://127.0.0.1:6379/0")
)
LOCK_REDIS_URL = env.str("LOCK_REDIS_URL", default=_running.get("LOCK_REDIS_URL", "redis://127.0.0.1:6380/0"))
# Several, separated by commas; only the lock that stands on them reads them.
LOCK_REDLOCK_URLS = env.str("LOCK_REDLOCK_URLS", default=_running.get("LOCK_REDLOCK_URLS", ""))
LOCK_REDLOCK_TIMEOUT = env.float("LOCK_REDLOCK_TIMEOUT", default=0.2)  # real seconds a node has to answer
LOCK_ETCD_URLS = env.str("LOCK_ETCD_URLS", default=_running.get("LOCK_ETCD_URLS", ""))
LOCK_ZOOKEEPER_HOSTS = env.str("LOCK_ZOOKEEPER_HOSTS", default=_running.get("LOCK_ZOOKEEPER_HOSTS", ""))
PROVIDER_URL = env.str("PROVIDER_URL", default=_running.get("PROVIDER_URL", "http://127.0.0.1:8001"))
# How long Postgres keeps the session of a box that vanished (seconds): idle + interval x count, and
# `tcp_user_timeout` (seconds) for a reply that is never acknowledged. Both, or one of the two cases has no bound.
MARLOW_TCP_KEEPALIVES_IDLE = env.int("MARLOW_TCP_KEEPALIVES_IDLE", default=30)
MARLOW_TCP_KEEPALIVES_INTERVAL = env.int("MARLOW_TCP_KEEPALIVES_INTERVAL", default=10)
MARLOW_TCP_KEEPALIVES_COUNT = env.int("MARLOW_TCP_KEEPALIVES_COUNT", default=3)
MARLOW_TCP_USER_TIMEOUT = env.int("MARLOW_TCP_USER_TIMEOUT", default=60)

# --- This box and its clock ---------------------------------------------------------------------------------------
MARLOW_BOX = env.str("MARLOW_BOX", default="box-a")
MARLOW_TIME_SCALE = env.float("MARLOW_TIME_SCALE", default=1.0)  # virtual seconds a real second; 1 is production
MARLOW_CLOCK_EPOCH = env.str("MARLOW_CLOCK_EPOCH", default="")  # virtual start, ISO 8601; empty: the scenario's
MARLOW_CLOCK_OFFSET = env.float("MARLOW_CLOCK_OFFSET", default=0.0)  # this box's error, virtual seconds
MARLOW_CLOCK_FILE = env.str("MARLOW_CLOCK_FILE", default=_running.get("MARLOW_CLOCK_FILE", ""))  # scales but 1

# --- The sweeper --------------------------------------------------------------------------------------------------
SWEEPER_LOCK = env.str("SWEEPER_LOCK", default=_running.get("SWEEPER_LOCK", "postgres-advisory"))
SWEEPER_SETTLE = env.str("SWEEPER_SETTLE", default=_running.get("SWEEPER_SETTLE", "guarded"))
SWEEPER_QUESTION = env.str("SWEEPER_QUESTION", default=_running.get("SWEEPER_QUESTION", "cancel"))  # lookup | cancel
SWEEPER_STOP_ON_LOST_LEASE = env.bool("SWEEPER_STOP_ON_LOST_LEASE", default=True)
SWEEPER_RENEW_LEASE = env.bool("SWEEPER_RENEW_LEASE", default=False)  # beside the run, for locks that can
SWEEPER_TTL = env.float("SWEEPER_TTL", default=120.0)  # lease of the locks that have one, virtual seconds
SWEEPER_EVERY = env.float("SWEEPER_EVERY", default=120.0)  # both boxes' schedule and the slot, virtual seconds
SWEEPER_PENDING_FOR = env.float("SWEEPER_PENDING_FOR", default=120.0)  # age at which a row is swept, virtual seconds
SWEEPER_RECONCILE_EVERY = env.float("SWEEPER_RECONCILE_EVERY", default=1800.0)  # virtual seconds
SWEEPER_GRACE = 60.0  # virtual seconds between a run's time limit, which it is told of, and its end by force
SWEEPER_TIME_LIMIT = env.float("SWEEPER_TIME_LIMIT", default=900.0)  # longest run before it is ended, virtual seconds
PROVIDER_TIMEOUT = env.float("PROVIDER_TIMEOUT", default=10.0)  # total deadline of one call, virtual seconds

# --- The grader: real time, always ---------------------------------------------------------------------------------
GRADING_LEASE = env.float("GRADING_LEASE", default=30.0)  # seconds that a silent worker keeps a judging
GRADING_TRIES = env.int("GRADING_TRIES", default=3)  # tries of the judge before an attempt is an instructor's
GRADING_CAP = env.int("GRADING_CAP", default=2)  # judgings of one student at a time
GRADING_CHECK_LIMIT = env.float("GRADING_CHECK_LIMIT", default=120.0)  # seconds of the wall clock for one check
GRADING_MEMORY = env.int("GRADING_MEMORY", default=2048)  # MB of address space for the process that judges
GRADING_EVERY = env.float("GRADING_EVERY", default=5.0)  # seconds between two looks of a worker at the queue

# What `manage.py up` plays where the environment does not say otherwise: the shop that shipped, at twenty times the
# speed. Of these servers those that the environment names are used; the provider and the rest are its own, the last
# three only where the lock stands on them.
UP = {
    name: env.str(name, default=shipped)
    for name, shipped in (
        ("SWEEPER_LOCK", "redis-naive"),
        ("SWEEPER_SETTLE", "unguarded"),
        ("SWEEPER_QUESTION", "lookup"),
        ("SWEEPER_STOP_ON_LOST_LEASE", "0"),
        ("MARLOW_TIME_SCALE", "20"),
    )
}
LOCK_SERVERS = ("LOCK_REDLOCK_URLS", "LOCK_ETCD_URLS", "LOCK_ZOOKEEPER_HOSTS")
SERVERS = ("DATABASE_URL", "CELERY_BROKER_URL", "LOCK_REDIS_URL", *LOCK_SERVERS)
GIVEN_SERVERS = {name: env.str(name) for name in SERVERS if name in env.ENVIRON}

# What any program needs to run here, and nothing of ours: for a process that is to know no secret.
_ANY = {"PATH", "HOME", "TMPDIR", "LANG", "LC_ALL"}
ANY_PROGRAM = {name: value for name, value in os.environ.items() if name in _ANY}


def environment_for(**extra: str) -> dict[str, str]:
    """This process's environment and these variables: what a child process is started with."""
    return {**os.environ, **extra}


# --- Django -------------------------------------------------------------------------------------------------------
ALLOWED_HOSTS = env.list("ALLOWED_HOSTS", default=["127.0.0.1", "localhost", "[::1]"])
CSRF_TRUSTED_ORIGINS = env.list("CSRF_TRUSTED_ORIGINS", default=[])
INSTALLED_APPS = [
    "marlow.apps.MarlowAdminConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "whitenoise.runserver_nostatic",
    "django.contrib.staticfiles",
    "csp",
    "marlow.apps.MarlowConfig",
    "shop",
    "sweeper",
    "exercises",
    "grading",
]
MIDDLEWARE = [
    "marlow.plain.refuse_nul",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "csp.middleware.CSPMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]
ROOT_URLCONF = "marlow.urls"
WSGI_APPLICATION = "marlow.wsgi.application"
ASGI_APPLICATION = "marlow.asgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "marlow" / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]


def demand_url(name: str, url: str, schemes: tuple[str, ...], example: str) -> None:
    """Raise ImproperlyConfigured for a URL of another kind, or one whose host or port makes no sense."""
    try:
        split = urlsplit(url)
        sound = split.scheme in schemes and bool(split.netloc or split.path) and split.port != 0
    except ValueError:
        sound = False
    if not sound:
        raise ImproperlyConfigured(f"{name} makes no sense as an address: set it like {example}.")


_redis_example = ("redis", "rediss", "unix"), "redis://host:6379/0"
demand_url("DATABASE_URL", DATABASE_URL, ("postgres", "postgresql"), "postgres://user:password@host:5432/name")
demand_url("CELERY_BROKER_URL", CELERY_BROKER_URL, *_redis_example)
demand_url("LOCK_REDIS_URL", LOCK_REDIS_URL, *_redis_example)
demand_url("PROVIDER_URL", PROVIDER_URL, ("http", "https"), "http://host:8001")
_database = env.db_url_config(DATABASE_URL)
_database["OPTIONS"] = {
    **_database.get("OPTIONS", {}),
    "connect_timeout": 5,
    # The server's side of the connection: keepalives of the client's side tell only the client.
    "options": (
        f"-c tcp_keepalives_idle={MARLOW_TCP_KEEPALIVES_IDLE}"
        f" -c tcp_keepalives_interval={MARLOW_TCP_KEEPALIVES_INTERVAL}"
        f" -c tcp_keepalives_count={MARLOW_TCP_KEEPALIVES_COUNT}"
        f" -c tcp_user_timeout={MARLOW_TCP_USER_TIMEOUT}s"
    ),
}
DATABASES = {
    "default": _database,
    # The journal writes at once, on a connection of its own, so that a settle rolled back keeps its story.
    "journal": {**_database, "TEST": {"MIRROR": "default"}},
}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in ("UserAttributeSimilarityValidator", "MinimumLengthValidator", "CommonPasswordValidator")
]
LANGUAGE_CODE = "en-gb"
TIME_ZONE = "Europe/London"
USE_TZ = True
LOGIN_REDIRECT_URL = "admin:index"
STATIC_URL = "static/"
STATIC_ROOT = BASE_DIR / "staticfiles"
STATICFILES_DIRS = [BASE_DIR / "marlow" / "static"]
WHITENOISE_USE_FINDERS = DEMO

# --- Security -----------------------------------------------------------------------------------------------------
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": ["'self'"],
        "object-src": ["'none'"],
        "base-uri": ["'self'"],
        "form-action": ["'self'"],
        "frame-ancestors": ["'none'"],
    }
}
X_FRAME_OPTIONS = "DENY"
SECURE_REFERRER_POLICY = "same-origin"
HTTPS = env.bool("MARLOW_HTTPS", default=not DEMO)  # behind a TLS-ending proxy that sets X-Forwarded-Proto
SECURE_SSL_REDIRECT = HTTPS
SECURE_REDIRECT_EXEMPT = [r"^healthz$"]
SECURE_HSTS_SECONDS = 31_536_000 if HTTPS else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = HTTPS
SECURE_HSTS_PRELOAD = HTTPS
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if HTTPS else None
SESSION_COOKIE_SECURE = HTTPS
CSRF_COOKIE_SECURE = HTTPS

# --- Logging: one structured line per journal event, everything else as Django does -------------------------------
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"plain": {"format": "%(levelname)s %(name)s %(message)s"}},
    "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "plain"}},
    "root": {"handlers": ["console"], "level": "WARNING"},
    "loggers": {"journal": {"level": "INFO"}},
}


def _two_servers(broker: str, locks: str) -> bool:
    """Whether two Redis URLs name two servers (host and port), not two databases of one."""
    return urlsplit(broker).netloc.rpartition("@")[2] != urlsplit(locks).netloc.rpartition("@")[2]


BROKER_APART_FROM_LOCKS = _two_servers(CELERY_BROKER_URL, LOCK_REDIS_URL)
