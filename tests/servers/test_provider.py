"""The simulated provider, as a process: its money, its modes, its memory."""

import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from itertools import count
from pathlib import Path

import pytest

from marlow.clock import monotonic, real_sleep, wait_until
from shop.provider.answers import Answer, Verdict
from shop.provider.client import HttpProvider
from shop.provider.store import KeyBarred, Store
from tests.servers.provider_fixture import EVENING, SCALE, ProviderProcess, free_port, running_provider

YES, NO, UNKNOWN = Verdict.YES, Verdict.NO, Verdict.UNKNOWN
numbers = count()


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProviderProcess]:
    with running_provider(tmp_path_factory.mktemp("provider")) as provider:
        yield provider


@pytest.fixture
def provider(shared: ProviderProcess) -> ProviderProcess:
    """The module's one process, in fast mode, its clock running."""
    shared.dial.set(EVENING, SCALE)
    shared.dial.start()
    shared.set()
    return shared


@pytest.fixture
def shop(provider: ProviderProcess) -> Iterator[HttpProvider]:
    with provider.client() as client:
        yield client


@pytest.fixture
def own(tmp_path: Path) -> Iterator[ProviderProcess]:
    """A process of this test's own, to be killed."""
    with running_provider(tmp_path) as provider:
        yield provider


@pytest.fixture
def key() -> str:
    return f"order-{next(numbers)}"


# --- money --------------------------------------------------------------------------------------------------------


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


# --- modes --------------------------------------------------------------------------------------------------------


def test_slow_answers_after_its_latency(provider: ProviderProcess, shop: HttpProvider, key: str) -> None:
    """9.4 virtual seconds are 940 real milliseconds at ten times, and inside a deadline of ten."""
    provider.dial.set(EVENING, scale=10)
    provider.set(default={"mode": "slow", "latency": 9.4})
    started = monotonic()
    assert shop.lookup(key).verdict is NO
    assert 0.94 <= monotonic() - started < 1.0


def test_spacing_keeps_slow_answers_in_step(provider: ProviderProcess, shop: HttpProvider, key: str) -> None:
    """On one connection, whatever the client does in between; one that comes back late waits for the latency only."""
    provider.set(default={"mode": "slow", "latency": 3, "spacing": 5})
    started = monotonic()
    for _ in range(3):
        assert shop.lookup(key).verdict is NO
        real_sleep(0.04)
    assert 0.65 <= monotonic() - started - 0.04 < 0.7  # 3 + 5 + 5 virtual seconds
    real_sleep(0.15)
    again = monotonic()
    assert shop.lookup(key).verdict is NO
    assert 0.15 <= monotonic() - again < 0.2


def test_a_slow_charge_that_timed_out_never_moved(provider: ProviderProcess, shop: HttpProvider, key: str) -> None:
    """The client was gone before the delay was over."""
    provider.set(charge={"mode": "slow", "latency": 10.6})
    assert shop.charge(key, 100) == Answer(UNKNOWN, why="no answer within 10 s")
    real_sleep(0.1)
    assert shop.lookup(key).verdict is NO


def test_dark_never_answers_and_moves_nothing(provider: ProviderProcess, shop: HttpProvider, key: str) -> None:
    """The deadline ends the call, not the provider."""
    provider.set(charge={"mode": "dark"})
    assert shop.charge(key, 100) == Answer(UNKNOWN, why="no answer within 10 s")
    assert shop.lookup(key).verdict is NO


def test_refusing_is_unknown(provider: ProviderProcess, shop: HttpProvider, key: str) -> None:
    """A 503 may come from anywhere: it is never a no."""
    provider.set(default={"mode": "refusing"})
    assert shop.charge(key, 100) == Answer(UNKNOWN, why="the provider answered 503")
    assert shop.cancel(key).verdict is UNKNOWN
    assert shop.refund(key, f"back-{key}", 100).verdict is UNKNOWN
    assert shop.charges_since(EVENING) is None


def test_a_declined_card_stays_declined_under_its_key(
    provider: ProviderProcess, shop: HttpProvider, key: str
) -> None:
    """The shop acted on the no, so a second try must not move money."""
    provider.set(charge={"mode": "declining"})
    assert shop.charge(key, 100) == Answer(NO, why="the card was declined")
    provider.set()
    assert shop.charge(key, 100).verdict is NO
    assert shop.lookup(key).verdict is NO
    assert shop.cancel(key).verdict is NO


