"""What the lock over ZooKeeper alone has, on a real server. What every lock is held to stands in `conformance`."""

import signal
import socket
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from struct import pack
from typing import Any

import pytest
from kazoo.protocol.serialization import Close, Connect

from marlow.clock import RealClock, monotonic, real_sleep, wait_until
from marlow.servers.launcher import free_port
from marlow.servers.zookeeper import EmbeddedZooKeeper
from sweeper.locks.base import Lease, Refusal, Release, Released
from sweeper.locks.live.zookeeper import LiveZooKeeper
from sweeper.locks.ports import LockUnavailable, Node, Ports
from sweeper.locks.zookeeper import ZooKeeperLease, ZooKeeperLock, parent_of

MARGIN = 5.0  # real seconds beyond a session's timeout, for a busy machine

Open = Callable[..., LiveZooKeeper]


@pytest.fixture
def opening() -> Iterator[Open]:
    """Makes sessions that are over after the test."""
    with ExitStack() as closing:

        def make(
            hosts: str, ttl: float = 10, timeout: float = 2, kind: type[LiveZooKeeper] = LiveZooKeeper
        ) -> LiveZooKeeper:
            live = kind(hosts, RealClock(), ttl, timeout)
            closing.callback(live.close)
            return live

        yield make


@pytest.fixture
def session(zookeeper_hosts: str, opening: Open) -> Callable[..., LiveZooKeeper]:
    """A session of one box on the tests' own server."""
    return lambda **how: opening(zookeeper_hosts, **how)


@pytest.fixture
def own(zookeeper_hosts: str, tmp_path: Path) -> Iterator[EmbeddedZooKeeper]:
    """A server of this test's own, to be killed."""
    server = EmbeddedZooKeeper(tmp_path).start()
    yield server
    server.stop()


def box(zookeeper: LiveZooKeeper, name: str = "box-b", **changes: Any) -> ZooKeeperLock:
    """The lock as this box builds it over its session."""
    plain: dict[str, Any] = {"new_value": lambda: uuid.uuid4().hex, **changes}
    ports = Ports(clock=RealClock(), box=name, run=str(uuid.uuid4()), every=120.0, zookeeper=zookeeper, **plain)
    return ZooKeeperLock(ports)


def leased(answer: Lease | Refusal) -> ZooKeeperLease:
    assert isinstance(answer, ZooKeeperLease)
    return answer


def free(zookeeper: LiveZooKeeper) -> bool:
    """Take the lock for another box and let it go again, if it can be had."""
    answer = box(zookeeper, "box-a").acquire("sweeper", 10)
    return isinstance(answer, Lease) and answer.release().released is Released.OURS


def expire(live: LiveZooKeeper) -> None:
    """End this session from elsewhere, as the server does when it has not heard of it, and wait until its client is
    told. Whoever knows its id and password may. Both packets are sent at once: the client soon takes it back.
    """
    assert live.client is not None
    before, (number, password) = live.session(), live.client.client_id
    opening, ending = Connect(0, 0, 10_000, number, password, False).serialize(), pack("!ii", 1, Close.type)
    host, _, port = live.hosts.partition(":")
    for _ in range(5):
        with socket.create_connection((host, int(port)), timeout=5) as twin:
            twin.sendall(b"".join(pack("!i", len(packet)) + packet for packet in (opening, ending)))
            if wait_until(lambda: live.session() not in ("", before), MARGIN):
                return
    raise AssertionError("the session lives on")


def test_the_token_rises_where_the_sequence_begins_anew(session: Open) -> None:
    """Somebody tidied up the empty parent node: the number in the name is 0 again, the token is not."""
    live = session()
    first = leased(box(live).acquire("tidy", 10))
    first.release()
    assert live.delete(parent_of("tidy"))
    second = leased(box(live).acquire("tidy", 10))
    names = [lease.node.path.rpartition("-")[2] for lease in (first, second)]
    assert names == ["0000000000", "0000000000"]
    assert first.token is not None
    assert second.token is not None
    assert second.token > first.token
    second.release()


def test_the_number_decides_and_not_the_name(session: Open) -> None:
    """A node's name begins with a random value; whichever was made first holds."""
    live = session()
    lease = leased(box(live, new_value=lambda: "zzz").acquire("sweeper", 10))
    assert box(live, "box-a", new_value=lambda: "aaa").acquire("sweeper", 10) == Refusal("box-b")
    lease.release()


def test_a_closed_session_lets_go_at_once(session: Open) -> None:
    """A run that ends without a release leaves nothing to wait for."""
    live = session(ttl=60)
    leased(box(live).acquire("sweeper", 60))
    live.close()
    assert live.session() == ""
    assert free(session())


def test_a_session_that_came_after_does_not_hold_the_lock(session: Open) -> None:
    """The client goes on under another one; the lease does not, and the release knows."""
    live = session()
    lease = leased(box(live).acquire("sweeper", 10))
    expire(live)
    assert not lease.still_held()
    assert lease.release() == Release(Released.NOT_OURS)


