"""Servers that start, answer, and leave with their parent."""

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import psutil
import psycopg
import pytest
import redis

from marlow.clock import wait_until
from marlow.servers.launcher import ServerError, find_binary, launch
from marlow.servers.postgres import EmbeddedPostgres
from marlow.servers.redis import EmbeddedRedis

ROOT = Path(__file__).parents[2]


def test_postgres_starts_answers_and_stops(tmp_path: Path) -> None:
    """A fresh cluster answers on loopback and is gone after stop."""
    server = EmbeddedPostgres(tmp_path).start()
    with psycopg.connect(server.url()) as connection:
        assert connection.execute("show server_version_num").fetchone()[0] >= "150000"
    server.stop()
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(server.url())


def test_postgres_starts_again_after_kill_9_and_keeps_committed_rows(tmp_path: Path) -> None:
    """A stale postmaster.pid and unflushed buffers are no obstacle."""
    server = EmbeddedPostgres(tmp_path).start()
    with psycopg.connect(server.url(), autocommit=True) as connection:
        connection.execute("create table kept as select 7 as seven")
    group = int((tmp_path / "postgres.group").read_text())
    os.kill(server.running.process.pid, signal.SIGKILL)
    os.killpg(group, signal.SIGKILL)
    server.running.process.wait()
    again = EmbeddedPostgres(tmp_path).start()
    with psycopg.connect(again.url()) as connection:
        assert connection.execute("select seven from kept").fetchone() == (7,)
    again.stop()


def test_a_second_start_ends_a_server_that_was_left_over(tmp_path: Path) -> None:
    """The leash was killed, the server lives: the next start in the same folder takes its place."""
    first = EmbeddedRedis(tmp_path).start()
    group = int((tmp_path / "redis.group").read_text())
    first.running.process.kill()
    first.running.process.wait()
    assert psutil.pid_exists(group)
    second = EmbeddedRedis(tmp_path).start()
    assert not psutil.pid_exists(group) or psutil.Process(group).status() == psutil.STATUS_ZOMBIE
    second.stop()


def test_a_record_of_a_stranger_s_process_kills_nobody(tmp_path: Path) -> None:
    """A group id that was given out anew belongs to somebody else."""
    record = tmp_path / "redis.group"
    stranger = subprocess.Popen(["sleep", "30"], start_new_session=True)
    record.write_text(str(stranger.pid))
    os.utime(record, (1, 1))
    server = EmbeddedRedis(tmp_path).start()
    assert stranger.poll() is None
    server.stop()
    stranger.kill()
    stranger.wait()


def test_servers_die_with_a_parent_that_is_killed(tmp_path: Path) -> None:
    """kill -9 of the process that started them leaves nothing running."""
    script = f"""
        from pathlib import Path
        from marlow.servers.postgres import EmbeddedPostgres
        from marlow.servers.redis import EmbeddedRedis
        EmbeddedPostgres(Path({str(tmp_path)!r}) / "pg").start()
        EmbeddedRedis(Path({str(tmp_path)!r}) / "redis").start()
        print("up", flush=True)
        input()
    """
    parent = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(script)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert parent.stdout.readline() == b"up\n"
    groups = [int(path.read_text()) for path in tmp_path.rglob("*.group")]
    assert len(groups) == 2
    parent.kill()
    parent.communicate()
    assert wait_until(lambda: not any(_alive(group) for group in groups), 8)
    assert wait_until(lambda: not list(tmp_path.rglob("*.group")), 2)


def test_a_server_that_ends_at_once_says_why(tmp_path: Path) -> None:
    """The end of the log is in the error."""
    with pytest.raises(ServerError, match="out of cheese"):
        launch("mouse", ["sh", "-c", "echo out of cheese; exit 3"], tmp_path, lambda: False)


def test_a_server_that_never_answers_is_stopped_and_says_so(tmp_path: Path) -> None:
    """Readiness is asked for a bounded time."""
    with pytest.raises(ServerError, match="did not answer in time"):
        launch("mute", ["sleep", "60"], tmp_path, lambda: False, seconds=0.3)
    assert not list(tmp_path.glob("*.group"))


def test_a_missing_server_says_what_to_install() -> None:
    """Nobody is left with a bare FileNotFoundError."""
    with pytest.raises(ServerError, match="install the thing"):
        find_binary("Nothing", [("no_such_wheel", "bin/x")], ["no-such-program"], "install the thing")


def test_redis_listens_on_loopback_only(tmp_path: Path) -> None:
    """No other host can reach the lock."""
    server = EmbeddedRedis(tmp_path).start()
    bound = redis.Redis(port=server.port).config_get("bind")["bind"]
    assert bound == "127.0.0.1"
    server.stop()


def _alive(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return any(each.status() != psutil.STATUS_ZOMBIE for each in psutil.process_iter() if _group(each.pid) == group)


def _group(pid: int) -> int | None:
    try:
        return os.getpgid(pid)
    except ProcessLookupError:
        return None
