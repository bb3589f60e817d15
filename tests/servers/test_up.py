"""`manage.py up` as a process: what a person starts, interrupts, kills and starts again."""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import psycopg
import pytest

from marlow.clock import wait_until
from marlow.servers.launcher import free_port
from marlow.servers.postgres import EmbeddedPostgres
from tests.servers.test_wednesday import ROOT, environment, evening

pytestmark = [pytest.mark.live, pytest.mark.xdist_group("live")]  # one evening at a time
UP = [sys.executable, "manage.py", "up"]


def left_running(folder: Path) -> list[str]:
    """Command lines of processes that have to do with this state folder."""
    found = []
    for process in psutil.process_iter(["cmdline", "environ"]):
        line, own = " ".join(process.info["cmdline"] or []), process.info["environ"] or {}
        if str(folder) in line or own.get("MARLOW_STATE_DIR", "").startswith(str(folder)):
            found.append(line)
    return found


class Started:
    """An `up` in a process group of its own, as a terminal would start it."""

    def __init__(self, folder: Path, *words: str, **extra: str) -> None:
        self.folder = folder
        self.err = (folder / "up.err").open("w+")
        self.process = subprocess.Popen(
            [*UP, *(() if "--port" in words else ("--port", str(free_port()))), *words],
            cwd=ROOT,
            env=environment(folder, **extra),
            stdout=subprocess.PIPE,
            stderr=self.err,
            text=True,
            start_new_session=True,
        )

    def wait_for(self, words: str) -> None:
        """Read its output until these words come."""
        out = self.process.stdout
        assert out is not None
        for line in out:
            if words in line:
                return
        raise AssertionError(f"ended before saying {words!r}: {self.said()}")

    def end(self, number: int) -> int:
        os.killpg(self.process.pid, number)
        self.process.communicate(timeout=30)
        return self.process.returncode

    def said(self) -> str:
        self.err.seek(0)
        return self.err.read()

    def close(self) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.communicate()
        if self.process.stdout:
            self.process.stdout.close()
        self.err.close()


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path
    assert wait_until(lambda: not left_running(tmp_path), 10), left_running(tmp_path)


def test_ctrl_c_in_the_middle_of_the_evening_stops_everything(folder: Path) -> None:
    """Every process and server it started is gone, and the exit status says that it was interrupted."""
    started = Started(folder)
    started.wait_for("took the lock")
    assert started.end(signal.SIGINT) == 130
    assert left_running(folder) == []
    started.close()


def test_a_start_after_kill_9_works_and_keeps_the_users(folder: Path) -> None:
    """The leashes end what was left; stale files are no obstacle; the shop is new, the logins are not."""
    started = Started(folder)
    started.wait_for("took the lock")
    started.end(signal.SIGKILL)
    started.close()
    assert wait_until(lambda: not left_running(folder), 10)
    verdict = evening(folder)
    assert (verdict["phantom"], verdict["double_settles"]) == (2, 2)


def test_the_shop_stays_open_on_friday_until_ctrl_c(folder: Path) -> None:
    """After the verdict pages are served and the clock stands."""
    started = Started(folder, "--port", str(port := free_port()))
    started.wait_for("the clock stands")
    import httpx

    assert httpx.get(f"http://127.0.0.1:{port}/admin/login/").status_code == 200
    clock = json.loads((folder / "demo" / "clock.json").read_text())
    assert clock["started"] is None
    assert clock["epoch"].startswith("2026-02-13")
    assert started.end(signal.SIGINT) == 130
    started.close()


def test_a_second_up_in_the_same_folder_is_refused_with_what_to_do(folder: Path) -> None:
    """Two at once would share a shop and a clock."""
    started = Started(folder)
    started.wait_for("took the lock")
    second = Started(folder)
    assert second.process.wait(30) == 1
    assert "MARLOW_STATE_DIR" in second.said()
    started.end(signal.SIGTERM)
    started.close()
    second.close()


