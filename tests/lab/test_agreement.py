"""Whatever is asked of the laboratory's lock servers, by however many boxes, they answer as the real ones do.

Scripts are generated and played on both. Where time passes, the real server really waits; and a Redis whose clock can
be stepped is stepped.
"""

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import redis
from django.conf import settings as configured
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from exercises.lab.servers import VirtualEtcd, VirtualRedis, VirtualZooKeeper
from exercises.scenarios.ports import EtcdPort, RedisNodesPort, RedisPort, ZooKeeperPort
from marlow.clock import RealClock, StandingClock, wait_until
from marlow.servers import faketime
from marlow.servers.launcher import ServerError
from marlow.servers.redis_nodes import RedisNodes
from sweeper.locks.live import LiveRedis
from sweeper.locks.live.etcd import LiveEtcd
from sweeper.locks.live.zookeeper import LiveZooKeeper
from sweeper.locks.ports import ZooKeeper
from sweeper.locks.zookeeper import parent_of
from tests.fakes import WEDNESDAY
from tests.lab import scripts
from tests.lab.scripts import BOXES, LEASES, on_etcd, on_nodes, on_redis, on_zookeeper, stepping, with_waits
from tests.lab.sides import EtcdSide, NodesSide, RedisSide, Script, ZooKeeperSide, demand_agreement, end_session, step
from tests.lab.tempo import LONG, Passing, Standing, Tempo, WholeSeconds
from tests.servers.five import Five
from tests.servers.test_zookeeper import expire

QUICK = Tempo(wait=0.12, short=0.18, slack=0.05)
PATIENT = Tempo(wait=10.0, short=15.0, slack=5.0)  # for scripts in which nothing waits
PREFIXES = (f"agreement-{number}-" for number in count(1))  # a script's keys are its own


def every(
    generated: st.SearchStrategy[Script], examples: int, play: Callable[[Script], None], shrink: bool = True
) -> None:
    """Play so many, the same ones in every run. Those that take real time are not shrunk."""
    phases = [Phase.generate, Phase.shrink] if shrink else [Phase.generate]

    @settings(max_examples=examples, derandomize=True, database=None, deadline=None, phases=phases)
    @given(generated)
    def playing(script: Script) -> None:
        play(script)

    playing()


class TestRedis:
    pytestmark = pytest.mark.xdist_group("locks on redis")

    @pytest.fixture
    def url(self) -> Iterator[str]:
        """The address of the tests' own Redis, which is left empty."""
        yield configured.LOCK_REDIS_URL
        with redis.Redis.from_url(configured.LOCK_REDIS_URL) as client:
            client.flushdb()

    @pytest.fixture
    def real(self, url: str) -> Iterator[Callable[..., RedisSide]]:
        with ExitStack() as open_ones:
            yield lambda time: live_side(open_ones, url, time)

    def test_answers_alike(self, real: Callable[..., RedisSide]) -> None:
        """Any box, any key, any value."""
        every(scripts.of(on_redis), 100, lambda script: demand_agreement(script, PATIENT, real, virtual_redis))

    def test_lets_keys_go_alike(self, real: Callable[..., RedisSide]) -> None:
        """Before a ttl is over and after it, renewed or not."""
        parts = st.lists(st.lists(on_redis, min_size=4, max_size=10), min_size=3, max_size=4)
        every(
            parts.map(with_waits),
            15,
            lambda script: demand_agreement(script, QUICK, real, virtual_redis),
            shrink=False,
        )

    def test_follows_its_clock_alike(self, tmp_path: Path) -> None:
        """Stepped forward and back, by more than a ttl and by less; or started again, without its data."""
        try:
            faketime.library()
        except ServerError as missing:
            pytest.skip(str(missing))
        server = RedisNodes(tmp_path, count=1, stepping=[0]).start()

        def real(time: Passing) -> RedisSide:
            return live_side(open_ones, server.urls[0], time, step=lambda by: stepped(server, by))

        try:
            with ExitStack() as open_ones:
                every(
                    scripts.of(on_redis | stepping),
                    100,
                    lambda script: demand_agreement(script, PATIENT, real, virtual_redis),
                )
        finally:
            server.stop()


def stepped(server: RedisNodes, by: float) -> None:
    """Keys that are over go with the server's next look at them, some tenth of a second later; or with ours."""
    server.clocks[0].step(by)
    with redis.Redis.from_url(server.urls[0]) as client:
        for each in client.scan_iter():
            client.get(each)


def live_side(open_ones: ExitStack, url: str, time: Passing, **strike: Callable[..., object]) -> RedisSide:
    boxes = [open_ones.enter_context(closing(LiveRedis(url, RealClock()))) for _ in range(BOXES)]
    client = open_ones.enter_context(redis.Redis.from_url(url))

    def remaining(key: str) -> int | None:
        left = int(client.pttl(key))
        return None if left == -2 else left

    return RedisSide(boxes, time, next(PREFIXES), remaining, **strike)


def virtual_redis(time: Standing) -> RedisSide:
    server = VirtualRedis(time.clock.now)
    return RedisSide([RedisPort(server, step)] * BOXES, time, "", server.remaining, step=server.step)


