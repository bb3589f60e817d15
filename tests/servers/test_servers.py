"""Redises in several parts, a clock that steps, a pooler: they start, answer, and leave with their parent."""

import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import psycopg
import pytest
import redis

from marlow.clock import real_sleep, wait_until
from marlow.servers import faketime, pgbouncer
from marlow.servers.launcher import ServerError, launch
from marlow.servers.pgbouncer import EmbeddedPgbouncer
from marlow.servers.postgres import EmbeddedPostgres
from marlow.servers.redis import EmbeddedRedis
from marlow.servers.redis_nodes import RedisNodes
from marlow.servers.redis_pair import RedisPair

ROOT = Path(__file__).parents[2]
KINDS: dict[str, Any] = {"nodes": RedisNodes, "pair": RedisPair, "pgbouncer": EmbeddedPgbouncer}
GROUPS = {"nodes": 5, "pair": 2, "pgbouncer": 1}


def demand(find: Callable[[], Path]) -> None:
    """Skip where a system package is missing, saying what to install: CI installs it, and a skip there fails."""
    try:
        find()
    except ServerError as missing:
        pytest.skip(str(missing))


@pytest.fixture(scope="module")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedPostgres]:
    server = EmbeddedPostgres(tmp_path_factory.mktemp("postgres")).start()
    yield server
    server.stop()


@pytest.fixture(params=sorted(KINDS))
def kind(request: pytest.FixtureRequest) -> str:
    if request.param == "pgbouncer":
        demand(pgbouncer.binary)
    return str(request.param)


def made(kind: str, folder: Path, postgres: EmbeddedPostgres) -> Any:
    return KINDS[kind](folder, postgres) if kind == "pgbouncer" else KINDS[kind](folder)


def parts(server: Any) -> list[Any]:
    match server:
        case RedisNodes():
            return server.servers
        case RedisPair():
            return [server.master, server.replica]
    return [server]


def answers(part: Any) -> bool:
    if isinstance(part, EmbeddedRedis):
        try:
            return bool(part.ask("PING"))
        except redis.RedisError:
            return False
    try:
        with psycopg.connect(part.url(), prepare_threshold=None) as connection:
            return connection.execute("select 1").fetchone() == (1,)
    except psycopg.OperationalError:
        return False


def groups_in(folder: Path) -> list[int]:
    return [int(path.read_text()) for path in folder.rglob("*.group")]


def gone(groups: list[int]) -> bool:
    return not any(psutil.pid_exists(group) and psutil.Process(group).status() != "zombie" for group in groups)


