"""postgres-advisory on a real Postgres: unlocks, transactions, keys, and how long the server keeps a lost box's lock.

What becomes of a run whose session is lost is in `test_advisory_session`.
"""

import os
import subprocess
import sys
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from django.db import IntegrityError, connection, connections, transaction
from pytest_django import Settings

from shop.models import Book, Order
from shop.provider.answers import Answer
from sweeper.events import Kind
from sweeper.locks.base import Lease, Refusal, Released
from sweeper.locks.ports import InTransaction
from sweeper.locks.postgres_advisory import key_of
from sweeper.sweep import LockMislaid
from tests.fakes import ScriptedProvider
from tests.servers.worker import Worker, acquire_advisory, advisory_is_free, old_orders, ports

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "journal"])

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def _closed_sessions() -> Iterator[None]:
    yield
    for each in connections.all():
        each.close()


def leased(answer: Lease | Refusal) -> Lease:
    assert isinstance(answer, Lease)
    return answer


# --- An unlock that answers false ---------------------------------------------------------------------------------


def unlock_raw(name: str = "sweeper") -> bool:
    """pg_advisory_unlock by itself, past the lease."""
    with connection.cursor() as cursor:
        cursor.execute("select pg_advisory_unlock(%s)", (key_of(name),))
        return bool(cursor.fetchone()[0])


class Unlocking(ScriptedProvider):
    """While it is asked, somebody lets go of the lock in the run's own session."""

    def lookup(self, key: str) -> Answer:
        assert unlock_raw()
        return super().lookup(key)


@pytest.mark.parametrize("settle", ["unguarded", "guarded"])
def test_an_unlock_that_answers_false_ends_the_run_as_an_error(settle: str) -> None:
    """Somebody else may have held it meanwhile: a death on the record, though every row was settled."""
    old_orders(1)
    run = Worker("postgres-advisory", settle, Unlocking())
    with pytest.raises(LockMislaid, match="pooler in transaction mode"):
        run.sweep()
    assert run.kinds()[-2:] == [Kind.RELEASED, Kind.DIED]
    released, died = run.events[-2:]
    assert released.data == {"released": "not_ours", "deleted": False}
    assert died.data["error"].startswith("LockMislaid")


def test_a_session_whose_unlock_answered_false_may_take_the_lock_again() -> None:
    """It bears no mark of a lock that it has not got, so its next run is not refused for ever."""
    lease = leased(acquire_advisory())
    assert unlock_raw()
    assert lease.release().released is Released.NOT_OURS
    assert leased(acquire_advisory()).release().released is Released.OURS


# --- Transactions -------------------------------------------------------------------------------------------------


def test_a_lock_is_not_taken_inside_a_transaction() -> None:
    """InTransaction, and nothing is held: another session gets it at once."""
    with transaction.atomic():
        with pytest.raises(InTransaction, match="outside of any transaction"):
            acquire_advisory()
        assert advisory_is_free()
    assert advisory_is_free()


def refused_by_the_database(order: Order) -> None:
    Order.objects.create(
        key=order.key, book=order.book, reference="again", amount_minor=1, created_at=order.created_at
    )


def refused_by_the_code(order: Order) -> None:
    raise KeyError("the roof fell in")


@pytest.mark.parametrize(
    ("work", "says"), [(refused_by_the_database, IntegrityError), (refused_by_the_code, KeyError)]
)
def test_a_transaction_that_fails_under_the_lock_raises_its_own_error_and_the_lock_is_free(
    work: Callable[[Order], None], says: type[Exception]
) -> None:
    """What the database or the code said comes out, not something about the lock, and the lock is let go."""
    [order] = old_orders(1)
    with pytest.raises(says), leased(acquire_advisory()), transaction.atomic():
        work(order)
    assert advisory_is_free()


