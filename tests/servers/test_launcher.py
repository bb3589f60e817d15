"""What the launcher does for all of them: readiness, signals, records, and errors that say what to do."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import psycopg
import pytest
import redis

from marlow.clock import real_sleep
from marlow.servers.launcher import ServerError, find_binary, launch
from marlow.servers.postgres import EmbeddedPostgres
from marlow.servers.redis import EmbeddedRedis
from tests.servers.groups import groups_in

ROOT = Path(__file__).parents[2]


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


class TestAServer:
    def test_may_have_arguments_of_its_own(self, tmp_path: Path) -> None:
        """They stand after ours, so they win."""
        server = EmbeddedRedis(tmp_path, arguments=["--maxmemory", "8mb"]).start()
        limit = server.ask("CONFIG", "GET", "maxmemory")
        server.stop()
        assert limit["maxmemory"] == str(8 * 2**20)

    def test_may_have_an_environment_of_its_own(self, tmp_path: Path) -> None:
        """Added to what it has anyway; its leash knows nothing of it."""
        ready = (tmp_path / "up").exists
        command = ["sh", "-c", f"touch {tmp_path}/up; sleep 60"]
        running = launch("sh", command, tmp_path, ready, environment={"MARLOW_MARK": "an x = y"})
        own = psutil.Process(groups_in(tmp_path)[0]).environ()
        leash = psutil.Process(running.process.pid).environ()
        running.stop()
        assert own["MARLOW_MARK"] == "an x = y"
        assert own["PATH"] == leash["PATH"]
        assert "MARLOW_MARK" not in leash

    def test_is_stopped_and_killed_past_its_leash(self, tmp_path: Path) -> None:
        """A signal is the server's; killed, it is gone when the call returns, and the record with it."""
        server = EmbeddedRedis(tmp_path).start()
        process = psutil.Process(groups_in(tmp_path)[0])
        assert server.running.signal(signal.SIGSTOP)
        assert process.status() == psutil.STATUS_STOPPED
        assert server.running.alive()
        with pytest.raises(redis.TimeoutError):
            server.ask("PING")
        server.running.signal(signal.SIGCONT)
        assert server.ask("PING")
        server.running.kill()
        assert not process.is_running()
        assert not groups_in(tmp_path)
        assert not server.running.signal(signal.SIGCONT)

    def test_is_held_with_all_its_threads(self, tmp_path: Path) -> None:
        """Of a server with many of them none writes another line once the call has returned."""
        script = (
            "import itertools, sys, threading, time\n"
            "def run(n):\n"
            "    with open(sys.argv[1] + str(n), 'w', 1) as file:\n"
            "        for i in itertools.count(): file.write('x\\n'); time.sleep(0)\n"
            "for n in range(20): threading.Thread(target=run, args=[n]).start()\n"
        )
        files = [tmp_path / f"lines{n}" for n in range(20)]
        command = [sys.executable, "-c", script, str(tmp_path / "lines")]
        running = launch("threads", command, tmp_path, lambda: all(file.exists() for file in files))
        try:
            for _ in range(20):
                running.signal(signal.SIGSTOP)
                before = [file.stat().st_size for file in files]
                real_sleep(0.05)
                assert [file.stat().st_size for file in files] == before
                running.signal(signal.SIGCONT)
                real_sleep(0.01)
        finally:
            running.kill()

    def test_held_by_a_signal_is_let_go_to_stop_by_itself(self, tmp_path: Path) -> None:
        """It hears the request to stop: what it does last is done."""
        farewell = tmp_path / "farewell"
        script = f"trap 'touch {farewell}; exit' TERM; touch {tmp_path}/up; while :; do sleep 0.05; done"
        running = launch("sh", ["sh", "-c", script], tmp_path, (tmp_path / "up").exists)
        running.signal(signal.SIGSTOP)
        running.stop()
        assert farewell.exists()
