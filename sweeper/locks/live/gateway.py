"""One etcd member's HTTP gateway, spoken to over plain TCP on connections that are kept."""

import json
import select
import socket
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException
from typing import Any
from urllib.parse import urlsplit

import requests

JSON = {"Content-Type": "application/json"}


@dataclass(frozen=True)
class Answer:
    """What etcd3gw reads of a response."""

    status_code: int
    reason: str
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode(errors="replace")

    def json(self) -> Any:
        return json.loads(self.body)


class Gateway:
    """Stands in for the session of `requests` that etcd3gw posts with, and raises what that would. What `requests`
    adds (cookies, redirects, proxies, credentials) is not for a lock's server, and costs more than the server does.

    A connection is nobody else's while it waits for its answer, so threads may share this; one that failed, or that
    the member closed meanwhile, is not used again. Nothing is asked twice.
    """

    def __init__(self) -> None:
        self.idle: list[HTTPConnection] = []
        self.closed = False

    def post(self, url: str, *, json: Any, timeout: float, data: str = "") -> Answer:
        """`json` is to be dumped, `data` was: etcd3gw sends one or the other."""
        at = urlsplit(url)
        connection = self._connection(at.hostname or "", at.port or 80, timeout)
        try:
            connection.request("POST", at.path, data.encode() or _dumped(json), JSON)
            response = connection.getresponse()
            answer = Answer(response.status, response.reason, response.read())
        except TimeoutError as late:
            connection.close()
            raise requests.Timeout(f"No answer within {timeout:g} s.") from late
        except (OSError, HTTPException) as error:
            connection.close()
            raise requests.ConnectionError(f"{type(error).__name__}: {error}") from error
        self.idle.append(connection)
        if self.closed:
            self.close()
        return answer

    def close(self) -> None:
        """What is still asked for is answered, on a connection that is closed behind the answer."""
        self.closed = True
        while self.idle:
            self.idle.pop().close()

    def _connection(self, host: str, port: int, timeout: float) -> HTTPConnection:
        """One that was left by an earlier question, or a new one, which connects when it is asked."""
        try:
            connection = self.idle.pop()
        except IndexError:
            return HTTPConnection(host, port, timeout=timeout)
        if connection.sock is not None and _spoke(connection.sock):
            connection.close()
        return connection


def _dumped(question: Any) -> bytes:
    return json.dumps(question).encode()


def _spoke(idle: socket.socket) -> bool:
    """Nobody was asked: it was closed, or speaks out of turn."""
    poll = select.poll()
    poll.register(idle, select.POLLIN)
    return bool(poll.poll(0))
