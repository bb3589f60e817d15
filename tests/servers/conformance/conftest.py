"""What each strategy stands on, and boxes over it."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from urllib.parse import quote

import pytest
from django.conf import settings
from django.db import connection
from django.db.backends.base.base import BaseDatabaseWrapper

from tests.servers.conformance.boxes import Boxes
from tests.servers.conformance.stands import OnEtcd, OnPostgres, OnRedis, OnRedlock, OnZooKeeper, Stand
from tests.servers.conformance.strategies import Strategy


@pytest.fixture
def database(transactional_db: None) -> str:
    """The tests' own database, for processes of their own."""
    at = {name: quote(str(connection.settings_dict[name])) for name in ("USER", "PASSWORD", "HOST", "PORT", "NAME")}
    return "postgres://{USER}:{PASSWORD}@{HOST}:{PORT}/{NAME}".format_map(at)


STANDS: dict[str, Callable[[pytest.FixtureRequest], Stand]] = {
    "": lambda request: OnPostgres(request.getfixturevalue("database")),
    "redis": lambda request: OnRedis(settings.LOCK_REDIS_URL),
    "redlock": lambda request: OnRedlock(*request.getfixturevalue("redlock_urls")),
    "etcd": lambda request: OnEtcd(request.getfixturevalue("etcd_urls")),
    "zookeeper": lambda request: OnZooKeeper(request.getfixturevalue("zookeeper_hosts")),
}


@pytest.fixture
def stand(request: pytest.FixtureRequest, strategy: Strategy) -> Stand:
    """What this strategy stands on, shared with other tests and empty."""
    stand = STANDS[strategy.server](request)
    stand.clear()
    return stand


@pytest.fixture
def ask_for_database(request: pytest.FixtureRequest) -> Callable[[], str]:
    """It is there, and empty, for the test that asks."""
    return lambda: str(request.getfixturevalue("database"))


@pytest.fixture
def sessions(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Boxes' sessions open when they are needed, although no test can name them beforehand as Django asks."""
    monkeypatch.setattr(BaseDatabaseWrapper, "ensure_connection", _open_when_needed)


@pytest.fixture
def boxes(
    request: pytest.FixtureRequest, strategy: Strategy, stand: Stand, ask_for_database: Callable[[], str]
) -> Iterator[Boxes]:
    if stand.database:
        request.getfixturevalue("sessions")
    with ExitStack() as closing:
        yield Boxes(strategy, stand, ask_for_database, closing)


def _open_when_needed(wrapper: BaseDatabaseWrapper) -> None:
    if wrapper.connection is None:
        with wrapper.wrap_database_errors:
            wrapper.connect()
