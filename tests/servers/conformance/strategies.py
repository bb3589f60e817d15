"""Which strategies a test is about, chosen by what they declare."""

from collections.abc import Callable

import pytest

from sweeper.locks import LOCKS
from sweeper.locks.base import Lease, Lock, Refusal, Renewal

Strategy = type[Lock]

# What those that let everybody in do instead of excluding: what no two may ever be in at once. See `boxes`.
INSTEAD = {"none": "", "slot": "slots", "skip-locked": "rows"}
# A release that looks at nobody's name.
DELETES_ANYBODY_S = {"redis-naive"}


def refuses(strategy: Strategy) -> bool:
    """Whether it says no to anybody: a second slot's run is refused, though the job excludes nobody."""
    return strategy.excludes or INSTEAD[strategy.name] == "slots"


def runs_out(strategy: Strategy) -> bool:
    """Whether a lease ends with its ttl although its holder is well, unless it is renewed."""
    return strategy.expires and strategy.renewal is not Renewal.ALWAYS


def strategies(chosen: Callable[[Strategy], bool] = lambda strategy: True) -> pytest.MarkDecorator:
    """One test each. Those on one server run in one worker, so that the server is started once."""
    return pytest.mark.parametrize(
        "strategy",
        [
            pytest.param(each, id=name, marks=pytest.mark.xdist_group(f"locks on {each.server or 'postgres'}"))
            for name, each in LOCKS.items()
            if chosen(each)
        ],
    )


every = strategies()
excluding = strategies(lambda strategy: strategy.excludes)
refusing = strategies(refuses)
minting = strategies(lambda strategy: strategy.mints_token)


def leased(answer: Lease | Refusal) -> Lease:
    assert isinstance(answer, Lease), answer
    return answer
