"""A server of a few lines, and what it can say."""

import json
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime

from marlow.clock import real_sleep

EVENING = datetime(2026, 2, 11, 20, 50, tzinfo=UTC)
TIMEOUT = 4.0  # virtual seconds: 200 real milliseconds
LANDED = {"key": "k", "status": "landed", "amount_minor": 100}


class Talker:
    """A server that runs `script` on each connection, with the number of connections so far."""

    def __init__(self, script: Callable[[socket.socket], None]) -> None:
        self.script = script
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        self.connections = 0
        self.over = threading.Event()
        self.threads = [threading.Thread(target=self.accept)]
        self.threads[0].start()

    def accept(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self.listener.accept()
                self.connections += 1
                self.threads.append(threading.Thread(target=self.talk, args=[connection]))
                self.threads[-1].start()

    def talk(self, connection: socket.socket) -> None:
        with connection, suppress(OSError):
            self.script(connection)

    def close(self) -> None:
        self.over.set()
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        for thread in self.threads:
            thread.join()


Talk = Callable[[Callable[[socket.socket], None]], Talker]


def http(body: object, status: int = 200, more: str = "") -> bytes:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return f"HTTP/1.1 {status} X\r\nContent-Length: {len(content)}\r\n{more}\r\n".encode() + content


def saying(answer: bytes) -> Callable[[socket.socket], None]:
    """Give this answer to every request, for as long as the client stays."""

    def script(connection: socket.socket) -> None:
        while connection.recv(65536):
            connection.sendall(answer)

    return script


def dripping(answer: bytes) -> Callable[[socket.socket], None]:
    """A byte every ten real milliseconds."""

    def script(connection: socket.socket) -> None:
        connection.recv(65536)
        for byte in answer:
            connection.sendall(bytes([byte]))
            real_sleep(0.01)

    return script
