"""The wrong fences in the laboratory, and the right one: what a pause at the right place shows."""

from collections.abc import Sequence
from functools import partial

import pytest

from exercises.lab.database import Database
from exercises.lab.explore import every_order
from exercises.lab.scheduler import Policy, Taken
from exercises.scenarios.boxes import Setting
from exercises.scenarios.corner import Corner, play
from exercises.scenarios.faults import Fault
from exercises.wrong_fences import WRONG_FENCES

PAUSES = [Fault.read(f"pause@box-a:{after}") for after in range(1, 6)]


def judged(database: Database, corner: Corner, fault: Fault, wrong: list[bool], policy: Policy) -> Sequence[Taken]:
    """One order, and whether it went wrong."""
    played = play(database, corner, policy, [fault])
    wrong.append(bool(played.wrong))
    return played.taken


def failing(database: Database, settle: str, most: int) -> list[str]:
    """The pauses under which some order goes wrong; `most` orders of each are tried."""
    corner, found = Corner(Setting(lock="slot", settle=settle), orders=1, messages=2), []
    for fault in PAUSES:
        wrong: list[bool] = []

        for _ in every_order(partial(judged, database, corner, fault, wrong)):
            if wrong[-1] or len(wrong) == most:
                break
        found += [str(fault)] * any(wrong)
    return found


@pytest.mark.parametrize("settle", WRONG_FENCES)
def test_each_wrong_fence_is_found_out(database: Database, settle: str) -> None:
    """The overtaken run comes back late and is let through."""
    assert failing(database, settle, 60)


@pytest.mark.parametrize("settle", ["fenced", "fenced+guarded"])
def test_the_right_one_is_not(database: Database, settle: str) -> None:
    """Under the same pauses, in as many orders."""
    assert failing(database, settle, 60) == []
