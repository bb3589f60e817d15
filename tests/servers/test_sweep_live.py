"""The sweep as a box does it, from the settings: real Postgres, Redis and provider, and what goes wrong with them."""

import os
import signal
import uuid
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.db import OperationalError, connection, connections
from pytest_django import Settings
from redis import Redis

from marlow.clock import real_now, real_sleep, wait_until
from shop.models import Order, Refund, StrayCharge
from shop.provider.client import HttpProvider
from shop.shelf import totals
from sweeper import box
from sweeper.chronicle import Chronicle
from sweeper.events import Event as JournalEvent
from sweeper.models import Event, SweepRun
from tests.fakes import make_book, make_order
from tests.servers.provider_fixture import ProviderProcess, running_provider

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "journal"])


@pytest.fixture
def provider(tmp_path: Path, settings: Settings) -> Iterator[ProviderProcess]:
    settings.STATE_DIR, settings.MARLOW_BOX = tmp_path / "state", "box-a"
    settings.SWEEPER_LOCK, settings.SWEEPER_SETTLE, settings.SWEEPER_QUESTION = "redis-token", "guarded", "lookup"
    with Redis.from_url(settings.LOCK_REDIS_URL) as locks:
        locks.flushdb()
    with running_provider(tmp_path / "provider") as provider:
        settings.PROVIDER_URL = provider.url
        provider.dial.set(real_now(), 1)  # the box lives on the real clock here, and so does its provider
        provider.dial.start()
        yield provider
    for each in connections.all():
        each.close()


def old_order(reference: str, minutes: int = 10) -> Order:
    book = make_book(5, number=minutes)
    return make_order(
        book, key=uuid.uuid4().hex, reference=reference, created_at=real_now() - timedelta(minutes=minutes)
    )


def kinds() -> list[str]:
    return list(Event.objects.values_list("kind", flat=True))


def test_a_box_sweeps_from_its_settings(provider: ProviderProcess) -> None:
    """Lock, list, ask, settle, release, each journalled on the way."""
    order = old_order("W-1")
    assert box.sweep_once("m-1") == 1
    order.refresh_from_db()
    assert order.status == "abandoned"
    assert kinds() == [
        *("started", "acquired", "listed", "asked", "answered", "settling", "settled", "released", "finished")
    ]


def test_a_message_delivered_twice_is_swept_once(provider: ProviderProcess) -> None:
    """The second delivery is a refusal on the record."""
    old_order("W-1")
    box.sweep_once("m-1")
    assert box.sweep_once("m-1") == 0
    assert SweepRun.objects.count() == 1
    assert kinds()[-1] == "redelivered"


def test_settings_nobody_knows_are_refused_before_anything_is_touched(
    provider: ProviderProcess, settings: Settings
) -> None:
    """A clear error, and no run."""
    settings.SWEEPER_LOCK = "zookeper"
    with pytest.raises(ImproperlyConfigured, match="SWEEPER_LOCK"):
        box.sweep_once("m-1")
    assert not SweepRun.objects.exists()


@pytest.mark.parametrize("mode", ["html", "garbage", "refusing"])
def test_nonsense_from_the_provider_settles_nothing(provider: ProviderProcess, mode: str) -> None:
    """Not a yes and not a no: the row waits for the next run, and the journal says what came."""
    order = old_order("W-1")
    provider.set(lookup={"mode": mode})
    assert box.sweep_once("m-1") == 0
    order.refresh_from_db()
    assert order.status == "pending"
    skipped = Event.objects.get(kind="skipped")
    assert "the provider answered" in skipped.data["why"]


def test_a_wrong_amount_is_refunded_and_never_completes(provider: ProviderProcess) -> None:
    """What landed is not what was ordered: the copy goes back, the money is due back."""
    order = old_order("W-1")
    with HttpProvider(provider.url, box.live()) as shop:
        shop.charge(order.key, order.amount_minor)
    provider.set(lookup={"mode": "wrong_amount"})
    box.sweep_once("m-1")
    order.refresh_from_db()
    assert (order.status, Refund.objects.get().amount_minor) == ("abandoned", order.amount_minor + 1)
    assert totals().lost == 0
    provider.set()
    for _ in range(2):  # the provider refuses to give back more than landed; its list then says what did
        box.reconcile_once()
    refund = Refund.objects.get()
    assert (refund.state, refund.amount_minor) == ("sent", order.amount_minor)