class TestEveryServer:
    def test_starts_answers_and_stops(self, kind: str, tmp_path: Path, postgres: EmbeddedPostgres) -> None:
        """Each part of it answers, and after stop neither a process nor a record is left."""
        server = made(kind, tmp_path, postgres).start()
        groups = groups_in(tmp_path)
        assert len(parts(server)) == len(groups) == GROUPS[kind]
        assert all(answers(part) for part in parts(server))
        server.stop()
        assert gone(groups)
        assert not groups_in(tmp_path)
        assert not any(answers(part) for part in parts(server))

    def test_listens_on_loopback_only(self, kind: str, tmp_path: Path, postgres: EmbeddedPostgres) -> None:
        """No other host can reach it."""
        server = made(kind, tmp_path, postgres).start()
        listening = [
            line.laddr.ip
            for group in groups_in(tmp_path)
            for line in psutil.Process(group).net_connections()
            if line.status == psutil.CONN_LISTEN
        ]
        server.stop()
        assert listening == ["127.0.0.1"] * GROUPS[kind]

    def test_starts_where_kill_9_of_its_leashes_left_it(
        self, kind: str, tmp_path: Path, postgres: EmbeddedPostgres
    ) -> None:
        """The next start in the same folder ends what was left and takes its place."""
        first = made(kind, tmp_path, postgres).start()
        groups = groups_in(tmp_path)
        for part in parts(first):
            part.running.process.kill()
            part.running.process.wait()
        second = made(kind, tmp_path, postgres).start()
        assert gone(groups)
        assert all(answers(part) for part in parts(second))
        second.stop()

    def test_dies_with_a_parent_that_is_killed(self, kind: str, tmp_path: Path) -> None:
        """kill -9 of the process that started it leaves nothing running."""
        script = f"""
            from pathlib import Path
            from tests.servers.test_servers import EmbeddedPostgres, made
            folder = Path({str(tmp_path)!r})
            postgres = EmbeddedPostgres(folder / "postgres")
            if {kind!r} == "pgbouncer":
                postgres.start()
            made({kind!r}, folder, postgres).start()
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
        groups = groups_in(tmp_path)
        assert len(groups) == GROUPS[kind] + (kind == "pgbouncer")
        parent.kill()
        parent.communicate()
        assert wait_until(lambda: gone(groups), 8)
        assert wait_until(lambda: not groups_in(tmp_path), 2)


class TestOneOfThem:
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
        assert wait_until(lambda: process.status() == psutil.STATUS_STOPPED, 2)
        assert server.running.alive()
        assert not answers(server)
        server.running.signal(signal.SIGCONT)
        assert wait_until(lambda: answers(server), 2)
        server.running.kill()
        assert not process.is_running()
        assert not groups_in(tmp_path)
        assert not server.running.signal(signal.SIGCONT)

    def test_held_by_a_signal_is_let_go_to_stop_by_itself(self, tmp_path: Path) -> None:
        """It hears the request to stop: what it does last is done."""
        farewell = tmp_path / "farewell"
        script = f"trap 'touch {farewell}; exit' TERM; touch {tmp_path}/up; while :; do sleep 0.05; done"
        running = launch("sh", ["sh", "-c", script], tmp_path, (tmp_path / "up").exists)
        running.signal(signal.SIGSTOP)
        running.stop()
        assert farewell.exists()


def test_of_nodes_that_can_not_all_start_none_is_left(tmp_path: Path) -> None:
    """One folder is a file: the four others are stopped, and the error is not swallowed."""
    (tmp_path / "redis-3").write_text("in the way")
    with pytest.raises(FileExistsError):
        RedisNodes(tmp_path).start()
    assert not groups_in(tmp_path)


def test_nodes_know_nothing_of_each_other(tmp_path: Path) -> None:
    """A key set on one is on no other."""
    nodes = RedisNodes(tmp_path, count=3).start()
    assert len(set(nodes.urls)) == 3
    nodes.servers[0].ask("SET", "lock:sweeper", "box-b")
    assert [server.ask("GET", "lock:sweeper") for server in nodes.servers] == ["box-b", None, None]
    nodes.stop()


class TestThePair:
    @pytest.fixture
    def pair(self, tmp_path: Path) -> Iterator[RedisPair]:
        pair = RedisPair(tmp_path).start()
        yield pair
        pair.stop()

    def test_is_ready_when_the_replica_follows(self, pair: RedisPair) -> None:
        """What is written reaches the replica, a moment later."""
        pair.master.ask("SET", "lock:sweeper", "box-b")
        assert wait_until(lambda: pair.replica.ask("GET", "lock:sweeper") == "box-b", 5)

    def test_loses_an_acknowledged_key_when_it_fails_over(self, pair: RedisPair) -> None:
        """Box B was told yes by the master; box A is told yes by the replica that took over."""
        pair.master.ask("SET", "before", "kept")
        assert wait_until(lambda: pair.replica.ask("GET", "before") == "kept", 5)
        lock = ("SET", "lock:sweeper", "box-b", "NX", "PX", "60000")
        old, acknowledged = pair.url, pair.fail_over(lambda: pair.master.ask(*lock))
        assert acknowledged
        assert pair.url != old
        assert not answers(pair.master)
        assert pair.replica.ask("GET", "before") == "kept"
        with redis.Redis.from_url(pair.url) as client:
            assert client.set("lock:sweeper", "box-a", nx=True, px=60_000)

    def test_starts_as_a_pair_again(self, pair: RedisPair) -> None:
        """After a failover too."""
        pair.fail_over(lambda: None)
        pair.start()
        assert pair.url == pair.master.url
        assert answers(pair.master)
        assert answers(pair.replica)


class TestAClockThatSteps:
    @pytest.fixture
    def nodes(self, tmp_path: Path) -> Iterator[RedisNodes]:
        demand(faketime.library)
        nodes = RedisNodes(tmp_path, count=2, stepping=[1]).start()
        yield nodes
        nodes.stop()

    def test_ends_a_minute_s_key_at_once_when_it_goes_forward(self, nodes: RedisNodes) -> None:
        """+61 s, on this server alone; keys follow its wall clock."""
        for server in nodes.servers:
            assert server.ask("SET", "lock:sweeper", "box-b", "PX", "60000")
        nodes.clocks[1].step(61)
        assert [server.ask("GET", "lock:sweeper") for server in nodes.servers] == ["box-b", None]

    def test_keeps_a_second_s_key_alive_when_it_goes_back(self, nodes: RedisNodes) -> None:
        """-30 s: there long after its second is over, and gone where no clock stepped."""
        for server in nodes.servers:
            assert server.ask("SET", "lock:sweeper", "box-b", "PX", "1000")
        nodes.clocks[1].step(-30)
        assert wait_until(lambda: nodes.servers[0].ask("GET", "lock:sweeper") is None, 5)
        real_sleep(0.5)
        assert nodes.servers[1].ask("GET", "lock:sweeper") == "box-b"

    def test_steps_add_up(self, nodes: RedisNodes) -> None:
        """Forward and back again is where it was."""
        nodes.clocks[1].step(100)
        nodes.clocks[1].step(-100)
        apart = abs(int(nodes.servers[1].ask("TIME")[0]) - int(nodes.servers[0].ask("TIME")[0]))
        assert apart <= 2

    def test_that_is_not_installed_says_what_to_install(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """No server is started on a clock that would not step."""
        monkeypatch.setattr(faketime, "PLACES", ())
        with pytest.raises(ServerError, match="apt-get install libfaketime"):
            RedisNodes(tmp_path, stepping=[0]).start()
