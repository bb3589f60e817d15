"""The shop's client against servers that misbehave: a few lines of real socket each."""

import json
import multiprocessing
import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import pytest

from marlow.clock import Dial, ScaledClock, monotonic, real_sleep
from shop.provider.answers import Answer, LandedCharge, Verdict
from shop.provider.client import HttpProvider

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


@pytest.fixture
def talk() -> Iterator[Talk]:
    talkers: list[Talker] = []

    def start(script: Callable[[socket.socket], None]) -> Talker:
        talkers.append(Talker(script))
        return talkers[-1]

    yield start
    for talker in talkers:
        talker.close()


@pytest.fixture
def clock(tmp_path: Path) -> ScaledClock:
    dial = Dial(tmp_path / "dial.json")
    dial.set(EVENING, scale=20.0)
    return ScaledClock(dial)


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


# --- the deadline ---------------------------------------------------------------------------------------------------

LONG = {**LANDED, "padding": "x" * 100}


@pytest.mark.parametrize(
    "script",
    [
        dripping(http(LONG)),
        dripping(http(LANDED, more="Padding: " + "x" * 100 + "\r\n")),
        dripping(b"HTTP/1.1 100 Continue\r\n\r\n" * 10 + http(LANDED)),
        dripping(b"HTTP/1.1 200 X\r\nTransfer-Encoding: chunked\r\n\r\n" + b"1\r\n \r\n" * 40),
        lambda connection: connection.recv(65536) and real_sleep(0.4),
    ],
    ids=["body", "headers", "interim answers", "chunks", "nothing"],
)
def test_the_deadline_is_for_the_whole_call(
    talk: Talk, clock: ScaledClock, script: Callable[[socket.socket], None]
) -> None:
    """Every read gets a byte well in time, and the call ends all the same."""
    with HttpProvider(talk(script).url, clock, TIMEOUT) as provider:
        started = monotonic()
        assert provider.lookup("k") == Answer(Verdict.UNKNOWN, why="no answer within 4 s")
        assert 0.19 < monotonic() - started < 0.5


def test_the_deadline_covers_a_connection_that_is_never_made(clock: ScaledClock) -> None:
    """A listener whose queue is full leaves the client waiting for its first packet's answer."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        address = listener.getsockname()
        with (
            socket.create_connection(address),
            HttpProvider(f"http://127.0.0.1:{address[1]}", clock, TIMEOUT) as shop,
        ):
            started = monotonic()
            assert shop.charge("k", 100) == Answer(Verdict.UNKNOWN, why="no answer within 4 s")
            assert monotonic() - started < 0.5


def test_a_drip_that_ends_in_time_is_an_answer(talk: Talk, clock: ScaledClock) -> None:
    """Slow is not wrong."""
    with HttpProvider(talk(dripping(http(LANDED))).url, clock, timeout=60.0) as provider:
        assert provider.lookup("k") == Answer(Verdict.YES, 100)


def test_an_answer_too_late_is_not_given_to_the_next_question(talk: Talk, clock: ScaledClock) -> None:
    """The connection of a call that timed out is never used again."""

    def script(connection: socket.socket) -> None:
        while request := connection.recv(65536):
            key = request.split(b" ")[1].rpartition(b"/")[2].decode()
            real_sleep(0.25 if key == "first" else 0)
            connection.sendall(http({**LANDED, "key": key}))

    talker = talk(script)
    with HttpProvider(talker.url, clock, TIMEOUT) as provider:
        assert provider.lookup("first").verdict is Verdict.UNKNOWN
        real_sleep(0.1)
        assert provider.lookup("second") == Answer(Verdict.YES, 100)
    assert talker.connections == 2


# --- nonsense -------------------------------------------------------------------------------------------------------

NO_SUCH_CHARGE = {"error": {"code": "no_such_charge", "message": "", "key": "k"}}


@pytest.mark.parametrize(
    "answer",
    [
        http(b"<!doctype html><h1>Back soon</h1>"),
        http(b""),
        http(b"\xff\xfe"),
        http(b"[" * 50_000),
        http(b"9" * 10_000),
        http([LANDED]),
        http({"ok": True}),
        http({**LANDED, "amount_minor": -100}),
        http({**LANDED, "amount_minor": 0}),
        http({**LANDED, "amount_minor": 100.0}),
        http({**LANDED, "amount_minor": "100"}),
        http({**LANDED, "amount_minor": True}),
        http({**LANDED, "amount_minor": None}),
        http({**LANDED, "key": "another"}),
        http({**LANDED, "status": "pending"}),
        http({**LANDED, "status": ["landed"]}),
        http({"key": "k", "status": "barred"}),
        http(LANDED, status=201),
        http(LANDED, status=302, more="Location: http://127.0.0.1:1/\r\n"),
        http(LANDED, status=500),
        http(NO_SUCH_CHARGE),
        http(NO_SUCH_CHARGE, status=503),
        http({"error": {"code": "no_such_charge", "key": "another"}}, status=404),
        http({"error": {"code": "no_such_page", "key": "k"}}, status=404),
        http({"error": {"code": ["no_such_charge"], "key": "k"}}, status=404),
        http({"error": "no_such_charge"}, status=404),
        http({"error": {"code": "card_declined", "key": "k"}}, status=402),
        http({}, status=404),
        http(b"Not found", status=404),
        b"HTTP/1.1 200 X\r\nContent-Length: 500\r\n\r\n{}",
        b"HTTP/1.1 200 X\r\nContent-Length: nine\r\n\r\n{}",
        b"SSH-2.0-OpenSSH_9.9\r\n",
        b"\x00" * 200,
        b"",
    ],
)
def test_nonsense_is_unknown_with_a_sentence(talk: Talk, clock: ScaledClock, answer: bytes) -> None:
    """Whatever it is, nobody may act on it; one answer to a connection, which then closes."""

    def script(connection: socket.socket) -> None:
        connection.recv(65536)
        connection.sendall(answer)
        connection.shutdown(socket.SHUT_WR)
        connection.recv(65536)

    with HttpProvider(talk(script).url, clock, TIMEOUT) as provider:
        answered = provider.lookup("k")
    assert (answered.verdict, answered.amount_minor) == (Verdict.UNKNOWN, None)
    assert 10 < len(answered.why) < 120


def test_a_closed_port_is_unknown(clock: ScaledClock) -> None:
    """Refused at once, for every question."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
    with HttpProvider(url, clock) as provider:
        answers = [provider.charge("k", 1), provider.lookup("k"), provider.cancel("k"), provider.refund("k", "r", 1)]
        assert {answer.verdict for answer in answers} == {Verdict.UNKNOWN}
        assert provider.charges_since(EVENING) is None


