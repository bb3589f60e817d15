"""What never fails, exhausted: every order, with every fault of the menu at every place."""

import pytest

from exercises.lab.database import Database
from exercises.scenarios.boxes import Setting
from exercises.scenarios.corner import Corner
from exercises.scenarios.exploration import Bounds, Exploration

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]


@pytest.mark.parametrize(
    ("corner", "least"),
    [
        (Corner(Setting("none", "guarded", question="cancel"), orders=2), 4000),
        (Corner(Setting("slot", "fenced", question="cancel"), orders=1, messages=2), 1000),
        (Corner(Setting("slot", "fenced+guarded", question="cancel"), orders=1, messages=2), 1000),
    ],
    ids=["guarded, two rows", "fenced, two messages", "fenced and guarded, two messages"],
)
def test_one_fault_anywhere_costs_it_nothing(database: Database, corner: Corner, least: int) -> None:
    """Two boxes; no copy made up or lost, no row settled twice, no money without an order, nobody kept out."""
    found = Exploration(database, corner, Bounds(faults=1)).go()
    assert found.failures == {}
    assert found.exhausted
    assert found.schedules >= least
