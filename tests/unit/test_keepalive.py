"""The number that is promised of a box that vanished. tests/hosts measures it."""

import re
from pathlib import Path

import pytest
from django.conf import settings

from sweeper.locks.keepalive import let_go_after

TEXT = (Path(__file__).resolve().parents[2] / "docs/two-nodes.md").read_text()
DEFAULTS = (
    settings.MARLOW_TCP_KEEPALIVES_IDLE,
    settings.MARLOW_TCP_KEEPALIVES_INTERVAL,
    settings.MARLOW_TCP_KEEPALIVES_COUNT,
    settings.MARLOW_TCP_USER_TIMEOUT,
)


@pytest.mark.parametrize(
    ("idle", "interval", "count", "user_timeout", "seconds"),
    [
        (5, 1, 3, 0, 8),
        (5, 1, 3, 3, 6),  # the first look at which a probe is out comes after the timeout
        (5, 1, 3, 6, 6),
        (5, 1, 3, 7, 7),
        (5, 1, 3, 8, 8),
        (5, 1, 3, 20, 20),
        (1, 4, 3, 2, 5),
        (1, 4, 3, 6, 9),  # looked at after 5 and after 9, not at 6
        (2, 1, 2, 3, 3),
    ],
)
def test_idle_it_is_over_at_a_probe(idle: int, interval: int, count: int, user_timeout: int, seconds: float) -> None:
    """By the count of probes without a user timeout, by its seconds with one."""
    assert let_go_after(idle, interval, count, user_timeout, in_flight=False) == seconds


@pytest.mark.parametrize("count", [0, 1, 100])
def test_beside_a_user_timeout_the_count_does_not_count(count: int) -> None:
    """Neither shortens nor lengthens it."""
    assert let_go_after(30, 10, count, 60, in_flight=False) == 60


@pytest.mark.parametrize(
    "numbers",
    [
        (0, 10, 3, 0),
        (30, 0, 3, 0),
        (30, 10, 0, 0),
        (0, 10, 3, 60),  # a timeout times nothing before the first probe, and that is the kernel's
        (30, 0, 3, 60),
        (0, 0, 0, 60),
    ],
)
def test_idle_a_number_left_to_the_kernel_promises_nothing(numbers: tuple[int, int, int, int]) -> None:
    """Its defaults are hours, and may be set otherwise there."""
    assert let_go_after(*numbers, in_flight=False) is None


def test_in_flight_only_the_user_timeout_counts() -> None:
    """Keepalives stand still while data is unacknowledged."""
    assert let_go_after(5, 1, 3, 20, in_flight=True) == 20
    assert let_go_after(0, 0, 0, 20, in_flight=True) == 20
    assert let_go_after(5, 1, 3, 0, in_flight=True) is None


def test_the_defaults_promise_what_the_guide_says() -> None:
    """One number, idle or in flight, and with the lateness of the kernel's timers less than one interval."""
    seconds = let_go_after(*DEFAULTS, in_flight=False)
    assert seconds is not None
    assert seconds == let_go_after(*DEFAULTS, in_flight=True)
    assert f"= {seconds:g} seconds" in TEXT
    late = seconds * 9 / 8
    assert f"up to {late:.0f} s" in TEXT
    assert late < settings.SWEEPER_EVERY


def test_the_guide_s_examples_follow_the_rule() -> None:
    """Its table of what a user timeout makes of the same probes."""
    rows = re.findall(r"^ *\| (\d+) \+ (\d+) × (\d+) \| (\d+|none) \| (\d+) s \|", TEXT, re.MULTILINE)
    assert len(rows) > 3
    for idle, interval, count, user_timeout, seconds in rows:
        timeout = 0 if user_timeout == "none" else int(user_timeout)
        assert let_go_after(int(idle), int(interval), int(count), timeout, in_flight=False) == float(seconds)