def test_a_lock_is_not_let_go_inside_a_transaction() -> None:
    """InTransaction, and it stays held until the commit is there: the second holder reads what the first wrote."""
    [order] = old_orders(1)
    lease = leased(acquire_advisory())
    with transaction.atomic():
        Book.objects.filter(pk=order.book_id).update(title="Renamed")
        with pytest.raises(InTransaction, match="free before what was written is committed"):
            lease.release()
        assert isinstance(acquire_advisory("journal"), Refusal)
    assert lease.release().released is Released.OURS
    second = leased(acquire_advisory("journal"))
    assert title_read_by_the_second_holder(order) == "Renamed"
    second.release()


def test_a_raw_unlock_before_the_commit_lets_the_second_holder_read_the_old_value() -> None:
    """What the test above keeps from happening, seen: two holders, one after the other, and a write in between."""
    [order] = old_orders(1)
    lease = leased(acquire_advisory())
    before = order.book.title
    with transaction.atomic():
        Book.objects.filter(pk=order.book_id).update(title="Renamed")
        assert unlock_raw()
        second = leased(acquire_advisory("journal"))
        assert title_read_by_the_second_holder(order) == before != "Renamed"
    assert second.release().released is Released.OURS
    assert lease.release().released is Released.NOT_OURS


def title_read_by_the_second_holder(order: Order) -> str:
    return Book.objects.using("journal").get(pk=order.book_id).title


# --- The key ------------------------------------------------------------------------------------------------------


def python(code: str, **environment: str) -> str:
    """What a Python process of its own prints, in this environment and these variables."""
    ran = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **environment},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.strip()


def test_the_key_is_the_same_in_every_process() -> None:
    """Python's own hash differs from process to process; a key made of it would exclude nobody."""
    print_both = "from sweeper.locks.postgres_advisory import key_of; print(key_of('sweeper'), hash('sweeper'))"
    (one, hash_one), (other, hash_other) = (python(print_both, PYTHONHASHSEED=seed).split() for seed in ("1", "2"))
    assert int(one) == int(other) == key_of("sweeper")
    assert hash_one != hash_other


def test_two_names_with_one_crc32_do_not_exclude_each_other() -> None:
    """On the server, by two sessions, at the same time."""
    assert zlib.crc32(b"plumless") == zlib.crc32(b"buckeroo")
    lease = leased(acquire_advisory(name="plumless"))
    assert advisory_is_free("buckeroo")
    assert not advisory_is_free("plumless")
    lease.release()


# --- How long the server keeps a lock whose box is gone -------------------------------------------------------------

SHOWN = """
    select current_setting('tcp_keepalives_idle')::int, current_setting('tcp_keepalives_interval')::int,
           current_setting('tcp_keepalives_count')::int,
           current_setting('tcp_user_timeout')::int / 1000  -- shown in milliseconds
"""


def test_the_session_that_holds_the_lock_has_the_keepalives_that_are_set(settings: Settings) -> None:
    """On the server's side of that very connection, and the user timeout with them."""
    lease = leased(acquire_advisory())
    assert ports().postgres.row(SHOWN) == (
        settings.MARLOW_TCP_KEEPALIVES_IDLE,
        settings.MARLOW_TCP_KEEPALIVES_INTERVAL,
        settings.MARLOW_TCP_KEEPALIVES_COUNT,
        settings.MARLOW_TCP_USER_TIMEOUT,
    )
    assert lease.release().released is Released.OURS


def test_other_settings_are_other_keepalives() -> None:
    """A box that is told other numbers has them on its session."""
    code = (
        "import os; os.environ['DJANGO_SETTINGS_MODULE'] = 'marlow.settings'; import django; django.setup();"
        "from sweeper.locks.live import LivePostgres;"
        f"print(*LivePostgres().row('''{SHOWN}'''))"
    )
    named = ("KEEPALIVES_IDLE", "KEEPALIVES_INTERVAL", "KEEPALIVES_COUNT", "USER_TIMEOUT")
    told = {f"MARLOW_TCP_{name}": number for name, number in zip(named, ("7", "2", "4", "9"), strict=True)}
    assert python(code, **told) == "7 2 4 9"
