"""Behind a pooler in transaction mode: how an advisory lock breaks there, and that a box can tell."""

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest
from django.db import connections
from pytest_django import Settings
from pytest_django.plugin import DjangoDbBlocker

from marlow import doctor
from marlow.servers import pgbouncer
from marlow.servers.launcher import ServerError
from marlow.servers.pgbouncer import EmbeddedPgbouncer
from marlow.servers.postgres import EmbeddedPostgres
from sweeper.box import open_box
from sweeper.locks.live import LivePostgres
from sweeper.locks.ports import LockUnavailable

TRY, UNLOCK = "select pg_try_advisory_lock(7)", "select pg_advisory_unlock(7)"


@pytest.fixture(scope="module")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedPostgres]:
    server = EmbeddedPostgres(tmp_path_factory.mktemp("postgres")).start()
    yield server
    server.stop()


@pytest.fixture
def pooler(tmp_path: Path, postgres: EmbeddedPostgres) -> Iterator[EmbeddedPgbouncer]:
    try:
        server = EmbeddedPgbouncer(tmp_path, postgres).start()
    except ServerError as missing:
        if pgbouncer.INSTALL not in str(missing):
            raise
        pytest.skip(str(missing))
    yield server
    server.stop()


@pytest.fixture
def shop_at(monkeypatch: pytest.MonkeyPatch, django_db_blocker: DjangoDbBlocker) -> Iterator["ShopAt"]:
    """Point the connections that Django opens from now on at another server, with all the settings ask of them."""
    with django_db_blocker.unblock():
        yield ShopAt(monkeypatch)


class ShopAt:
    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.monkeypatch = monkeypatch

    def __call__(self, url: str) -> None:
        there = urlsplit(url)
        place = {
            "HOST": there.hostname,
            "PORT": there.port,
            "NAME": there.path.lstrip("/"),
            "USER": there.username,
            "PASSWORD": there.password,
        }
        self.monkeypatch.setitem(connections.settings, "default", {**connections.settings["default"], **place})


class Client:
    """One client through the pooler."""

    def __init__(self, url: str) -> None:
        self.connection = psycopg.connect(url, autocommit=True, prepare_threshold=None)

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *error: object) -> None:
        self.connection.close()

    def ask(self, sql: str) -> object:
        row = self.connection.execute(sql).fetchone()
        return row and row[0]


def held(postgres: EmbeddedPostgres) -> list[int]:
    """The server processes that hold the lock, asked of Postgres itself."""
    with psycopg.connect(postgres.url()) as connection:
        rows = connection.execute("select pid from pg_locks where locktype = 'advisory' and granted").fetchall()
    return [pid for (pid,) in rows]


def test_two_clients_are_both_told_that_the_lock_is_theirs(
    pooler: EmbeddedPgbouncer, postgres: EmbeddedPostgres
) -> None:
    """They are lent one session after the other, and a session gets its own lock again and again."""
    with Client(pooler.url()) as one, Client(pooler.url()) as other:
        assert (one.ask(TRY), other.ask(TRY)) == (True, True)
        assert len(held(postgres)) == 1


@pytest.mark.filterwarnings("ignore:.*you don't own a lock")
def test_an_unlock_lands_on_another_session_and_the_lock_stays(
    pooler: EmbeddedPgbouncer, postgres: EmbeddedPostgres
) -> None:
    """While another client's transaction has the session that took it: the answer is false, and nobody holds it
    and nobody gets it, its owner's end included.
    """
    with Client(pooler.url()) as owner, Client(pooler.url()) as other:
        assert owner.ask(TRY) is True
        [session] = held(postgres)
        with other.connection.transaction():
            assert other.ask("select pg_backend_pid()") == session
            assert owner.ask(UNLOCK) is False
    assert held(postgres) == [session]


class TestABox:
    def test_can_tell_that_it_is_behind_a_pooler(self, pooler: EmbeddedPgbouncer, shop_at: ShopAt) -> None:
        """Every time it asks."""
        shop_at(pooler.url())
        assert all("a pooler in transaction mode" in LivePostgres().pooler() for _ in range(10))

    def test_can_tell_so_while_others_keep_the_pooler_busy(self, pooler: EmbeddedPgbouncer, shop_at: ShopAt) -> None:
        """Another client's open transaction has one of its two sessions."""
        shop_at(pooler.url())
        with Client(pooler.url()) as other, other.connection.transaction():
            other.ask("select 1")
            assert LivePostgres().pooler()

    def test_says_nothing_of_a_pooler_where_there_is_none(self, postgres: EmbeddedPostgres, shop_at: ShopAt) -> None:
        """The same Postgres, asked directly, is fit for the lock."""
        shop_at(postgres.url())
        assert LivePostgres().pooler() == ""

    def test_does_not_open_behind_one_with_a_lock_that_lives_in_a_session(
        self, pooler: EmbeddedPgbouncer, shop_at: ShopAt, settings: Settings
    ) -> None:
        """And says which setting to point elsewhere."""
        shop_at(pooler.url())
        settings.SWEEPER_LOCK, settings.SWEEPER_SETTLE = "postgres-advisory", "guarded"
        with pytest.raises(LockUnavailable, match="Point DATABASE_URL at Postgres itself"):
            open_box()


class TestTheDoctor:
    def test_tells_that_a_pooler_dropped_the_keepalives(self, pooler: EmbeddedPgbouncer, shop_at: ShopAt) -> None:
        """What was set is not what holds: the number is the server's own, over two hours."""
        shop_at(pooler.url())
        found = doctor.vanished_box()
        assert found.state is doctor.State.NOTE
        assert "7875 s" in found.found
        assert "pooler" in found.do

    def test_tells_the_number_that_a_server_took(self, postgres: EmbeddedPostgres, shop_at: ShopAt) -> None:
        """Directly at Postgres all four settings hold."""
        shop_at(postgres.url())
        found = doctor.vanished_box()
        assert found.state is doctor.State.OK
        assert "60 s" in found.found
