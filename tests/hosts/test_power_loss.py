"""A box loses its power: how long the server keeps its lock, against the number that was promised.

Every box is a session in a network namespace, every loss a link that goes down without a FIN, and all of them happen
side by side on one bridge. Another session then tries until it is told yes, or until the bound is over.
"""

import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import psycopg
import pytest
from django.conf import settings

from marlow.clock import monotonic, real_sleep, wait_until
from marlow.servers.hosts import Host, Network, missing
from marlow.servers.postgres import EmbeddedPostgres
from sweeper.locks.keepalive import let_go_after
from sweeper.locks.postgres_advisory import LET_GO, TAKE, key_of

pytestmark = pytest.mark.xdist_group("hosts")

BOUND = 10.0  # real seconds: what is not let go by then is said to outlast the test
LATE = 2.0  # real seconds that the server may take beyond the promise
SLEEP = 1.5  # real seconds that the server works on a reply before it sends it
WORKING = 7.5  # real seconds that the server works when it outlasts the promise by far

# In: the row's id. A row: it is ours until the transaction ends. As the skip-locked strategy claims its rows.
CLAIM = "select id from shop_order where id = %s and status = 'pending' for update skip locked"


class Numbers(NamedTuple):
    """The server's side of one connection, in seconds; 0 is the kernel's default."""

    idle: int = 0
    interval: int = 0
    count: int = 0
    user_timeout: int = 0

    def options(self) -> str:
        """As Django's settings hand them to the server."""
        return (
            f"-c tcp_keepalives_idle={self.idle} -c tcp_keepalives_interval={self.interval}"
            f" -c tcp_keepalives_count={self.count} -c tcp_user_timeout={self.user_timeout}s"
        )


KERNEL = Numbers()


class Box:
    """A session on a host of its own."""

    def __init__(self, host: Host, url: str, options: dict[str, object]) -> None:
        self.host = host
        command = [sys.executable, str(Path(__file__).with_name("box.py")), url, json.dumps(options)]
        self.process = host.run(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, statement: str, *parameters: object) -> None:
        self.process.stdin.write(json.dumps([statement, *parameters]) + "\n")
        self.process.stdin.flush()

    def row(self, statement: str, *parameters: object) -> Any:
        self.ask(statement, *parameters)
        return json.loads(self.process.stdout.readline())

    def close(self) -> None:
        self.process.kill()
        self.process.communicate()


def cut(box: Box) -> None:
    box.host.cut()


def kill(box: Box) -> None:
    box.process.kill()


def stop(box: Box) -> None:
    box.process.send_signal(signal.SIGSTOP)


@dataclass(frozen=True)
class Case:
    """What a box is told, what happens to it, and how the lock was held."""

    numbers: Numbers = KERNEL
    lose: Callable[[Box], None] = cut
    asks: str = ""  # a statement under way when it happens
    row: bool = False  # holds a row instead of the advisory lock
    client: dict[str, int] = field(default_factory=dict)  # libpq's own options
    server: str = ""  # one more setting of the server's side

    @property
    def options(self) -> dict[str, object]:
        return {"options": f"{self.numbers.options()} {self.server}", **self.client}


BOTH = Numbers(2, 1, 2, 3)
IDLE = [
    BOTH,  # 3
    Numbers(2, 1, 4),  # probes alone: 6
    Numbers(2, 1, 4, 6),  # the timeout equal to the sum: 6
    Numbers(1, 1, 6, 2),  # a timeout below the sum, which would be 7: 2
    Numbers(1, 1, 2, 6),  # a timeout above the sum, which would be 3: 6
    Numbers(1, 4, 3, 2),  # looked at when a probe is due, and not before: 5
    Numbers(4, 1, 3, 1),  # not before a first probe is left unanswered: 5
]
CLIENT = {"keepalives_idle": 1, "keepalives_interval": 1, "keepalives_count": 2, "tcp_user_timeout": 2000}
REPLY = f"select repeat('x', 100000) from pg_sleep({SLEEP})"
WORK = f"select pg_sleep({WORKING})"
TORRENT = f"select repeat('x', 1000000) from pg_sleep({SLEEP}), generate_series(1, 100)"  # no buffer takes 100 MB
CASES: dict[str, Case] = {
    **{f"idle, {numbers}": Case(numbers) for numbers in IDLE},
    "a row": Case(BOTH, row=True),
    "in flight": Case(BOTH, asks=REPLY),
    "in flight, keepalives only": Case(BOTH._replace(user_timeout=0), asks=REPLY),
    "at work": Case(BOTH, asks=WORK),
    "at work, looking up": Case(BOTH, asks=WORK, server="-c client_connection_check_interval=500ms"),
    "kernel defaults": Case(),
    "user timeout alone": Case(Numbers(user_timeout=2)),
    "client side": Case(client=CLIENT),
    "killed": Case(lose=kill),
    "stopped": Case(BOTH, lose=stop),
    "stopped reading": Case(BOTH, lose=stop, asks=TORRENT),
}


@dataclass(frozen=True)
class Seen:
    """Moments on the monotonic clock: the server last heard of the box between `heard` and `lost`."""

    heard: float
    lost: float
    freed: float | None  # None: not within the bound

    def kept_for(self, seconds: float) -> None:
        """Asserts that it was let go after so many real seconds: no sooner, and not much later."""
        assert self.freed is not None, f"not let go within {BOUND} s, where {seconds} s were promised"
        assert self.heard + seconds <= self.freed <= self.lost + seconds + LATE