@pytest.mark.parametrize("lock", ["redis-token", "postgres-advisory"])
def test_a_session_that_is_ended_mid_run_keeps_the_journal_and_loses_nothing(
    provider: ProviderProcess, settings: Settings, lock: str
) -> None:
    """The server ends the working session between two rows: what was settled stays, the rest waits."""
    settings.SWEEPER_LOCK = lock
    first, second = old_order("W-1", 12), old_order("W-2", 11)
    provider.set(lookup={"mode": "fast"})
    ended = EndSessionAt("W-2")
    with ended, pytest.raises(OperationalError):
        box.sweep_once("m-1")
    first.refresh_from_db()
    second.refresh_from_db()
    assert (first.status, second.status) == ("abandoned", "pending")
    assert kinds()[-2:] == ["released", "died"]
    run = SweepRun.objects.get()
    assert run.state == "died"
    settings.SWEEPER_LOCK = "postgres-advisory"
    assert box.sweep_once("m-2") == 1, "the next run finds the lock free and the row pending"


def test_a_shop_that_can_t_be_reached_is_a_death_on_the_record_and_no_lock_is_taken(
    provider: ProviderProcess, settings: Settings
) -> None:
    """The journal's connection still works, the shop's does not: the run says so and leaves the lock alone."""
    order = old_order("W-1")
    connection.close()
    port = connection.settings_dict["PORT"]
    connection.settings_dict["PORT"] = 1
    try:
        with pytest.raises(OperationalError):
            box.sweep_once("m-1")
    finally:
        connection.settings_dict["PORT"] = port
    assert kinds() == ["started", "died"]
    with Redis.from_url(settings.LOCK_REDIS_URL) as locks:
        assert locks.keys("lock:*") == []
    order.refresh_from_db()
    assert order.status == "pending"


def test_a_run_killed_in_the_middle_is_closed_when_its_box_starts_again(provider: ProviderProcess) -> None:
    """kill -9 leaves no last word; the box's next start writes it, and the next sweep goes on."""
    old_order("W-1", 12)
    provider.set(lookup={"mode": "dark"})
    connections.close_all()
    child = os.fork()
    if child == 0:
        try:
            box.sweep_once("m-1")
        finally:
            os._exit(0)
    assert wait_until(lambda: "asked" in kinds(), 10)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    assert SweepRun.objects.get().state == "running"
    assert box.open_box() == 1
    assert (SweepRun.objects.get().state, kinds()[-1]) == ("died", "died")


def test_a_late_landing_leaves_money_without_an_order_until_reconciled(provider: ProviderProcess) -> None:
    """The shop that shipped asked, heard no, released; then the charge landed."""
    order = old_order("W-1")
    provider.set(charge={"mode": "late", "lands_after": 1.0})
    with HttpProvider(provider.url, box.live(), timeout=0.1) as shop:
        assert not shop.charge(order.key, order.amount_minor).known
    box.sweep_once("m-1")
    order.refresh_from_db()
    assert order.status == "abandoned"
    provider.set()
    with HttpProvider(provider.url, box.live()) as shop:
        assert wait_until(lambda: shop.lookup(order.key).verdict == "yes", 5)
    assert box.reconcile_once().stray == 1
    order.refresh_from_db()
    assert (StrayCharge.objects.count(), Refund.objects.get().state) == (1, "sent")
    assert order.refunded_at is not None


def test_a_cancelled_key_never_lands_late(provider: ProviderProcess, settings: Settings) -> None:
    """The question that also bars the key: its no is final."""
    settings.SWEEPER_QUESTION = "cancel"
    order = old_order("W-1")
    provider.set(charge={"mode": "late", "lands_after": 0.5})
    with HttpProvider(provider.url, box.live(), timeout=0.1) as shop:
        shop.charge(order.key, order.amount_minor)
    box.sweep_once("m-1")
    provider.set()
    real_sleep(0.8)
    assert box.reconcile_once().stray == 0
    with HttpProvider(provider.url, box.live()) as shop:
        assert shop.lookup(order.key).verdict == "no"


class EndSessionAt:
    """Has the server end the working session when the journal notes the intent to settle this order."""

    def __init__(self, reference: str) -> None:
        self.reference = reference

    def __enter__(self) -> None:
        self.plain = Chronicle.write
        plain, reference = self.plain, self.reference

        def write(chronicle: Chronicle, event: JournalEvent) -> None:
            plain(chronicle, event)
            if event.kind == "settling" and event.order == reference:
                pid = connection.connection.info.backend_pid
                with connections["journal"].cursor() as cursor:
                    cursor.execute("select pg_terminate_backend(%s, 2000)", (pid,))

        Chronicle.write = write  # type: ignore[method-assign]  # put back on leaving

    def __exit__(self, *error: object) -> None:
        Chronicle.write = self.plain  # type: ignore[method-assign]  # put back on leaving
