"""A provider for each module, and one for each test that kills it."""

from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from shop.provider.client import HttpProvider
from tests.servers.provider_fixture import EVENING, SCALE, ProviderProcess, running_provider

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
