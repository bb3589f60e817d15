"""The faults of the menu: what each does, where each is tried, and what the oracles have to say."""

from dataclasses import replace
from typing import Any

import pytest

from exercises.lab.database import Database
from exercises.lab.policies import Chance, FirstCome
from exercises.scenarios.boxes import Setting
from exercises.scenarios.corner import START, Corner, play
from exercises.scenarios.exploration import Bounds, Exploration, Found
from exercises.scenarios.faults import Fault, Kind
from exercises.scenarios.oracles import STOPPED, liveness, money
from exercises.scenarios.provider import VirtualProvider

PHANTOM = "the catalogue promises copies that no shelf holds (1)"
TWICE = "a row was settled more than once (1)"


def explored(database: Database, corner: Corner, **bounds: Any) -> Found:
    return Exploration(database, corner, Bounds(**bounds)).go()


def test_a_pause_past_the_lease_is_beyond_stopping_on_a_lost_one(database: Database) -> None:
    """Between the look at the clock and the write: only the database can refuse it there."""
    stops = Setting(lock="redis-token", stop_on_lost_lease=True)
    corner = Corner(stops, orders=1, messages=2)
    calm = explored(database, corner)
    assert calm.exhausted
    assert calm.failures == {}, "in calm weather it holds"
    assert (PHANTOM, TWICE) in explored(database, corner, faults=1, kinds=(Kind.PAUSE,)).failures
    assert explored(database, corner, faults=1, kinds=(Kind.PAUSE_SHORT,)).failures == {}


@pytest.mark.parametrize(
    ("kind", "lock"), [("clock", "redlock"), ("clock", "redis-token"), ("failover", "redis-token")]
)
def test_a_server_that_forgets_makes_two_holders(database: Database, kind: str, lock: str) -> None:
    """No box does anything wrong: the lock was given twice, and an unguarded settle settles twice."""
    corner = Corner(Setting(lock=lock, stop_on_lost_lease=True), orders=1)
    assert explored(database, corner).failures == {}
    found = explored(database, corner, faults=1, kinds=(Kind(kind),))
    assert set(found.failures) == {(PHANTOM, TWICE)}
    assert not found.exhausted, "there are other faults than this one"


@pytest.mark.parametrize("kind", ["unknown-done", "crash", "lost"])
def test_what_becomes_of_a_box_costs_a_guarded_shop_nothing(database: Database, kind: str) -> None:
    """Wherever it strikes, the next run puts back what must be put back, once."""
    corner = Corner(Setting(lock="none", settle="guarded"), orders=1, messages=2)
    for after in range(8):
        for seed in range(3):
            played = play(database, corner, Chance(seed), [Fault.read(f"{kind}@box-a:{after}")])
            assert played.wrong == (), f"{kind} after {after} steps, seed {seed}"


def test_with_a_part_of_the_menu_nothing_is_called_exhausted(database: Database) -> None:
    """All orders with these faults were tried, and the others were not."""
    corner = Corner(Setting(lock="none", settle="guarded"), orders=1)
    found = explored(database, corner, faults=1, kinds=(Kind.CRASH,))
    assert (found.exhausted, found.failures) == (False, {})
    assert "menu" in found.stopped


