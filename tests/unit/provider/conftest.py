"""Servers that are closed after the test, and a clock that runs twenty times as fast."""

import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from marlow.clock import Dial, ScaledClock
from tests.unit.provider.talker import EVENING, Talk, Talker


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