def test_a_name_that_does_not_resolve_is_unknown(clock: ScaledClock) -> None:
    """Within the deadline, whatever the resolver is doing."""
    with HttpProvider("http://provider.invalid", clock, TIMEOUT) as provider:
        started = monotonic()
        assert provider.lookup("k").verdict is Verdict.UNKNOWN
        assert monotonic() - started < 0.5


def test_the_deadline_covers_a_resolver_that_hangs(clock: ScaledClock, monkeypatch: pytest.MonkeyPatch) -> None:
    """It keeps its own time, often longer than ours."""
    over = threading.Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: over.wait(5) and [])
    with HttpProvider("http://provider.invalid", clock, TIMEOUT) as provider:
        started = monotonic()
        assert provider.lookup("k") == Answer(Verdict.UNKNOWN, why="no answer within 4 s")
        assert monotonic() - started < 0.5
    over.set()


def test_an_answer_about_another_amount_is_unknown_to_who_named_one(talk: Talk, clock: ScaledClock) -> None:
    """A charge and a refund know what they asked for; a lookup passes on what it hears."""
    with HttpProvider(talk(saying(http(LANDED))).url, clock, TIMEOUT) as provider:
        assert provider.charge("k", 99).verdict is Verdict.UNKNOWN
        assert provider.charge("k", 100) == provider.lookup("k") == provider.cancel("k") == Answer(Verdict.YES, 100)
        assert provider.refund("c", "k", 100).verdict is Verdict.UNKNOWN  # a charge is not a refund


CHARGE = {**LANDED, "landed_at": "2026-02-11T21:50:00+00:00", "refunded": False}


def test_the_list_is_read_as_charges(talk: Talk, clock: ScaledClock) -> None:
    """With their times in UTC."""
    with HttpProvider(talk(saying(http({"charges": [CHARGE]}))).url, clock, TIMEOUT) as provider:
        at = datetime(2026, 2, 11, 21, 50, tzinfo=UTC)
        assert provider.charges_since(EVENING) == [LandedCharge("k", 100, at, False)]


@pytest.mark.parametrize(
    "wrong",
    [
        {"amount_minor": -1},
        {"landed_at": "yesterday"},
        {"landed_at": "2026-02-11T21:50:00"},
        {"landed_at": 5},
        {"refunded": 1},
        {"key": None},
    ],
)
def test_one_wrong_charge_makes_the_list_unknown(talk: Talk, clock: ScaledClock, wrong: dict[str, object]) -> None:
    """Half a list would look like the whole truth."""
    answer = http({"charges": [CHARGE, {**CHARGE, **wrong}]})
    with HttpProvider(talk(saying(answer)).url, clock, TIMEOUT) as provider:
        assert provider.charges_since(EVENING) is None


# --- connections ----------------------------------------------------------------------------------------------------


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
