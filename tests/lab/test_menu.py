"""The menu's places: no step of a box is counted twice, and no moment is left out at which a server can fail."""

from collections.abc import Sequence

from exercises.lab.database import Database
from exercises.lab.explore import every_order
from exercises.lab.scheduler import Policy, Taken
from exercises.scenarios.boxes import Setting
from exercises.scenarios.corner import Corner, play
from exercises.scenarios.faults import Fault, Kind
from exercises.scenarios.menu import Reach, menu

ANSWER_TOO_LATE = Fault(Kind.PROVIDER_DONE, "box-a", 2)


def explored(database: Database, corner: Corner, *faults: Fault) -> tuple[Reach, set[tuple[object, ...]]]:
    reach, outcomes = Reach(), set[tuple[object, ...]]()

    def one(policy: Policy) -> Sequence[Taken]:
        played = play(database, corner, policy, faults)
        reach.note(played)
        outcomes.add(played.outcome)
        return played.taken

    list(every_order(one))
    return reach, outcomes


def test_a_server_may_fail_in_the_middle_of_a_later_moment(database: Database) -> None:
    """The first answer comes too late, so the row is the next message's; there the clock of the lock's Redis steps
    between the boxes' questions.
    """
    corner = Corner(Setting(lock="redis-token"), orders=1, messages=2)
    reach, _ = explored(database, corner, ANSWER_TOO_LATE)
    tried = [fault for fault in menu(corner, reach, [ANSWER_TOO_LATE]) if fault.kind is Kind.CLOCK]
    outcomes = [explored(database, corner, ANSWER_TOO_LATE, fault)[1] for fault in tried]
    in_the_middle = explored(database, corner, ANSWER_TOO_LATE, Fault(Kind.CLOCK, "box-b", 3))[1]
    assert any(outcome[2] for outcome in in_the_middle), "a row was settled twice"
    assert in_the_middle <= set[tuple[object, ...]]().union(*outcomes)


def test_a_statement_that_waits_is_one_step_of_its_box(database: Database) -> None:
    """Or places would not be those that a fault counts: list, look, update, update, insert and COMMIT."""
    reach, _ = explored(database, Corner(Setting(lock="none"), orders=1))
    assert {box: len(places) for box, places in reach.places.items()} == {"box-a": 6, "box-b": 6}


def test_a_pause_comes_before_a_loss_of_power_and_after_it(database: Database) -> None:
    """Only after it there is a moment at which Postgres will notice."""
    corner, orders = Corner(Setting(lock="postgres-advisory", settle="guarded"), orders=1, messages=2), set[bool]()

    def one(policy: Policy) -> Sequence[Taken]:
        taken = play(database, corner, policy, [Fault.read("pause@box-a:0"), Fault.read("power@box-b:2")]).taken
        labels = [done.option.step.label for done in taken]
        if "power of box-b" in labels:
            orders.add(labels.index("pause of box-a") < labels.index("power of box-b"))
        return taken

    list(every_order(one))
    assert orders == {True, False}
