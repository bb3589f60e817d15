"""A provider process of a test's own, on a free port, with its store and its dial in the test's folder."""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

import httpcore

from marlow.clock import Dial, ScaledClock, wait_until
from shop.provider.client import HttpProvider

EVENING = datetime(2026, 2, 11, 20, 50, tzinfo=UTC)
SCALE = 20.0


class ProviderProcess:
    """Start, stop, kill and start again; the store and the port stay."""

    def __init__(self, folder: Path, scale: float = SCALE) -> None:
        self.folder = folder
        self.dial = Dial(folder / "dial.json")
        self.dial.set(EVENING, scale)
        self.dial.start()
        self.clock = ScaledClock(self.dial)
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.log = folder / "provider.log"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> Self:
        command = [sys.executable, "-m", "shop.provider.server", "--port", str(self.port)]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [*command, "--store", str(self.folder / "provider.sqlite3")],
                env={**os.environ, "MARLOW_CLOCK_FILE": str(self.dial.path)},
                stderr=log,
            )
        assert wait_until(self.answers, 20.0), "the provider did not come up"
        return self

    def answers(self) -> bool:
        try:
            return httpcore.request("GET", f"{self.url}/healthz").status == 200
        except httpcore.NetworkError:
            return False

    def end(self, how: signal.Signals = signal.SIGTERM) -> None:
        if self.process is not None:
            self.process.send_signal(how)
            self.process.wait(5)
            self.process = None

    def client(self, timeout: float = 10.0) -> HttpProvider:
        return HttpProvider(self.url, self.clock, timeout)

    def ask(self, method: str, path: str, body: Any = None, key: str = "") -> tuple[int, Any]:
        """One raw request: status and JSON of the answer. `body` is sent as it is if it is bytes."""
        content = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        headers = {"Idempotency-Key": key} if key else {}
        answer = httpcore.request(method, self.url + path, headers=headers, content=content)
        return answer.status, json.loads(answer.content)

    def set(self, **control: Any) -> None:
        status, answer = self.ask("PUT", "/control", control)
        assert status == 200, answer

    def landed(self) -> list[tuple[str, int]]:
        _, body = self.ask("GET", "/v1/charges?since=2000-01-01T00:00:00Z")
        return [(charge["key"], charge["amount_minor"]) for charge in body["charges"]]


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


@contextmanager
def running_provider(folder: Path) -> Iterator[ProviderProcess]:
    """Ended in any case, and with nothing to complain about."""
    provider = ProviderProcess(folder)
    try:
        yield provider.start()
    finally:
        provider.end(signal.SIGKILL)
    assert provider.log.read_text() == ""
