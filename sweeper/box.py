"""The sweeper on real servers, put together from the settings. The one place where they meet."""

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

from django.conf import settings
from django.core.checks import Error
from django.core.exceptions import ImproperlyConfigured
from django.db import DatabaseError, connections

from marlow.clock import Clock, live
from shop.provider.client import HttpProvider
from shop.settle import FORMS
from sweeper.checks import several, sweeper_settings
from sweeper.chronicle import Chronicle
from sweeper.events import Event, Kind
from sweeper.journal import AlreadyRun, Run
from sweeper.locks import LOCKS, build
from sweeper.locks.live import Addresses, fresh_value, open_ports
from sweeper.locks.ports import Ports
from sweeper.reconcile import Reconciled, reconcile
from sweeper.sweep import Rules, sweep


def chronicle() -> Chronicle:
    longest = timedelta(seconds=settings.SWEEPER_TIME_LIMIT + settings.SWEEPER_GRACE)
    return Chronicle(Path(settings.STATE_DIR) / "journal", longest)


def provider() -> HttpProvider:
    return HttpProvider(settings.PROVIDER_URL, live(), timeout=settings.PROVIDER_TIMEOUT)


def rules() -> Rules:
    return Rules(
        ttl=settings.SWEEPER_TTL,
        pending_for=settings.SWEEPER_PENDING_FOR,
        stop_on_lost_lease=settings.SWEEPER_STOP_ON_LOST_LEASE,
    )


def sweep_once(message: str) -> int:
    """One sweep for one message. Returns how many orders were settled; a message swept before is journalled and 0.

    Raises ImproperlyConfigured when the settings name what does not exist.
    """
    demand_known_settings()
    clock, journal = live(), chronicle()
    run = Run(
        run=uuid.uuid4(),
        box=settings.MARLOW_BOX,
        message=message,
        lock=settings.SWEEPER_LOCK,
        settle=settings.SWEEPER_SETTLE,
        question=settings.SWEEPER_QUESTION,
    )
    try:
        journal.begin(run, clock.now())
    except AlreadyRun:
        return 0
    with _ports(run.lock, run.box, str(run.run), clock) as ports:
        _reach_the_shop(run, journal)
        with provider() as asked:
            return sweep(
                run,
                lock=build(run.lock, ports),
                form=FORMS[run.settle],
                provider=asked,
                clock=clock,
                journal=journal,
                rules=rules(),
            )


@contextmanager
def _ports(lock: str, box: str, run: str, clock: Clock) -> Iterator[Ports]:
    """What this lock may need of the world, as the settings name it."""
    addresses = Addresses(
        redis=settings.LOCK_REDIS_URL,
        redlock=several(settings.LOCK_REDLOCK_URLS),
        redlock_timeout=settings.LOCK_REDLOCK_TIMEOUT,
        etcd=several(settings.LOCK_ETCD_URLS),
        zookeeper=settings.LOCK_ZOOKEEPER_HOSTS,
    )
    ports = Ports(
        clock=clock,
        box=box,
        run=run,
        every=settings.SWEEPER_EVERY,
        new_value=fresh_value,
        renew=settings.SWEEPER_RENEW_LEASE,
    )
    with open_ports(LOCKS[lock].server, ports, addresses, ttl=settings.SWEEPER_TTL) as opened:
        yield opened


def _reach_the_shop(run: Run, journal: Chronicle) -> None:
    """A run that can't reach its shop takes no lock, and one that takes it goes to work at once."""
    shop = connections["default"]
    shop.close_if_unusable_or_obsolete()  # an earlier run's session may be gone, and would be taken for ours
    try:
        shop.ensure_connection()
    except DatabaseError as down:
        error = f"{type(down).__name__}: {down}"[:500]
        journal.write(Event(live().now(), run.box, run.run, Kind.DIED, data={"error": error}))
        raise


def reconcile_once() -> Reconciled:
    """One look through the provider's charges for money without an order."""
    with provider() as asked:
        return reconcile(asked, live(), box=settings.MARLOW_BOX)


def open_box() -> int:
    """What a box does before its first message. Returns how many runs it had left open when it was killed.

    Raises ImproperlyConfigured for settings, LockUnavailable or a database error for a server that does not answer.
    """
    try:
        demand_lock()
        return chronicle().bury(settings.MARLOW_BOX, live().now())
    finally:
        connections.close_all()


def demand_lock() -> None:
    """Raise LockUnavailable unless what the lock stands on answers and is fit for it. Takes nothing.

    Raises ImproperlyConfigured for settings.
    """
    demand_known_settings()
    lock = settings.SWEEPER_LOCK
    with _ports(lock, settings.MARLOW_BOX, "opening", live()) as ports:
        build(lock, ports).demand_server(rules().job)


def worker_lost(message: str, error: str) -> None:
    """The process that swept this message is gone without a word: its run gets its last event."""
    try:
        chronicle().close_lost(message, live().now(), error)
    finally:
        connections.close_all()


def demand_known_settings() -> None:
    """Raise ImproperlyConfigured with the first thing the system check has against the settings."""
    for message in sweeper_settings():
        if isinstance(message, Error):
            raise ImproperlyConfigured(f"{message.msg} {message.hint or ''}".strip())
