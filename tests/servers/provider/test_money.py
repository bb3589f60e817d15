"""The simulated provider's money and its memory: what it promises, and keeps when it is killed."""

import os
import signal
import socket
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import pytest

from marlow.clock import monotonic, real_sleep, wait_until
from shop.provider.answers import Answer, Verdict
from shop.provider.client import HttpProvider
from shop.provider.store import KeyBarred, Store
from tests.servers.provider_fixture import EVENING, SCALE, ProviderProcess, free_port

YES, NO, UNKNOWN = Verdict.YES, Verdict.NO, Verdict.UNKNOWN


def test_the_same_key_moves_money_once_and_answers_the_same(provider: ProviderProcess, key: str) -> None:
    """Also after part of it has moved back."""
    first = provider.ask("POST", "/v1/charges", {"amount_minor": 1299, "reference": "a novel"}, key)
    provider.ask("POST", f"/v1/charges/{key}/refunds", {"amount_minor": 1}, f"back-{key}")
    second = provider.ask("POST", "/v1/charges", {"amount_minor": 1299}, key)
    assert first == second
    assert first[0] == 200
    assert first[1]["reference"] == "a novel"
    assert provider.landed().count((key, 1299)) == 1


def test_twenty_threads_charging_one_key_move_money_once(
    provider: ProviderProcess, shop: HttpProvider, key: str
) -> None:
    """All twenty hear yes."""
    barrier = threading.Barrier(20, timeout=5)

    def charge(_: int) -> Answer:
        barrier.wait()
        return shop.charge(key, 500)

    with ThreadPoolExecutor(20) as pool:
        answers = list(pool.map(charge, range(20)))
    assert answers == [Answer(YES, 500)] * 20
    assert provider.landed().count((key, 500)) == 1


def test_a_key_used_for_another_amount_is_a_conflict(provider: ProviderProcess, shop: HttpProvider, key: str) -> None:
    """The provider says 409; to the shop that is unknown, for money did move under this key."""
    shop.charge(key, 500)
    status, body = provider.ask("POST", "/v1/charges", {"amount_minor": 501}, key)
    assert (status, body["error"]["code"]) == (409, "amount_differs")
    assert shop.charge(key, 501).verdict is UNKNOWN
    assert shop.lookup(key) == Answer(YES, 500)


def test_a_lookup_of_a_key_never_seen_says_no(shop: HttpProvider, key: str) -> None:
    """404 with a JSON body that names the key."""
    assert shop.lookup(key) == Answer(NO, why="no money has moved")


def test_a_cancel_bars_a_key_never_seen(shop: HttpProvider, key: str) -> None:
    """And says so again when asked again."""
    assert shop.cancel(key).verdict is NO
    assert shop.charge(key, 500) == Answer(NO, why="the key was cancelled")
    assert shop.cancel(key).verdict is NO
    assert shop.lookup(key).verdict is NO


def test_a_cancel_after_the_money_moved_says_yes(shop: HttpProvider, key: str) -> None:
    """With the amount, and the charge stays."""
    shop.charge(key, 500)
    assert shop.cancel(key) == Answer(YES, 500)
    assert shop.charge(key, 500) == Answer(YES, 500)


def test_a_cancel_racing_a_charge_agrees_with_it(provider: ProviderProcess, shop: HttpProvider) -> None:
    """Both hear yes and the money moved, or both hear no and it did not."""
    keys = [f"race-{number}" for number in range(60)]
    barrier = threading.Barrier(2, timeout=5)

    def each(call: str) -> list[Verdict]:
        answers = []
        for place, key in enumerate(keys):
            barrier.wait()
            if (call == "cancel") == bool(place % 2):
                real_sleep(0.0005)  # one in two gives the other a start, so that both outcomes are seen
            answers.append(shop.cancel(key) if call == "cancel" else shop.charge(key, 700))
        return [answer.verdict for answer in answers]

    with ThreadPoolExecutor(2) as pool:
        charged, cancelled = pool.map(each, ["charge", "cancel"])
    moved = {key for key, _ in provider.landed()}
    assert charged == cancelled == [YES if key in moved else NO for key in keys]
    assert set(charged) == {YES, NO}