def test_a_port_in_use_gives_another_port_and_says_so(folder: Path) -> None:
    """Somebody else's server is left alone."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        started = Started(folder, "--port", str(taken.getsockname()[1]))
        started.wait_for("The shop is open")
        assert "is in use; the shop opens on" in started.said()
        started.end(signal.SIGTERM)
        started.close()


@pytest.mark.parametrize(
    ("setting", "value", "says"),
    [
        ("SWEEPER_LOCK", "redis-navie", "Set it to one of: none, redis-naive"),
        ("SWEEPER_SETTLE", "fenced", "hands out no token"),
        ("MARLOW_TIME_SCALE", "fast", "MARLOW_TIME_SCALE"),
        ("MARLOW_TIME_SCALE", "0", "more than 0"),
        ("SWEEPER_STOP_ON_LOST_LEASE", "ture", "neither on nor off"),
        ("LOCK_REDIS_URL", "http://x", "LOCK_REDIS_URL makes no sense"),
        ("CELERY_BROKER_URL", "redis://127.0.0.1:1/0", "does not answer"),
        ("DATABASE_URL", "postgres://u:p@127.0.0.1:1/x", "DATABASE_URL does not answer"),
        ("DATABASE_URL", "postgres://u:p@h:99999/x", "DATABASE_URL makes no sense"),
    ],
)
def test_a_setting_that_makes_no_sense_is_a_clear_error(folder: Path, setting: str, value: str, says: str) -> None:
    """Nothing is started for long, and the sentence says what to set."""
    started = Started(folder, "--once", **{setting: value})
    assert started.process.wait(60) == 1
    assert says in started.said()
    assert started.said().count("Traceback") == 0
    started.close()


def test_a_worker_process_that_is_killed_leaves_a_run_that_says_so(folder: Path) -> None:
    """kill -9 of the process that sweeps: its worker writes the run's last event; nothing is redelivered."""
    started = Started(folder, "--once", "--json")
    out = started.folder / "demo" / "box-b.log"
    assert wait_until(lambda: out.exists() and '"kind": "answered"' in out.read_text(), 40)
    group = int((folder / "demo" / "box-b.group").read_text())
    provider = json.loads((folder / "demo" / "addresses.json").read_text())["PROVIDER_URL"]
    [sweeping] = [
        child
        for child in psutil.Process(group).children(recursive=True)
        if any(line.raddr and provider.endswith(f":{line.raddr.port}") for line in child.net_connections())
    ]
    sweeping.kill()
    said, _ = started.process.communicate(timeout=60)
    verdict = json.loads(said.splitlines()[-1])
    [died] = [event for event in verdict["events"] if event["kind"] == "died"]
    assert "WorkerLostError" in died["error"]
    assert not [event for event in verdict["events"] if event["kind"] == "redelivered"]
    started.close()


def test_a_box_that_ends_early_ends_the_evening_with_its_last_words(folder: Path) -> None:
    """Nobody waits for a box that is gone."""
    started = Started(folder)
    started.wait_for("took the lock")
    group = int((folder / "demo" / "box-b.group").read_text())
    os.killpg(group, signal.SIGKILL)
    assert started.process.wait(30) == 1
    assert "box-b ended" in started.said()
    started.close()


def test_a_judge_that_is_killed_is_started_anew_and_the_shop_stays_open(folder: Path) -> None:
    """kill -9 of its worker: a word on the screen, another worker, and nothing left of the first."""
    started = Started(folder)
    started.wait_for("The shop is open")
    record = folder / "demo" / "judge-itself.group"
    first = psutil.Process(int(record.read_text()))
    assert wait_until(lambda: len(first.children(recursive=True)) > 1, 30)  # its pool and its beat
    old = [first, *first.children(recursive=True)]
    first.kill()
    assert wait_until(lambda: "judge: started anew: it ended with status 137" in started.said(), 10), started.said()
    assert wait_until(lambda: record.exists() and record.read_text() not in ("", str(first.pid)), 30)
    assert wait_until(lambda: not any(process.is_running() for process in old), 5), old
    assert started.process.poll() is None
    assert started.end(signal.SIGINT) == 130
    started.close()


def test_servers_that_are_given_are_used_and_left_running_and_a_real_shop_is_never_cleared(folder: Path) -> None:
    """Nothing embedded starts beside a given database; a shop that no scenario set up is left as it was."""
    postgres = EmbeddedPostgres(folder / "given").start()
    verdict = evening(folder / "one", DATABASE_URL=postgres.url())
    assert verdict["phantom"] == 2
    assert not (folder / "one" / "demo" / "postgres").exists()
    with psycopg.connect(postgres.url(), autocommit=True) as connection:
        connection.execute("delete from exercises_performance")
        connection.execute("update auth_user set first_name = 'Kept' where username = 'student'")
    refused = Started(folder, "--once", DATABASE_URL=postgres.url())
    assert refused.process.wait(60) == 1
    assert "no scenario set it up" in refused.said()
    refused.close()
    with psycopg.connect(postgres.url(), autocommit=True) as connection:
        connection.execute("create database somebody")
    theirs = postgres.url("somebody")
    with psycopg.connect(theirs, autocommit=True) as connection:
        connection.execute("create table invoices (id int)")
    refused = Started(folder, "--once", DATABASE_URL=theirs)
    assert refused.process.wait(60) == 1
    refused.close()
    with psycopg.connect(theirs) as connection:
        tables = connection.execute("select relname from pg_stat_user_tables").fetchall()
    assert tables == [("invoices",)], "no table of ours and no login was made there"
    with psycopg.connect(postgres.url(), autocommit=True) as connection:
        assert connection.execute("select count(*) from shop_order").fetchone()[0] > 14
        assert connection.execute("select count(*) from auth_user where first_name = 'Kept'").fetchone() == (1,)
    postgres.stop()