@pytest.mark.xdist_group("locks on redlock")
def test_five_redises_answer_alike(five: Five, nodes: Callable[..., Any]) -> None:
    """All up, or some of them ended and begun again without their data."""
    ports = [nodes(), nodes()]

    def real(time: Passing) -> NodesSide:
        five.heal()
        return NodesSide(ports, time, next(PREFIXES), five.kill, lambda number: five.servers[number].start())

    def virtual(time: Standing) -> NodesSide:
        servers = [VirtualRedis(time.clock.now) for _ in five.servers]
        port = RedisNodesPort(servers, step)
        return NodesSide([port] * 2, time, "", lambda at: servers[at].stop(), lambda at: servers[at].start())

    two_boxes = on_nodes.map(lambda asked: asked if asked[0] == "turn" else (asked[0], asked[1] % 2, *asked[2:]))
    every(scripts.of(two_boxes), 12, lambda script: demand_agreement(script, PATIENT, real, virtual), shrink=False)


@pytest.mark.xdist_group("locks on etcd")
class TestEtcd:
    @pytest.fixture
    def demand(self, etcd_urls: tuple[str, ...]) -> Iterator[Callable[..., None]]:
        """Plays a script on the real one and the virtual one."""
        with ExitStack() as open_ones:
            boxes = [open_ones.enter_context(closing(LiveEtcd(etcd_urls, RealClock()))) for _ in range(BOXES)]

            def play(script: Script, tempo: Tempo = PATIENT) -> None:
                demand_agreement(script, tempo, lambda time: EtcdSide(boxes, time, next(PREFIXES)), virtual_etcd)

            yield play

    def test_answers_alike(self, demand: Callable[..., None]) -> None:
        """Any box, lease and key; every revision as far from the first."""
        every(scripts.of(on_etcd), 30, demand)

    def test_lets_leases_go_alike(self, demand: Callable[..., None]) -> None:
        """With their keys, at a revision; kept alive they stay, and a second that was begun is a whole one."""
        demand(LEASES, WholeSeconds(wait=1.5, short=1.1, slack=0.3))


def virtual_etcd(time: Standing) -> EtcdSide:
    return EtcdSide([EtcdPort(VirtualEtcd(time.clock.now), step)] * BOXES, time, "")


@pytest.mark.xdist_group("locks on zookeeper")
class TestZooKeeper:
    def test_answers_alike(self, zookeeper_hosts: str) -> None:
        """Any session and node, parents made anew, sessions that end behind their boxes' backs."""

        def real(time: Passing) -> ZooKeeperSide:
            boxes = [LiveZooKeeper(zookeeper_hosts, RealClock(), LONG) for _ in range(BOXES)]
            return ZooKeeperSide(boxes, time, next(PREFIXES), expire)

        every(
            scripts.of(on_zookeeper),
            30,
            lambda script: demand_agreement(script, PATIENT, real, virtual_zookeeper),
            shrink=False,
        )

    def test_lets_a_dead_box_go_alike(self, zookeeper_hosts: str) -> None:
        """Its node stays for a while, and goes with its session; who is alive keeps his through a longer while."""
        name = next(PREFIXES)
        with closing(LiveZooKeeper(zookeeper_hosts, RealClock(), 1.0)) as witness:
            kill_at_work(zookeeper_hosts, f"{parent_of(name)}/v-", timeout=3)
            told = [looks(witness, name)]
            assert wait_until(lambda: len(witness.children(parent_of(name))) == 1, 10)
            told.append(looks(witness, name))
        assert virtual_looks(name) == told


# A box that makes a node, says so and goes on living. Arguments: hosts, the node's prefix, the session's timeout.
AT_WORK = """
import sys, time
from kazoo.client import KazooClient
hosts, prefix, timeout = sys.argv[1:]
client = KazooClient(hosts, timeout=float(timeout))
client.start()
print(client.create(prefix, b"v", ephemeral=True, sequence=True, makepath=True), flush=True)
time.sleep(600)
"""


def kill_at_work(hosts: str, prefix: str, timeout: float) -> None:
    """Return once it is gone; nobody has closed its session."""
    command = [sys.executable, "-c", AT_WORK, hosts, prefix, str(timeout)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as box:
        assert box.stdout is not None
        made = box.stdout.readline()
        box.kill()
    assert made.startswith(prefix)


def looks(witness: ZooKeeper, name: str) -> Any:
    """How many stand there, among them one more of ours; its number; and whether our session is the one it was."""
    session = witness.session()
    made = witness.create(f"{parent_of(name)}/w-", "w")
    return len(made.beside), made.path.rpartition("-")[2], session in ("", made.session)


def virtual_looks(name: str) -> list[Any]:
    clock = StandingClock(WEDNESDAY)
    server = VirtualZooKeeper(clock.now)
    dead, witness = ZooKeeperPort(server, step, 3.0), ZooKeeperPort(server, step, 1.0)
    dead.create(f"{parent_of(name)}/v-", "v")
    told = [looks(witness, name)]
    for _ in range(12):
        clock.sleep(witness.timeout / 3)
        assert witness.keep_alive()
    return [*told, looks(witness, name)]


def virtual_zookeeper(time: Standing) -> ZooKeeperSide:
    server = VirtualZooKeeper(time.clock.now)
    boxes = [ZooKeeperPort(server, step, LONG) for _ in range(BOXES)]
    return ZooKeeperSide(boxes, time, "script", end_session)