def test_declining_does_not_undo_money_that_moved(provider: ProviderProcess, shop: HttpProvider, key: str) -> None:
    """The key was charged before the card began to be declined."""
    shop.charge(key, 100)
    provider.set(charge={"mode": "declining"})
    assert shop.charge(key, 100) == Answer(YES, 100)


def test_flapping_alternates(provider: ProviderProcess, shop: HttpProvider, key: str) -> None:
    """An answer, a 503, an answer, a 503, counted for each operation by itself."""
    provider.set(default={"mode": "flapping"})
    assert [shop.lookup(key).verdict for _ in range(4)] == [NO, UNKNOWN, NO, UNKNOWN]
    assert shop.charge(key, 100).verdict is YES


def test_a_late_charge_lands_without_its_client(provider: ProviderProcess, shop: HttpProvider, key: str) -> None:
    """A lookup says no until then, and that no was not final."""
    provider.set(charge={"mode": "late", "lands_after": 20})
    started = provider.clock.now()
    assert shop.charge(key, 100) == Answer(UNKNOWN, why="no answer within 10 s")
    assert shop.lookup(key).verdict is NO
    real_sleep(1.0)  # nobody asks meanwhile: the landing is not something a question brings about
    [charge] = [charge for charge in shop.charges_since(started) or [] if charge.key == key]
    assert 20 <= (charge.landed_at - started).total_seconds() < 25


def test_a_cancel_before_a_late_landing_bars_it_for_good(
    provider: ProviderProcess, shop: HttpProvider, key: str
) -> None:
    """After that no, the money never moves."""
    provider.set(charge={"mode": "late", "lands_after": 14})
    assert shop.charge(key, 100).verdict is UNKNOWN
    assert shop.cancel(key).verdict is NO
    real_sleep(0.4)  # eight virtual seconds: past the landing
    assert shop.lookup(key).verdict is NO
    provider.set()
    assert shop.charge(key, 100).verdict is NO


def test_a_late_charge_tried_again_moves_money_once(provider: ProviderProcess, shop: HttpProvider, key: str) -> None:
    """The second try lands at once and the first has nothing left to do."""
    provider.set(charge={"mode": "late", "lands_after": 14})
    assert shop.charge(key, 100).verdict is UNKNOWN
    assert provider.ask("POST", "/v1/charges", {"amount_minor": 101}, key)[1]["error"]["code"] == "amount_differs"
    provider.set()
    assert shop.charge(key, 100) == Answer(YES, 100)
    real_sleep(0.4)
    assert provider.landed().count((key, 100)) == 1


@pytest.mark.parametrize("mode", ["html", "garbage"])
def test_nonsense_is_unknown_and_does_nothing(
    provider: ProviderProcess, shop: HttpProvider, key: str, mode: str
) -> None:
    """A 200 alone is not an answer."""
    provider.set(default={"mode": mode})
    answers = [shop.charge(key, 100), shop.lookup(key), shop.cancel(key), shop.refund(key, f"back-{key}", 100)]
    assert [answer.verdict for answer in answers] == [UNKNOWN] * 4
    assert shop.charges_since(EVENING) is None
    provider.set()
    assert shop.charge(key, 100).verdict is YES


def test_a_wrong_amount_is_reported_as_it_was_heard(provider: ProviderProcess, shop: HttpProvider, key: str) -> None:
    """A lookup and a cancel pass it on for the shop to compare; a charge that asked for another is unknown."""
    shop.charge(key, 100)
    provider.set(default={"mode": "wrong_amount"})
    assert shop.lookup(key) == Answer(YES, 101)
    assert shop.cancel(key) == Answer(YES, 101)
    assert shop.charge(key, 100).verdict is UNKNOWN


def test_a_rule_hits_every_nth_request_from_the_first_on(provider: ProviderProcess, shop: HttpProvider) -> None:
    """Others are fast, and setting the control counts afresh."""
    for _ in range(2):
        provider.set(charge={"mode": "declining", "every": 3, "first": 1})
        verdicts = [shop.charge(f"nth-{next(numbers)}", 100).verdict for _ in range(6)]
        assert verdicts == [YES, NO, YES, YES, NO, YES]


def test_an_operation_without_a_rule_takes_the_default(
    provider: ProviderProcess, shop: HttpProvider, key: str
) -> None:
    """Null means the default's; a rule of its own comes first."""
    provider.set(default={"mode": "refusing"}, lookup={"mode": "fast"}, cancel=None)
    assert shop.lookup(key).verdict is NO
    assert shop.cancel(key).verdict is UNKNOWN