def test_the_menu_leaves_out_no_place_that_can_be_told(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every kind at every place of every box comes to the same ends as the places that are tried."""
    corner, kinds = Corner(Setting(lock="redis-token", question="cancel"), orders=1), (Kind.CRASH, Kind.CLOCK)
    tried = explored(database, corner, faults=1, kinds=kinds)
    monkeypatch.setattr("exercises.scenarios.menu._matters", lambda *anything: True)
    monkeypatch.setattr("exercises.scenarios.menu._struck_first", lambda corner: corner.names)
    everywhere = explored(database, corner, faults=1, kinds=kinds)
    assert everywhere.plans > tried.plans
    assert everywhere.outcomes == tried.outcomes


@pytest.mark.parametrize(
    ("lock", "kind"), [("none", Kind.LOST), ("postgres-advisory", Kind.CRASH), ("redis-token", Kind.CLOCK)]
)
def test_the_reduction_misses_nothing_with_a_fault_either(database: Database, lock: str, kind: Kind) -> None:
    """Of a third party, for which boxes wait: the same ends as all orders have."""
    corner = Corner(Setting(lock=lock), orders=1)
    reduced, whole = (
        explored(database, corner, faults=1, kinds=(kind,), policy=policy, runs=runs)
        for policy, runs in (("all", None), ("plain", 1200))
    )
    assert reduced.outcomes >= whole.outcomes
    assert reduced.schedules < whole.schedules


class TestTheMoney:
    """The provider's books and the shop's orders, with a charge that lands after all."""

    def test_that_lands_behind_a_release_has_no_order(self, database: Database) -> None:
        """Under the guarded write too; never where the sweeper cancels."""
        asked = Corner(Setting(lock="none", settle="guarded"), orders=1)
        found = explored(database, asked, faults=1, kinds=(Kind.LANDS,))
        assert set(found.failures) == {("money landed and no order keeps it (1)",)}
        barred = Corner(Setting(lock="none", settle="guarded", question="cancel"), orders=1)
        assert explored(database, barred, faults=1, kinds=(Kind.LANDS,)).failures == {}

    @pytest.mark.parametrize(
        ("charges", "status", "owed", "sentences"),
        [
            ({}, "pending", [], ()),
            ({"row-1": 0}, "paid", [], ()),
            ({}, "paid", [], ("an order is paid and no money landed (1)",)),
            ({"row-1": 0}, "abandoned", [], ("money landed and no order keeps it (1)",)),
            ({"row-1": 0}, "abandoned", ["row-1"], ()),
            ({"row-1": 1}, "abandoned", [], ()),
            ({"row-1": 2}, "abandoned", ["row-1"], ("money was given back twice (1)",)),
        ],
    )
    def test_is_told_from_the_books(
        self, charges: dict[str, int], status: str, owed: list[str], sentences: tuple[str, ...]
    ) -> None:
        provider = VirtualProvider()
        for key, refunds in charges.items():
            provider.land(key, 1299, START)
            provider.charges[key].refunded |= {f"refund {number}" for number in range(refunds)}
        assert money(provider, {"row-1": status}, owed) == sentences


class TestADeadHolder:
    """For whose sake others are refused: for its lease, its slot, or until Postgres notices, and no longer."""

    @pytest.mark.parametrize("lock", ["redis-token", "slot", "postgres-advisory", "etcd", "zookeeper"])
    @pytest.mark.parametrize("kind", [Kind.CRASH, Kind.POWER])
    def test_stops_nobody_for_longer(self, database: Database, lock: str, kind: Kind) -> None:
        corner = Corner(Setting(lock=lock, settle="guarded"), orders=1, messages=2)
        refused = 0
        for after in range(1, 6):
            played = play(database, corner, FirstCome(), [Fault(kind, "box-a", after)])
            assert played.wrong == ()
            refused += sum(event["kind"] == "refused" for event in played.verdict["events"])
        assert refused or lock == "postgres-advisory", "somebody was refused for the dead one's sake"

    def test_that_does_is_told(self, database: Database) -> None:
        """Keepalives that notice after an hour: the next message, two minutes later, is refused as well."""
        slow = Setting(lock="postgres-advisory", settle="guarded", keepalive=3600.0)
        played = play(database, Corner(slow, orders=1, messages=2), FirstCome(), [Fault(Kind.POWER, "box-a", 1)])
        assert played.wrong == ()
        events, deaths = played.events, played.deaths
        assert liveness(events, deaths, slow) == ()
        impatient = [replace(death, noticed=death.at) for death in deaths]
        assert liveness(events, impatient, slow) == (f"{STOPPED} (1)",)
