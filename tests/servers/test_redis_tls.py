"""The locks over Redis where the line is encrypted: `rediss://` addresses, certificates checked."""

import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from select import select

import pytest
import trustme

from marlow.clock import RealClock
from marlow.servers.redis import EmbeddedRedis
from sweeper.locks.base import Refusal, Released
from sweeper.locks.live import LiveRedis, LiveRedisNodes
from sweeper.locks.ports import LockUnavailable
from sweeper.locks.redlock import Redlock
from tests.servers.five import leased, over

ROOM = 2.0  # real seconds: a handshake takes longer than a question


@pytest.fixture
def own(tmp_path: Path) -> Iterator[EmbeddedRedis]:
    """A Redis of this test's own, which speaks plainly itself."""
    server = EmbeddedRedis(tmp_path).start()
    yield server
    server.stop()


@pytest.fixture
def encrypted(own: EmbeddedRedis, tmp_path: Path) -> Iterator[str]:
    """The same Redis behind somebody who ends TLS, as managed ones are; its address trusts who signed for it."""
    authority, trusted = trustme.CA(), tmp_path / "authority.pem"
    authority.cert_pem.write_to_path(trusted)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    with ending_tls(context, own.port) as port:
        yield f"rediss://127.0.0.1:{port}/0?ssl_ca_certs={trusted}"


def test_a_key_is_set_and_deleted(encrypted: str) -> None:
    """Twice: over a new connection, and over one that has been in use."""
    with closing(LiveRedis(encrypted, RealClock(), ROOM)) as redis:
        for value in ("box-b:1", "box-b:2"):
            assert redis.set_or_get("lock:sweeper", value, 60) is None
            assert redis.set_or_get("lock:sweeper", "box-a:1", 60) == value
            assert redis.delete_if_equal("lock:sweeper", value)


def test_redlock_is_taken_refused_and_released(encrypted: str) -> None:
    """Twice, for the same reason."""
    with closing(LiveRedisNodes([encrypted], RealClock(), ROOM)) as nodes:
        for _ in range(2):
            lease = leased(Redlock(over(nodes)).acquire("sweeper", 60))
            assert Redlock(over(nodes, "box-a")).acquire("sweeper", 60) == Refusal("box-b")
            assert lease.release().released is Released.OURS


def test_nobody_is_believed_without_a_certificate(encrypted: str, own: EmbeddedRedis) -> None:
    """One that nobody we trust has signed: an error, and never a grant."""
    address = encrypted.partition("?")[0]
    redis, nodes = LiveRedis(address, RealClock(), ROOM), LiveRedisNodes([address], RealClock(), ROOM)
    with closing(redis), pytest.raises(LockUnavailable, match="certificate verify failed"):
        redis.set_or_get("lock:sweeper", "box-b:1", 60)
    with closing(nodes), pytest.raises(LockUnavailable):
        Redlock(over(nodes)).acquire("sweeper", 60)
    assert own.ask("DBSIZE") == 0


@contextmanager
def ending_tls(context: ssl.SSLContext, behind: int) -> Iterator[int]:
    """A port of loopback where TLS ends; what is said there goes on to this other port, and back."""

    def carry(call: socket.socket) -> None:
        with call, socket.create_connection(("127.0.0.1", behind)) as server:
            try:
                with context.wrap_socket(call, server_side=True) as plain:
                    while True:
                        for heard in select([plain, server], [], [])[0]:
                            said = heard.recv(65536)
                            if not said:
                                return
                            (server if heard is plain else plain).sendall(said)
            except OSError:
                return  # they did not agree, or one of them hung up

    def serve() -> None:
        while True:
            try:
                call, _ = listening.accept()
            except OSError:
                return
            carrying.append(threading.Thread(target=carry, args=(call,)))
            carrying[-1].start()

    carrying: list[threading.Thread] = []
    with socket.create_server(("127.0.0.1", 0)) as listening:
        serving = threading.Thread(target=serve)
        serving.start()
        try:
            yield int(listening.getsockname()[1])
        finally:
            listening.shutdown(socket.SHUT_RDWR)
            serving.join()
            for thread in carrying:
                thread.join()