def measure(name: str, host: Host, url: str) -> Seen:
    case = CASES[name]
    with closing(Box(host, url, case.options)) as box, psycopg.connect(url, autocommit=True) as other:
        hold, free = _rows(box, other) if case.row else _locks(name, box, other)
        assert hold()
        assert not free()
        heard = monotonic()
        if case.asks:
            box.ask(case.asks)
        else:
            box.row("select 1")
        real_sleep(0.2)  # acknowledgements may be delayed; without this one the reply would be in flight
        case.lose(box)
        lost = monotonic()
        return Seen(heard, lost, monotonic() if wait_until(free, BOUND) else None)


def _locks(name: str, box: Box, other: psycopg.Connection[Any]) -> tuple[Callable[[], bool], Callable[[], bool]]:
    key = key_of(name)

    def free() -> bool:
        taken = other.execute(TAKE, (key, "other")).fetchone() == ("other",)
        return taken and other.execute(LET_GO, ("other", key)).fetchone() == (True,)

    return lambda: box.row(TAKE, key, "run") == "run", free


def _rows(box: Box, other: psycopg.Connection[Any]) -> tuple[Callable[[], bool], Callable[[], bool]]:
    def hold() -> bool:
        box.row("begin")
        return bool(box.row(CLAIM, 1) == 1)

    return hold, lambda: other.execute(CLAIM, (1,)).fetchone() == (1,)


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Seen]]:
    """Every case, measured at once."""
    if lacking := missing():
        pytest.skip(lacking)
    with Network() as network:
        folder = tmp_path_factory.mktemp("postgres")
        server = EmbeddedPostgres(folder, address=network.address, clients=network.subnet).start()
        try:
            with psycopg.connect(server.url()) as session:
                session.execute("create table shop_order (id int primary key, status text)")
                session.execute("insert into shop_order values (1, 'pending')")
            hosts = [network.host() for _ in CASES]
            with ThreadPoolExecutor(len(CASES)) as pool:
                measured = pool.map(measure, CASES, hosts, [server.url()] * len(CASES))
                yield dict(zip(CASES, measured, strict=True))
        finally:
            server.stop()


def promised(case: str, *, in_flight: bool = False) -> float | None:
    return let_go_after(*CASES[case].numbers, in_flight=in_flight)


def test_what_is_measured_is_what_django_sends() -> None:
    """The same four options, in the same words."""
    numbers = Numbers(
        settings.MARLOW_TCP_KEEPALIVES_IDLE,
        settings.MARLOW_TCP_KEEPALIVES_INTERVAL,
        settings.MARLOW_TCP_KEEPALIVES_COUNT,
        settings.MARLOW_TCP_USER_TIMEOUT,
    )
    assert numbers.options() in settings.DATABASES["default"]["OPTIONS"]["options"]


@pytest.mark.parametrize("case", [f"idle, {numbers}" for numbers in IDLE])
def test_an_idle_box_that_lost_power_is_let_go_when_promised(seen: dict[str, Seen], case: str) -> None:
    """Whichever of the sum and the user timeout is longer; with both set, the timeout's seconds count."""
    seconds = promised(case)
    assert seconds is not None
    seen[case].kept_for(seconds)


def test_a_locked_row_comes_back_by_the_same_rule(seen: dict[str, Seen]) -> None:
    """An open transaction is an idle connection too."""
    seen["a row"].kept_for(3)


def test_a_reply_in_flight_is_given_up_after_the_user_timeout(seen: dict[str, Seen]) -> None:
    """Counted from the reply, which was sent after the box was gone."""
    seconds = promised("in flight", in_flight=True)
    assert seconds is not None
    seen["in flight"].kept_for(SLEEP + seconds)


@pytest.mark.parametrize(
    ("case", "in_flight"),
    [
        ("kernel defaults", False),
        ("user timeout alone", False),  # nothing is in flight that it could time
        ("client side", False),  # they tell the client
        ("in flight, keepalives only", True),  # keepalives stand still
    ],
)
def test_without_both_on_the_server_s_side_nothing_is_promised(
    seen: dict[str, Seen], case: str, in_flight: bool
) -> None:
    """And the lock outlasts the test's bound."""
    assert promised(case, in_flight=in_flight) is None
    assert seen[case].freed is None


def test_a_statement_under_way_is_finished_first(seen: dict[str, Seen]) -> None:
    """The kernel has given the box up, but the server does not look at its connection while it works."""
    seen["at work"].kept_for(WORKING)


def test_a_server_that_looks_up_from_its_work_lets_go_in_time(seen: dict[str, Seen]) -> None:
    """With client_connection_check_interval the promise holds for a statement under way as well."""
    seen["at work, looking up"].kept_for(3)


def test_a_killed_process_says_goodbye(seen: dict[str, Seen]) -> None:
    """Its kernel lives and closes the connection: free at once, whatever the numbers."""
    seen["killed"].kept_for(0)


def test_a_stopped_process_keeps_its_lock(seen: dict[str, Seen]) -> None:
    """Its kernel lives and answers every probe."""
    assert seen["stopped"].freed is None


def test_a_process_that_stopped_reading_loses_it_alive(seen: dict[str, Seen]) -> None:
    """A reply larger than all buffers stays unsent for longer than the user timeout: the session is ended, though
    every probe was answered. What the box does after it wakes up, it does without the lock.
    """
    stopped = seen["stopped reading"]
    assert stopped.freed is not None
    assert stopped.freed >= stopped.heard + SLEEP + BOTH.user_timeout
