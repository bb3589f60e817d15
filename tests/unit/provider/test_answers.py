"""What the client makes of an answer that is late, or makes no sense."""

import socket
import threading
from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from marlow.clock import ScaledClock, monotonic, real_sleep
from shop.provider.answers import Answer, LandedCharge, Verdict
from shop.provider.client import HttpProvider
from tests.unit.provider.talker import EVENING, LANDED, TIMEOUT, Talk, dripping, http, saying

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