def test_stores_of_one_file_agree_on_one_key(tmp_path: Path) -> None:
    """Eight writers with a connection each, half of them cancelling: the file decides, and nobody fails."""
    barrier = threading.Barrier(8, timeout=5)

    def write(place: int) -> list[bool]:
        store = Store(tmp_path / "store.sqlite3")
        outcomes = []
        for number in range(20):
            barrier.wait()
            try:
                moved = store.cancel(f"k{number}") if place % 2 else store.charge(f"k{number}", 5, "", EVENING)
            except KeyBarred:
                moved = None
            outcomes.append(moved is not None)
        store.close()
        return outcomes

    Store(tmp_path / "store.sqlite3").close()
    with ThreadPoolExecutor(8) as pool:
        first, *others = pool.map(write, range(8))
    assert others == [first] * 7


def test_a_refund_moves_money_back_once_for_its_key(provider: ProviderProcess, shop: HttpProvider, key: str) -> None:
    """Twenty threads with one refund key included."""
    shop.charge(key, 900)
    with ThreadPoolExecutor(20) as pool:
        answers = list(pool.map(lambda _: shop.refund(key, f"back-{key}", 900), range(20)))
    assert answers == [Answer(YES, 900)] * 20
    _, body = provider.ask("GET", f"/v1/charges/{key}")
    assert (body["refunded_minor"], body["refunded"]) == (900, True)


def test_no_more_goes_back_than_was_charged(provider: ProviderProcess, shop: HttpProvider, key: str) -> None:
    """Twenty refunds of a tenth each, with a key each: ten go through."""
    shop.charge(key, 1000)
    with ThreadPoolExecutor(20) as pool:
        answers = list(pool.map(lambda n: shop.refund(key, f"back-{key}-{n}", 100), range(20)))
    assert [answer.verdict for answer in answers].count(YES) == 10
    assert Answer(NO, why="nothing to refund") in answers
    assert provider.ask("GET", f"/v1/charges/{key}")[1]["refunded_minor"] == 1000


def test_a_refund_of_money_that_never_moved_is_a_no(shop: HttpProvider, key: str) -> None:
    """There is nothing to send back."""
    assert shop.refund(key, f"back-{key}", 100) == Answer(NO, why="no money has moved")


def test_a_refund_key_used_for_something_else_is_unknown(shop: HttpProvider, key: str) -> None:
    """Another amount under the same key is a mistake of ours, not an answer."""
    shop.charge(key, 1000)
    shop.refund(key, f"back-{key}", 100)
    assert shop.refund(key, f"back-{key}", 200).verdict is UNKNOWN


def test_the_list_is_oldest_first_from_a_virtual_time(provider: ProviderProcess, shop: HttpProvider) -> None:
    """With what has moved back marked; a charge exactly at `since` belongs to it."""
    tomorrow = EVENING + timedelta(days=1)
    for place, key in enumerate(["list-c", "list-a", "list-b"]):
        provider.dial.set(tomorrow + timedelta(minutes=place), SCALE)
        shop.charge(key, 100 + place)
    shop.refund("list-b", "back-list-b", 102)
    listed = shop.charges_since(tomorrow + timedelta(minutes=1))
    assert listed is not None
    assert [(charge.key, charge.amount_minor, charge.refunded) for charge in listed] == [
        ("list-a", 101, False),
        ("list-b", 102, True),
    ]
    assert listed[0].landed_at == tomorrow + timedelta(minutes=1)


