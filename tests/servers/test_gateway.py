"""An etcd member's HTTP gateway as the lock asks it: on kept connections, once, with errors that etcd3gw knows."""

import socket
import threading
from collections.abc import Iterator

import pytest
import requests
from etcd3gw.client import Etcd3Client
from etcd3gw.exceptions import ConnectionFailedError, ConnectionTimeoutError, Etcd3Exception

from marlow.servers.etcd import EmbeddedEtcd
from marlow.servers.launcher import free_port
from sweeper.locks.live.gateway import Gateway


@pytest.fixture
def gateway() -> Iterator[Gateway]:
    gateway = Gateway()
    yield gateway
    gateway.close()


def member(url: str, gateway: Gateway) -> Etcd3Client:
    host, _, port = url.removeprefix("http://").partition(":")
    return Etcd3Client(host, int(port), timeout=2, api_path="/v3/", session=gateway)  # type: ignore[arg-type]


def test_questions_share_a_connection(etcd_urls: tuple[str, ...], gateway: Gateway) -> None:
    """One after another; at the same time each has its own, and all are kept."""
    client = member(etcd_urls[0], gateway)
    for _ in range(5):
        client.status()
    (kept,) = gateway.idle
    together = threading.Barrier(4)

    def ask() -> None:
        together.wait()
        for _ in range(50):
            client.put("gateway", "x")
            assert client.get("gateway") == [b"x"]

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert kept in gateway.idle
    assert 1 <= len(gateway.idle) <= 4
    client.delete("gateway")


def test_a_connection_that_was_closed_meanwhile_is_not_used(
    etcd_urls: tuple[str, ...], gateway: Gateway, own: EmbeddedEtcd
) -> None:
    """A member that was killed and is back is asked without an error in between."""
    client = member(own.url, gateway)
    client.status()
    assert own.running
    own.running.kill()
    own.start()
    client.status()


@pytest.fixture
def own(etcd_urls: tuple[str, ...], tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedEtcd]:
    """A member of this test's own, to be killed."""
    server = EmbeddedEtcd(tmp_path_factory.mktemp("own")).start()
    yield server
    server.stop()


def test_an_error_of_the_member_s_is_etcd3gw_s(etcd_urls: tuple[str, ...], gateway: Gateway) -> None:
    """With what the member said of it, and the connection is as good as before."""
    client = member(etcd_urls[0], gateway)
    with pytest.raises(Etcd3Exception) as caught:
        client.post(client.get_url("/kv/lease/revoke"), json={"ID": 4711})
    assert "lease not found" in str(caught.value.detail_text)
    assert len(gateway.idle) == 1
    client.status()


def test_nobody_there_is_a_failed_connection(gateway: Gateway) -> None:
    """As etcd3gw calls it."""
    with pytest.raises(ConnectionFailedError):
        member(f"http://127.0.0.1:{free_port()}", gateway).status()
    assert gateway.idle == []


def test_one_that_hangs_costs_a_timeout(gateway: Gateway) -> None:
    """And its late answer is nobody's."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        client = member(f"http://127.0.0.1:{silent.getsockname()[1]}", gateway)
        client.timeout = 0.3
        with pytest.raises(ConnectionTimeoutError):
            client.status()
    assert gateway.idle == []


def test_one_that_speaks_no_http_is_a_failed_connection(gateway: Gateway) -> None:
    """It is asked once."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        asked = []

        def answer() -> None:
            call, _ = listening.accept()
            with call:
                asked.append(call.recv(4096))
                call.sendall(b"-ERR unknown command\r\n")

        thread = threading.Thread(target=answer)
        thread.start()
        with pytest.raises(requests.ConnectionError):
            gateway.post(f"http://127.0.0.1:{listening.getsockname()[1]}/v3/kv/range", json={}, timeout=2)
        thread.join()
    assert len(asked) == 1
    assert gateway.idle == []


def test_what_is_under_way_when_it_closes_leaves_nothing_open(gateway: Gateway) -> None:
    """A renewal that nobody ended: its answer comes, and its connection is not kept."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def answer() -> None:
            call, _ = listening.accept()
            with call:
                call.recv(4096)
                gateway.close()
                call.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")

        thread = threading.Thread(target=answer)
        thread.start()
        url = f"http://127.0.0.1:{listening.getsockname()[1]}/v3/kv/range"
        assert gateway.post(url, json={}, timeout=2).json() == {}
        thread.join()
    assert gateway.idle == []
