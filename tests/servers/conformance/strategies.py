"""Which strategies a test is about, chosen by what they declare."""

from collections.abc import Callable

import pytest

from sweeper.locks import LOCKS
from sweeper.locks.base import Lease, Lock, Refusal, Renewal

Strategy = type[Lock]

# What those that let everybody in do instead of excluding: what no two may ever be in at once. See `Job.over`.
INSTEAD = {"none": "", "slot": "slots", "skip-locked": "rows"}
# A release that looks at nobody's name.
DELETES_ANYBODY_S = {"redis-naive"}


def refuses(strategy: Strategy) -> bool:
    """Whether it says no to anybody: a second slot's run is refused, though the job excludes nobody."""
    return strategy.excludes or INSTEAD.get(strategy.name) == "slots"


def runs_out(strategy: Strategy) -> bool:
    """Whether a lease ends with its ttl although its holder is well, unless it is renewed."""
    return strategy.expires and strategy.renewal is not Renewal.ALWAYS


def strategies(chosen: Callable[[Strategy], bool] = lambda strategy: True) -> pytest.MarkDecorator:
    """One test each."""
    found = [pytest.param(each, id=name, marks=marks(each)) for name, each in LOCKS.items() if chosen(each)]
    return pytest.mark.parametrize("strategy", found)


def marks(strategy: Strategy) -> list[pytest.MarkDecorator]:
    """Those on one server run in one worker, which starts it once; those without one of their own have the shop's."""
    group = pytest.mark.xdist_group(f"locks on {strategy.server or 'postgres'}")
    return [group] if strategy.server else [group, pytest.mark.django_db(transaction=True)]


every = strategies()
excluding = strategies(lambda strategy: strategy.excludes)
refusing = strategies(refuses)
minting = strategies(lambda strategy: strategy.mints_token)


def leased(answer: Lease | Refusal) -> Lease:
    assert isinstance(answer, Lease), answer
    return answer
