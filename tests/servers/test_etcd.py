"""What the lock over etcd alone has, on real members. What every lock is held to stands in `conformance`."""

import signal
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from etcd3gw.exceptions import ConnectionTimeoutError

from marlow.clock import RealClock, real_sleep, wait_until
from marlow.servers.etcd import EmbeddedEtcd, EtcdCluster
from marlow.servers.launcher import free_port
from sweeper.locks.base import Lease, Refusal, Release, Released
from sweeper.locks.etcd import EtcdLease, EtcdLock, key_of
from sweeper.locks.live import spawning
from sweeper.locks.live.etcd import LiveEtcd
from sweeper.locks.ports import LockUnavailable, Ports

MARGIN = 5.0  # real seconds beyond a ttl, for a busy machine

Box = Callable[..., EtcdLock]


@pytest.fixture
def opened() -> Iterator[Callable[[LiveEtcd], LiveEtcd]]:
    """Ports that are closed after the test."""
    with ExitStack() as closing:

        def opening(etcd: LiveEtcd) -> LiveEtcd:
            closing.callback(etcd.close)
            return etcd

        yield opening


@pytest.fixture
def etcd(etcd_urls: tuple[str, ...], opened: Callable[[LiveEtcd], LiveEtcd]) -> LiveEtcd:
    """The tests' own member, without a lease."""
    live = opened(LiveEtcd(etcd_urls, RealClock()))
    for lease in leases(live):
        live.revoke(lease)
    return live


@pytest.fixture
def own(etcd_urls: tuple[str, ...], tmp_path: Path) -> Iterator[EmbeddedEtcd]:
    """A member of this test's own, to be killed."""
    server = EmbeddedEtcd(tmp_path).start()
    yield server
    server.stop()


@pytest.fixture
def cluster(etcd_urls: tuple[str, ...], tmp_path: Path) -> Iterator[EtcdCluster]:
    """Three members of this test's own, to be killed."""
    three = EtcdCluster(tmp_path).start()
    yield three
    three.stop()


def box(etcd: LiveEtcd, name: str = "box-b") -> EtcdLock:
    """The lock as this box builds it over this port."""
    return EtcdLock(
        Ports(
            clock=RealClock(),
            box=name,
            run=str(uuid.uuid4()),
            every=120.0,
            new_value=lambda: uuid.uuid4().hex,
            etcd=etcd,
            spawn=spawning(RealClock()),
        )
    )


def leased(answer: Lease | Refusal) -> EtcdLease:
    assert isinstance(answer, EtcdLease)
    return answer


def leases(etcd: LiveEtcd) -> list[int]:
    """Every lease that the cluster knows."""
    member = etcd.members[0]
    return [int(lease["ID"]) for lease in member.post(member.get_url("/lease/leases"), json={}).get("leases", [])]


def free(etcd: LiveEtcd) -> bool:
    """Take the lock for another box and let it go again, if it can be had."""
    answer = box(etcd, "box-a").acquire("sweeper", 10)
    return isinstance(answer, Lease) and answer.release().released is Released.OURS


def test_the_token_is_the_revision_that_made_the_key(etcd: LiveEtcd) -> None:
    """As etcd itself tells it."""
    lease = leased(box(etcd).acquire("sweeper", 5))
    ((_, made),) = etcd.members[0].get(key_of("sweeper"), metadata=True)
    assert lease.token == int(made["create_revision"])
    lease.release()


def test_a_miss_after_a_look_that_found_nobody_leaves_no_lease(
    etcd: LiveEtcd, etcd_urls: tuple[str, ...], opened: Callable[[LiveEtcd], LiveEtcd]
) -> None:
    """The transaction refuses it: the lease that was asked for meanwhile is given back, and the holder's stays."""

    class Blind(LiveEtcd):
        def get(self, key: str) -> str | None:
            return None

    lease = leased(box(etcd).acquire("sweeper", 30))
    blind = opened(Blind(etcd_urls, RealClock()))
    for _ in range(10):
        assert box(blind, "box-a").acquire("sweeper", 30) == Refusal("box-b")
    assert leases(etcd) == [lease.granted]
    assert lease.release().released is Released.OURS