@pytest.mark.parametrize(
    ("method", "path", "body", "key", "status", "code"),
    [
        ("POST", "/v1/charges", {"amount_minor": 0}, "k", 422, "bad_amount"),
        ("POST", "/v1/charges", {"amount_minor": -5}, "k", 422, "bad_amount"),
        ("POST", "/v1/charges", {"amount_minor": 1.5}, "k", 422, "bad_amount"),
        ("POST", "/v1/charges", {"amount_minor": True}, "k", 422, "bad_amount"),
        ("POST", "/v1/charges", {"amount_minor": 10**30}, "k", 422, "bad_amount"),
        ("POST", "/v1/charges", {}, "k", 422, "bad_amount"),
        ("POST", "/v1/charges", {"amount_minor": 5, "reference": 7}, "k", 422, "bad_reference"),
        ("POST", "/v1/charges", {"amount_minor": 5}, "", 422, "bad_key"),
        ("POST", "/v1/charges", {"amount_minor": 5}, "two words", 422, "bad_key"),
        ("POST", "/v1/charges", b"{", "k", 422, "bad_json"),
        ("POST", "/v1/charges", b"[" * 60_000, "k", 422, "bad_json"),
        ("POST", "/v1/charges", b"\xff\xfe", "k", 422, "bad_json"),
        ("POST", "/v1/charges", [5], "k", 422, "bad_json"),
        ("POST", "/v1/charges", b" " * 70_000, "k", 422, "body_too_long"),
        ("POST", "/v1/charges/k/refunds", {"amount_minor": 5}, "", 422, "bad_key"),
        ("GET", "/v1/charges/" + "k" * 201, None, "", 422, "bad_key"),
        ("GET", "/v1/charges", None, "", 422, "bad_since"),
        ("GET", "/v1/charges?since=yesterday", None, "", 422, "bad_since"),
        ("GET", "/v1/charges?since=2026-02-11T20:50:00", None, "", 422, "bad_since"),
        ("GET", "/v1/nothing", None, "", 404, "no_such_page"),
        ("DELETE", "/v1/charges/k", None, "", 405, "method_not_allowed"),
    ],
)
def test_bad_input_gets_a_clear_error(
    provider: ProviderProcess, method: str, path: str, body: object, key: str, status: int, code: str
) -> None:
    """JSON with a code and a sentence, and never a traceback."""
    answered, answer = provider.ask(method, path, body, key)
    assert (answered, answer["error"]["code"]) == (status, code)
    assert len(answer["error"]["message"]) > 10


# --- memory -------------------------------------------------------------------------------------------------------


def test_kill_minus_nine_loses_no_money_and_no_promise(own: ProviderProcess) -> None:
    """What landed, what was barred, what was set and counted, and a landing that fell due in between."""
    with own.client() as shop:
        shop.charge("landed", 100)
        shop.refund("landed", "back", 100)
        shop.cancel("barred")
        own.set(charge={"mode": "late", "lands_after": 12}, lookup={"mode": "flapping"})
        shop.charge("late", 300)
        shop.charge("later", 400)
        assert shop.cancel("later").verdict is NO
        assert shop.lookup("landed") == Answer(YES, 100)
        own.end(signal.SIGKILL)
        assert shop.lookup("landed").verdict is UNKNOWN
        real_sleep(0.2)
        own.start()
        assert shop.lookup("landed").verdict is UNKNOWN  # the second of the flapping lookups
        listed = shop.charges_since(EVENING) or []
        assert [(charge.key, charge.refunded) for charge in listed] == [("landed", True), ("late", False)]
        own.set()
        assert shop.charge("barred", 200).verdict is NO
        assert shop.charge("later", 400).verdict is NO


def test_a_kill_under_load_keeps_every_yes(own: ProviderProcess) -> None:
    """Whatever was answered yes before the process died is there when it is back."""
    with own.client() as shop, ThreadPoolExecutor(4) as pool:
        charging = [pool.submit(shop.charge, f"load-{number}", 100) for number in range(400)]
        assert wait_until(lambda: sum(charge.done() for charge in charging) > 50, 10.0, every=0.005)
        own.end(signal.SIGKILL)
        yes = {f"load-{n}" for n, charge in enumerate(charging) if charge.result().verdict is YES}
        own.start()
        assert 0 < len(yes) < 400
        assert yes <= {key for key, _ in own.landed()}


def test_the_end_does_not_wait_for_those_left_in_the_dark(own: ProviderProcess) -> None:
    """One signal ends the process at once, and it says nothing about it."""
    own.set(default={"mode": "dark"})
    with socket.create_connection(("127.0.0.1", own.port)) as waiting:
        waiting.sendall(b"GET /v1/charges/k HTTP/1.1\r\nHost: provider\r\n\r\n")
        real_sleep(0.05)
        started = monotonic()
        own.end(signal.SIGTERM)
        assert monotonic() - started < 1.0
        assert not waiting.recv(100).startswith(b"HTTP/1.1 200")
    assert own.log.read_text() == ""


def test_without_its_clock_it_says_what_is_missing(tmp_path: Path) -> None:
    """A sentence and a failing exit, not a traceback."""
    command = [sys.executable, "-m", "shop.provider.server", "--port", str(free_port())]
    ended = subprocess.run(
        [*command, "--store", str(tmp_path / "provider.sqlite3")],
        env={**os.environ, "MARLOW_CLOCK_FILE": str(tmp_path / "no-dial.json")},
        capture_output=True,
        text=True,
        timeout=20,
    )
    assert ended.returncode == 1
    assert ended.stderr.startswith("No clock at")
    assert "Traceback" not in ended.stderr