def test_a_default_meant_for_charges_leaves_the_others_fast(
    provider: ProviderProcess, shop: HttpProvider, key: str
) -> None:
    """There is no late lookup and no declined cancel."""
    provider.set(default={"mode": "declining"})
    assert shop.charge(key, 100).verdict is NO
    assert shop.charges_since(EVENING) is not None


def test_the_schedule_changes_modes_by_the_virtual_clock(provider: ProviderProcess, shop: HttpProvider) -> None:
    """The evening's: charges every fifth and lookups too slow from 20:50, everything just inside ten from 21:50."""
    provider.set(
        schedule=[
            {
                "at": "2026-02-11T20:50:00+00:00",
                "charge": {"mode": "slow", "latency": 10.6, "every": 5, "first": 3},
                "lookup": {"mode": "slow", "latency": 10.6},
            },
            {"at": "2026-02-11T21:50:00+00:00", "default": {"mode": "slow", "latency": 9.4}},
        ]
    )

    def timed(call: str) -> tuple[Verdict, int]:
        """The verdict, and how long it took to the nearest five virtual seconds."""
        key, started = f"evening-{next(numbers)}", monotonic()
        answer = shop.lookup(key) if call == "lookup" else shop.charge(key, 100)
        return answer.verdict, round((monotonic() - started) * 10 / 5) * 5

    provider.dial.set(EVENING - timedelta(seconds=1), scale=10)
    assert timed("lookup") == (NO, 0)
    provider.dial.set(EVENING, scale=10)
    assert [timed("charge") for _ in range(5)] == [(YES, 0)] * 3 + [(UNKNOWN, 10), (YES, 0)]
    assert timed("lookup") == (UNKNOWN, 10)
    provider.dial.set(EVENING + timedelta(hours=1), scale=10)
    assert timed("charge") == (YES, 10)


@pytest.mark.parametrize(
    ("control", "says"),
    [
        ({"default": {"mode": "asleep"}}, "fast, slow, dark, refusing"),
        ({"payout": {"mode": "fast"}}, "cancel, charge, default, list, lookup, refund, schedule"),
        ({"charge": {"mode": "slow"}}, "slow needs a latency"),
        ({"charge": {"mode": "late"}}, "late needs a lands_after"),
        ({"lookup": {"mode": "late", "lands_after": 5}}, "late is for charge"),
        ({"charge": {"mode": "slow", "latency": -1}}, "0 or more"),
        ({"charge": {"mode": "slow", "latency": float("inf")}}, "0 or more"),
        ({"charge": {"mode": "slow", "latency": "9"}}, "number of virtual seconds"),
        ({"charge": {"mode": "fast", "every": 0}}, "1 or more"),
        ({"charge": {"latency": 5}}, "mode can't be null"),
        ({"charge": {"mode": "fast", "speed": 3}}, "every, first, lands_after, latency, mode"),
        ({"charge": "fast"}, "JSON object"),
        ({"schedule": {}}, "list of entries"),
        ({"schedule": {"at": 1}}, "list of entries"),
        ({"schedule": [{"default": None}]}, "schedule[0].at"),
        ({"schedule": [{"at": "2026-02-11T20:50:00"}]}, "with its offset"),
        ({"schedule": [{"at": f"2026-02-11T{hour}:00:00Z"} for hour in (21, 20)]}, "in order"),
    ],
)
def test_a_control_that_makes_no_sense_is_refused_and_changes_nothing(
    provider: ProviderProcess, control: object, says: str
) -> None:
    """422 and what is allowed."""
    provider.set(refund={"mode": "dark"})
    before = provider.ask("GET", "/control")
    status, answer = provider.ask("PUT", "/control", control)
    assert (status, answer["error"]["code"]) == (422, "bad_control")
    assert says in answer["error"]["message"]
    assert provider.ask("GET", "/control") == before


def test_the_control_that_is_read_can_be_set_again(provider: ProviderProcess) -> None:
    """GET answers every field, and PUT takes it back."""
    provider.set(
        charge={"mode": "slow", "latency": 9.4}, schedule=[{"at": "2026-02-11T21:50:00Z", "list": {"mode": "dark"}}]
    )
    _, body = provider.ask("GET", "/control")
    assert provider.ask("PUT", "/control", body) == (200, body)


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