def test_the_next_renewal_of_a_lease_that_was_revoked_says_so(etcd: LiveEtcd) -> None:
    """Before its deadline; and the release knows that it was not ours any more."""
    lease = leased(box(etcd).acquire("sweeper", 9))
    etcd.revoke(lease.granted)
    assert wait_until(lambda: lease.lost, 3 + MARGIN)
    assert lease.release() == Release(Released.NOT_OURS)


def test_a_lease_that_can_t_be_renewed_ends_by_our_own_clock(
    own: EmbeddedEtcd, opened: Callable[[LiveEtcd], LiveEtcd]
) -> None:
    """Its server is gone, and nobody says that it is lost."""
    lease = leased(box(opened(LiveEtcd(own.urls, RealClock(), timeout=0.5))).acquire("sweeper", 1))
    assert own.running
    own.running.kill()
    assert wait_until(lambda: not lease.still_held(), 1 + MARGIN)
    assert not lease.lost
    lease.release()


def test_a_lost_leader_costs_no_lock(cluster: EtcdCluster, opened: Callable[[LiveEtcd], LiveEtcd]) -> None:
    """The member that leads is killed while the lock is held: held by us, refused to others, released as ours."""
    etcd = opened(LiveEtcd(cluster.urls, RealClock()))
    lease = leased(box(etcd).acquire("sweeper", 5))
    leader = cluster.leader()
    assert leader
    assert leader.running
    etcd.answering = cluster.members.index(leader)
    leader.running.kill()
    assert wait_until(lambda: cluster.leader() not in (None, leader), 10)
    assert lease.still_held()
    assert box(etcd, "box-a").acquire("sweeper", 5) == Refusal("box-b")
    real_sleep(5)
    assert lease.still_held(), "renewals go on over the members that are left"
    assert lease.release().released is Released.OURS
    cluster.start_member(leader)
    assert free(opened(LiveEtcd([leader.url], RealClock())))


def test_a_member_that_hangs_is_passed_over(cluster: EtcdCluster, opened: Callable[[LiveEtcd], LiveEtcd]) -> None:
    """It accepts connections and says nothing; the next one is asked, and asked first from then on."""
    etcd = opened(LiveEtcd(cluster.urls, RealClock(), timeout=0.5))
    hung = next(member for member in cluster.members if member is not cluster.leader())
    assert hung.running
    etcd.answering = cluster.members.index(hung)
    hung.running.signal(signal.SIGSTOP)
    lease = leased(box(etcd).acquire("sweeper", 5))
    assert etcd.answering != cluster.members.index(hung)
    assert lease.release().released is Released.OURS


def test_without_a_majority_nothing_is_granted(cluster: EtcdCluster, opened: Callable[[LiveEtcd], LiveEtcd]) -> None:
    """One of three is no majority, however well it is."""
    etcd = opened(LiveEtcd(cluster.urls, RealClock(), timeout=0.5))
    for member in cluster.members[:2]:
        assert member.running
        member.running.kill()
    with pytest.raises(LockUnavailable, match="No member of etcd answered"):
        box(etcd).acquire("sweeper", 5)


def test_the_first_member_may_be_the_one_that_is_gone(
    etcd_urls: tuple[str, ...], opened: Callable[[LiveEtcd], LiveEtcd]
) -> None:
    """Whichever of the addresses answers will do."""
    etcd = opened(LiveEtcd([f"http://127.0.0.1:{free_port()}", *etcd_urls], RealClock()))
    assert free(etcd)


def test_a_lock_whose_answer_was_lost_leaves_nothing(
    etcd: LiveEtcd, etcd_urls: tuple[str, ...], opened: Callable[[LiveEtcd], LiveEtcd]
) -> None:
    """The key was made and nobody told us: no grant, and neither key nor lease stays."""

    class Deaf(LiveEtcd):
        def create(self, key: str, value: str, lease: int) -> Any:
            super().create(key, value, lease)
            raise LockUnavailable("nobody told us")

    with pytest.raises(LockUnavailable, match="nobody told us"):
        box(opened(Deaf(etcd_urls, RealClock()))).acquire("sweeper", 30)
    assert leases(etcd) == []
    assert free(etcd)


