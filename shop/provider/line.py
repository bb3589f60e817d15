"""One kept-alive HTTP connection whose calls have a deadline as a whole.

The timeouts of httpx start afresh with every read, so an answer that drips in a byte at a time never ends. Here the
engine under it, httpcore, gets sockets that count down to one deadline: resolving the name, connecting, TLS, sending,
and every read of headers and body.
"""

import socket
import ssl
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any

import httpcore
from httpcore import SOCKET_OPTION

from marlow.clock import monotonic


class LineTimeout(Exception):
    """The deadline passed. What was asked may or may not have been done."""


class LineBroken(Exception):
    """No connection, or it broke, or what came over it was not HTTP. What was asked may or may not have been done."""


@dataclass
class Deadline:
    """`at` is on the monotonic clock, in real seconds."""

    at: float = 0.0

    def left(self) -> float:
        """Real seconds until the deadline; raise httpcore's timeout when there are none."""
        left = self.at - monotonic()
        if left <= 0:
            raise httpcore.ReadTimeout
        return left


@dataclass(frozen=True)
class Call:
    """One request. `path` begins with a slash and is quoted already."""

    method: str
    path: str
    headers: Mapping[bytes, bytes] = field(default_factory=dict)
    content: bytes = b""


class Line:
    """A connection to one place, opened when it is needed. Used by one call at a time.

    `base_url` is http:// or https://; `tls` says whom to trust. Proxies named in the environment are not used.
    """

    def __init__(self, base_url: str, tls: ssl.SSLContext | None = None) -> None:
        self.base_url = base_url.rstrip("/")
        self.deadline = Deadline()
        self.pool = httpcore.ConnectionPool(
            ssl_context=tls, max_connections=1, keepalive_expiry=30.0, network_backend=_Backend(self.deadline)
        )

    def ask(self, call: Call, seconds: float) -> tuple[int, bytes]:
        """Status and body, within this many real seconds. Raise LineTimeout or LineBroken."""
        self.deadline.at = monotonic() + seconds
        url, patience = self.base_url + call.path, {"timeout": {"pool": seconds}}
        try:
            answer = self.pool.request(
                call.method, url, headers=list(call.headers.items()), content=call.content, extensions=patience
            )
        except httpcore.TimeoutException as late:
            raise LineTimeout("no answer in time") from late
        except (httpcore.NetworkError, httpcore.ProtocolError, OSError) as broken:
            raise LineBroken(f"the connection failed: {broken or type(broken).__name__}") from broken
        return answer.status, answer.content

    def close(self) -> None:
        self.pool.close()


class _Backend(httpcore.NetworkBackend):
    """Sockets that count down. The timeouts httpcore passes (none) are ignored."""

    def __init__(self, deadline: Deadline) -> None:
        self.deadline = deadline
        self.plain = httpcore.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[SOCKET_OPTION] | None = None,
    ) -> httpcore.NetworkStream:
        """The first address that answers."""
        failure = httpcore.ConnectError(f"{host} has no address")
        for address in _addresses(host, port, self.deadline):
            try:
                stream = self.plain.connect_tcp(address, port, self.deadline.left(), local_address, socket_options)
            except httpcore.ConnectError as refused:
                failure = refused
            else:
                return _Stream(stream, self.deadline)
        raise failure


class _Stream(httpcore.NetworkStream):
    def __init__(self, plain: httpcore.NetworkStream, deadline: Deadline) -> None:
        self.plain = plain
        self.deadline = deadline

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self.plain.read(max_bytes, self.deadline.left())

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self.plain.write(buffer, self.deadline.left())

    def close(self) -> None:
        """Hang up at once, also where a forked child still holds a copy of the socket."""
        with suppress(OSError):
            self.plain.get_extra_info("socket").shutdown(socket.SHUT_RDWR)
        self.plain.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        secure = self.plain.start_tls(ssl_context, server_hostname, self.deadline.left())
        return _Stream(secure, self.deadline)

    def get_extra_info(self, info: str) -> Any:
        return self.plain.get_extra_info(info)


def _addresses(host: str, port: int, deadline: Deadline) -> list[str]:
    """Where the name points. The resolver keeps its own time, so it is asked on a thread that may be left behind."""
    found: SimpleQueue[list[str] | OSError] = SimpleQueue()

    def resolve() -> None:
        try:
            answers = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
            found.put([str(address[0]) for *_, address in answers])
        except OSError as unknown:
            found.put(unknown)

    Thread(target=resolve, daemon=True, name=f"resolve {host}").start()
    try:
        result = found.get(timeout=deadline.left())
    except Empty as late:
        raise httpcore.ConnectTimeout(f"{host} was not resolved in time") from late
    if isinstance(result, OSError):
        raise httpcore.ConnectError(f"{host} could not be resolved") from result
    return result
