"""How the simulated provider misbehaves when it is told to."""

from datetime import timedelta
from itertools import count

import pytest

from marlow.clock import monotonic, real_sleep
from shop.provider.answers import Answer, Verdict
from shop.provider.client import HttpProvider
from tests.servers.provider_fixture import EVENING, ProviderProcess

YES, NO, UNKNOWN = Verdict.YES, Verdict.NO, Verdict.UNKNOWN
numbers = count()


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