def loses_the_first_answer(etcd: LiveEtcd, monkeypatch: pytest.MonkeyPatch) -> None:
    """The member that is asked first does what it is asked, and its answer never arrives."""
    member = etcd.members[etcd.answering]
    asking = member.post

    def lost(*args: Any, **kwargs: Any) -> None:
        asking(*args, **kwargs)
        raise ConnectionTimeoutError("lost")

    monkeypatch.setattr(member, "post", lost)


def test_the_next_member_finds_our_own_key(
    etcd_urls: tuple[str, ...], opened: Callable[[LiveEtcd], LiveEtcd], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Asked again, our value tells that the key is ours, and the revision is the one that made it."""
    etcd = opened(LiveEtcd(etcd_urls * 2, RealClock()))
    lease = etcd.grant(30)
    loses_the_first_answer(etcd, monkeypatch)
    created = etcd.create(key_of("sweeper"), "box-b:1", lease)
    assert (created.done, created.value) == (True, "box-b:1")
    assert created == etcd.create(key_of("sweeper"), "box-b:1", lease)
    other = etcd.create(key_of("sweeper"), "box-a:2", lease)
    assert (other.done, other.value) == (False, "box-b:1")
    etcd.revoke(lease)


def test_who_ended_a_lease_is_unknown_where_an_answer_was_lost(
    etcd_urls: tuple[str, ...], opened: Callable[[LiveEtcd], LiveEtcd], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next member says that it is over, which may be our own doing: neither ours nor not ours."""
    etcd = opened(LiveEtcd(etcd_urls * 2, RealClock()))
    lease = leased(box(etcd).acquire("sweeper", 30))
    loses_the_first_answer(etcd, monkeypatch)
    assert lease.release().released is Released.UNKNOWN


@pytest.mark.parametrize("nonsense", [{}, [], None, {"ID": "x", "result": 1, "kvs": 1, "succeeded": True}])
def test_an_answer_that_makes_no_sense_is_no_grant(
    etcd: LiveEtcd, monkeypatch: pytest.MonkeyPatch, nonsense: object
) -> None:
    """Something else listens at the address."""
    granted = etcd.grant(30)
    monkeypatch.setattr(etcd.members[0], "post", lambda *args, **kwargs: nonsense)
    for question in (
        lambda: etcd.grant(30),
        lambda: etcd.create(key_of("sweeper"), "box-b:1", granted),
        lambda: etcd.keep_alive(granted),
    ):
        with pytest.raises(LockUnavailable):
            question()


def test_a_lease_lasts_whole_seconds_rounded_up(
    etcd_urls: tuple[str, ...], opened: Callable[[LiveEtcd], LiveEtcd], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of real time, and one at least: a lease of 90 virtual seconds at twenty times the speed is one of five."""

    class Fast(RealClock):
        def real(self, seconds: float) -> float:
            return seconds / 20

    etcd, asked = opened(LiveEtcd(etcd_urls, Fast())), list[int]()
    member = etcd.members[0]
    granting = member.lease
    monkeypatch.setattr(member, "lease", lambda seconds: asked.append(seconds) or granting(seconds))
    for virtual in (90, 0.1, 0):
        granted = etcd.grant(virtual)
        told = member.post(member.get_url("/kv/lease/timetolive"), json={"ID": granted})
        assert int(told["grantedTTL"]) == asked[-1]
        etcd.revoke(granted)
    assert asked == [5, 1, 1]


@pytest.mark.parametrize("url", ["one:2379", "http://", "http://one:port", "unix://socket"])
def test_an_address_that_is_none_says_how_to_write_it(url: str) -> None:
    """Instead of a traceback at the first run."""
    with pytest.raises(LockUnavailable, match="write it like http://one:2379"):
        LiveEtcd([url], RealClock())


def test_names_do_not_reach_into_other_keys() -> None:
    """Pinned: boxes that derive different keys from one name do not exclude each other."""
    assert key_of("sweeper") == "/marlow/locks/sweeper"
    assert key_of("../a/b\0") == "/marlow/locks/..%2Fa%2Fb%00"
