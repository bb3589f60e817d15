"""The client's connections: kept, made again, shared, and never a detour."""

import multiprocessing
import os
import signal
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime

import pytest

from marlow.clock import ScaledClock, real_sleep
from shop.provider.answers import Answer, Verdict
from shop.provider.client import HttpProvider
from tests.unit.provider.talker import LANDED, TIMEOUT, Talk, http, saying


def test_one_connection_serves_call_after_call(talk: Talk, clock: ScaledClock) -> None:
    """It is kept alive."""
    talker = talk(saying(http(LANDED)))
    with HttpProvider(talker.url, clock, TIMEOUT) as provider:
        assert {provider.lookup("k") for _ in range(20)} == {Answer(Verdict.YES, 100)}
    assert talker.connections == 1


def test_a_connection_closed_between_calls_is_made_again(talk: Talk, clock: ScaledClock) -> None:
    """A provider that restarted costs nobody an answer."""

    def script(connection: socket.socket) -> None:
        connection.recv(65536)
        connection.sendall(http(LANDED))

    talker = talk(script)
    with HttpProvider(talker.url, clock, TIMEOUT) as provider:
        for _ in range(3):
            assert provider.lookup("k") == Answer(Verdict.YES, 100)
            real_sleep(0.02)
    assert talker.connections == 3


def test_threads_share_a_provider(talk: Talk, clock: ScaledClock) -> None:
    """A connection each while they overlap, and each hears the answer to its own question."""

    def script(connection: socket.socket) -> None:
        while request := connection.recv(65536):
            real_sleep(0.01)
            connection.sendall(http({**LANDED, "key": request.split(b" ")[1].rpartition(b"/")[2].decode()}))

    talker = talk(script)
    with HttpProvider(talker.url, clock) as provider, ThreadPoolExecutor(5) as pool:
        answers = list(pool.map(lambda n: provider.lookup(f"k{n}"), range(50)))
    assert answers == [Answer(Verdict.YES, 100)] * 50
    assert talker.connections <= 5


def test_a_forked_child_opens_a_connection_of_its_own(talk: Talk, clock: ScaledClock) -> None:
    """And its end leaves the parent's alone."""
    talker = talk(saying(http(LANDED)))
    with HttpProvider(talker.url, clock, TIMEOUT) as provider:
        provider.lookup("k")
        ours, theirs = multiprocessing.Pipe()
        if not (child := os.fork()):
            theirs.send(provider.lookup("k").verdict.value)
            provider.close()
            os._exit(0)
        assert ours.recv() == "yes"
        assert talker.connections == 2
        os.waitpid(child, 0)
        assert provider.lookup("k").verdict is Verdict.YES
        ours.close()
        theirs.close()
    assert talker.connections == 2


def test_an_interrupted_call_leaves_nothing_behind(talk: Talk, clock: ScaledClock) -> None:
    """A worker's time limit may strike at any point: it passes through, and the next call has a line of its own."""

    class TimeLimit(Exception):
        pass

    def strike(*_: object) -> None:
        raise TimeLimit

    def script(connection: socket.socket) -> None:
        while request := connection.recv(65536):
            real_sleep(0.15 if b"slow" in request else 0)
            connection.sendall(http(LANDED))

    talker = talk(script)
    before = signal.signal(signal.SIGUSR1, strike)
    limit = threading.Timer(0.05, os.kill, [os.getpid(), signal.SIGUSR1])
    with HttpProvider(talker.url, clock) as provider:
        limit.start()
        with pytest.raises(TimeLimit):
            provider.lookup("slow")
        assert provider.lookup("k") == Answer(Verdict.YES, 100)
    limit.join()
    signal.signal(signal.SIGUSR1, before)
    assert talker.connections == 2


def test_proxies_of_the_environment_are_not_used(
    talk: Talk, clock: ScaledClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Money does not take a detour because of a variable."""
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:1")
    with HttpProvider(talk(saying(http(LANDED))).url, clock, TIMEOUT) as provider:
        assert provider.lookup("k").verdict is Verdict.YES


def test_a_key_is_quoted_in_the_path(talk: Talk, clock: ScaledClock) -> None:
    """A slash in a key is part of the key."""
    seen: list[bytes] = []

    def script(connection: socket.socket) -> None:
        seen.append(connection.recv(65536))
        connection.sendall(http({**LANDED, "key": "a/b?c#d é"}))

    with HttpProvider(talk(script).url, clock, TIMEOUT) as provider:
        assert provider.lookup("a/b?c#d é").verdict is Verdict.YES
    assert seen[0].startswith(b"GET /v1/charges/a%2Fb%3Fc%23d%20%C3%A9 HTTP/1.1\r\n")


@pytest.mark.parametrize("url", ["ftp://provider", "127.0.0.1:8001", ""])
def test_an_address_that_is_not_http_is_refused_at_once(clock: ScaledClock, url: str) -> None:
    """A setting that can never work should not look like an outage."""
    with pytest.raises(ValueError, match="begins with http"):
        HttpProvider(url, clock)


def test_a_time_without_a_zone_is_refused(clock: ScaledClock) -> None:
    """It would be read as somebody's local time."""
    with HttpProvider("http://127.0.0.1:1", clock) as provider, pytest.raises(ValueError, match="zone"):
        provider.charges_since(datetime(2026, 2, 11, 20, 50))  # noqa: DTZ001
