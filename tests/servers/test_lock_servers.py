"""What `manage.py up` starts for a lock, and what the doctor says of it."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from pytest_django import Settings

from marlow import doctor
from marlow.management.commands.up import open_servers
from marlow.servers import etcd, zookeeper
from marlow.servers.launcher import ServerError

SETTING = {
    "redlock": "LOCK_REDLOCK_URLS",
    "etcd": "LOCK_ETCD_URLS",
    "zookeeper": "LOCK_ZOOKEEPER_HOSTS",
}
BASE = {"DATABASE_URL": "postgres://given", "CELERY_BROKER_URL": "redis://given", "LOCK_REDIS_URL": "redis://given"}


@pytest.fixture(params=sorted(SETTING))
def lock(request: pytest.FixtureRequest, settings: Settings) -> str:
    """Each lock that stands on servers of its own; the shop's others are given, so that none of them starts."""
    try:
        if request.param == "etcd":
            etcd.binary()
        if request.param == "zookeeper":
            zookeeper.command(Path("zoo.cfg"))
    except ServerError as missing:
        pytest.skip(str(missing))
    settings.UP = {**settings.UP, "SWEEPER_LOCK": request.param}
    settings.GIVEN_SERVERS = BASE
    settings.SWEEPER_LOCK = request.param
    return str(request.param)


@contextmanager
def opened(folder: Path, settings: Settings, lock: str) -> Iterator[str]:
    """The demo's servers, with the settings that its processes would then read."""
    with open_servers(folder) as addresses:
        assert set(addresses) == {*BASE, SETTING[lock]}
        setattr(settings, SETTING[lock], addresses[SETTING[lock]])
        yield addresses[SETTING[lock]]


def test_the_demo_brings_what_its_lock_stands_on(tmp_path: Path, settings: Settings, lock: str) -> None:
    """The doctor finds it fit while it runs, and says that it is gone afterwards."""
    with opened(tmp_path, settings, lock) as addresses:
        assert addresses.count(":") >= (10 if lock == "redlock" else 1)
        assert doctor.locks().state is doctor.State.OK
        assert lock in doctor.locks().found
        assert list(tmp_path.rglob("*.group"))
    assert not list(tmp_path.rglob("*.group"))
    settings.GIVEN_SERVERS = {SETTING[lock]: addresses}
    assert doctor.locks().state is doctor.State.MISSING


def test_servers_that_the_environment_names_are_used(tmp_path: Path, settings: Settings, lock: str) -> None:
    """Nothing starts beside them."""
    settings.GIVEN_SERVERS = {**BASE, SETTING[lock]: "somewhere"}
    with open_servers(tmp_path) as addresses:
        assert addresses == settings.GIVEN_SERVERS
        assert not list(tmp_path.rglob("*.group"))


@pytest.mark.parametrize("other", ["redis-token", "postgres-advisory", "slot", "redis-navie"])
def test_no_other_lock_starts_any(tmp_path: Path, settings: Settings, other: str) -> None:
    """Not even one that nobody knows: the processes that are started say so."""
    settings.UP, settings.GIVEN_SERVERS = {**settings.UP, "SWEEPER_LOCK": other}, BASE
    with open_servers(tmp_path) as addresses:
        assert addresses == BASE
        assert not list(tmp_path.rglob("*.group"))


@pytest.mark.parametrize("lock", ["etcd"], indirect=True)
def test_a_key_of_an_earlier_evening_is_gone(tmp_path: Path, settings: Settings, lock: str) -> None:
    """A server that keeps its data would refuse the first box what a killed one held."""
    body = {"key": "bG9jaw==", "value": "Ym94LWI="}
    with opened(tmp_path, settings, lock) as first:
        httpx.post(f"{first}/v3/kv/put", json=body).raise_for_status()
        assert "kvs" in httpx.post(f"{first}/v3/kv/range", json=body).json()
    with opened(tmp_path, settings, lock) as second:
        assert "kvs" not in httpx.post(f"{second}/v3/kv/range", json=body).json()