def test_a_server_that_comes_back_in_time_finds_the_session_again(own: EmbeddedZooKeeper, opening: Open) -> None:
    """Killed and started again within the session's timeout: still held, still refused to others."""
    live = opening(own.hosts, ttl=60)
    lease = leased(box(live).acquire("sweeper", 60))
    assert own.running
    own.running.kill()
    assert wait_until(lambda: not lease.still_held(), MARGIN)
    own.start()
    assert wait_until(lease.still_held, 30)
    assert box(opening(own.hosts), "box-a").acquire("sweeper", 60) == Refusal("box-b")
    assert lease.release().released is Released.OURS


def test_a_client_that_gave_up_begins_anew(own: EmbeddedZooKeeper, opening: Open) -> None:
    """Its session can't live any more, so it stopped trying; the next question opens another one."""
    live = opening(own.hosts, ttl=0.5)
    lease = leased(box(live).acquire("sweeper", 0.5))
    assert own.running
    own.running.kill()
    with pytest.raises(LockUnavailable):
        live.children("/")
    real_sleep(2)
    own.start()
    assert wait_until(lambda: free(live), 30)
    assert not lease.still_held()


def test_a_server_that_hangs_costs_a_timeout_and_no_more(own: EmbeddedZooKeeper, opening: Open) -> None:
    """It keeps its connections and says nothing. By itself the client would wait for two thirds of its session."""
    live = opening(own.hosts, ttl=120)
    lease = leased(box(live).acquire("sweeper", 120))
    assert own.running
    own.running.signal(signal.SIGSTOP)
    began = monotonic()
    for hung in (live, opening(own.hosts, ttl=120)):
        with pytest.raises(LockUnavailable):
            box(hung, "box-a").acquire("other", 120)
    assert lease.release().released is Released.UNKNOWN
    live.close()
    assert monotonic() - began < 40


def test_a_server_that_hangs_is_passed_over(own: EmbeddedZooKeeper, zookeeper_hosts: str, opening: Open) -> None:
    """Whichever server is tried first (the client shuffles them), one that answers is found in time."""
    assert own.running
    own.running.signal(signal.SIGSTOP)
    for _ in range(5):
        assert free(opening(f"{own.hosts},{zookeeper_hosts}", ttl=120, timeout=4))


def test_a_lock_whose_answer_was_lost_leaves_no_node(session: Open) -> None:
    """The node was made and nobody told us: no grant, and the node is taken away again."""

    class Deaf(LiveZooKeeper):
        def create(self, prefix: str, value: str) -> Node:
            super().create(prefix, value)
            raise LockUnavailable("nobody told us")

    deaf = session(kind=Deaf)
    with pytest.raises(LockUnavailable, match="nobody told us"):
        box(deaf).acquire("sweeper", 10)
    assert deaf.children(parent_of("sweeper")) == []


def test_a_session_lost_while_the_lock_is_taken_is_no_grant(session: Open) -> None:
    """The node went with the session that made it, and another session is connected by now."""

    class Expiring(LiveZooKeeper):
        def create(self, prefix: str, value: str) -> Node:
            node = super().create(prefix, value)
            expire(self)
            return node

    live = session(kind=Expiring)
    with pytest.raises(LockUnavailable, match="session was lost"):
        box(live).acquire("sweeper", 10)
    assert free(session())


def test_a_connection_lost_while_the_lock_is_taken_is_no_grant(session: Open) -> None:
    """Which session it was can't be told then."""

    class Unsure(LiveZooKeeper):
        def session(self) -> str:
            return ""

    live = session(kind=Unsure)
    with pytest.raises(LockUnavailable, match="session was lost"):
        box(live).acquire("sweeper", 10)
    assert live.children(parent_of("sweeper")) == []


def test_a_holder_that_just_left_has_no_name(session: Open) -> None:
    """It was there when the nodes were listed, and is gone when it is asked for its name."""

    class Late(LiveZooKeeper):
        def get(self, path: str) -> str | None:
            assert self.delete(path)
            return super().get(path)

    leased(box(session()).acquire("sweeper", 10))
    assert box(session(kind=Late), "box-a").acquire("sweeper", 10) == Refusal("")
    assert free(session())


def test_what_is_no_node_of_a_lock_is_passed_over(session: Open) -> None:
    """Somebody put something else under the lock's own node."""

    class Littered(LiveZooKeeper):
        def create(self, prefix: str, value: str) -> Node:
            node = super().create(prefix, value)
            return replace(node, beside=["!readme", *node.beside])

    lease = leased(box(session(kind=Littered)).acquire("sweeper", 10))
    assert lease.release().released is Released.OURS


@pytest.mark.parametrize("hosts", ["", "one:port"])
def test_an_address_that_is_none_says_how_to_write_it(opening: Open, hosts: str) -> None:
    """Instead of a traceback at the first run."""
    with pytest.raises(LockUnavailable, match="write them like one:2181,two:2181"):
        opening(hosts).children("/")


def test_nobody_at_the_address_is_an_error(opening: Open) -> None:
    """Within the timeout, with the address that was asked."""
    with pytest.raises(LockUnavailable, match=r"No ZooKeeper at 127\.0\.0\.1"):
        opening(f"127.0.0.1:{free_port()}").children("/")


def test_names_do_not_reach_into_other_nodes() -> None:
    """Pinned: boxes that derive different nodes from one name do not exclude each other."""
    assert parent_of("sweeper") == "/marlow/locks/=sweeper"
    assert parent_of("../a/b\0") == "/marlow/locks/=..%2Fa%2Fb%00"
    assert parent_of("") == "/marlow/locks/="
