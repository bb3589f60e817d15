"""How many orders a second the laboratory plays, beside the same work without it.

    python -m bench.lab [--seconds 5] [--json]

`orders`: two boxes over two rows, guarded and without a lock, orders taken by chance so that some statements block.
Its floors, in turns with it on the same server, world set up, counted and cleared each time as for an order: `orm`,
the same calls one after another on Django's own connection (both boxes' lists, then each row released by both);
`psycopg`, the statements of those, straight to psycopg. `two processes` stands beside one, each with a database of
its own on the same server; `reduction` says how many of all orders need not be played. `wednesday` is a whole
evening. Then how the rate falls with boxes, rows and faults.
"""

import argparse
import json
import multiprocessing
import os
import sys
import tempfile
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from multiprocessing.pool import Pool
from pathlib import Path
from typing import Any

from marlow.clock import monotonic
from marlow.servers.postgres import EmbeddedPostgres

ALL_ORDERS = 705_432  # of two boxes over two rows, guarded, by plain enumeration in a model
BEGIN, COMMIT = "begin", "commit"


@contextmanager
def postgres() -> Iterator[None]:
    """A Postgres of its own, which Django's settings name."""
    with tempfile.TemporaryDirectory(prefix="marlow-bench-") as folder:
        server = EmbeddedPostgres(Path(folder) / "postgres").start()
        os.environ.pop("MARLOW_CLOCK_FILE", None)
        os.environ |= {
            "DJANGO_SETTINGS_MODULE": "marlow.settings",
            "MARLOW_DEMO": "1",
            "MARLOW_TIME_SCALE": "1",
            "MARLOW_STATE_DIR": folder,
            "LAB_DATABASE_URL": server.url(),
        }
        try:
            yield
        finally:
            server.stop()


@contextmanager
def opened() -> Iterator[Any]:
    """A laboratory. Django's settings are read here: what needs them is imported later."""
    import django

    django.setup()
    from exercises.scenarios.room import own_laboratory

    with own_laboratory() as database:
        yield database


def rates(seconds: float, *calls: Callable[[], object]) -> list[float]:
    """How often a second each of them, after a few for nothing. They take turns, so that what else the machine does
    comes down on all of them alike.
    """
    for call in calls * 3:
        call()
    spent, times = [0.0] * len(calls), 0
    while sum(spent) < seconds * len(calls):
        times += 1
        for place, call in enumerate(calls):
            began = monotonic()
            call()
            spent[place] += monotonic() - began
    return [times / each for each in spent]


@dataclass
class Orders:
    """Orders by chance, a new one each time, and how many statements and COMMITs they came to."""

    database: Any
    corner: Any
    faults: tuple[Any, ...] = ()
    played: int = 0
    trips: int = 0

    def __call__(self) -> None:
        from exercises.lab.policies import Chance
        from exercises.scenarios.corner import play

        taken = play(self.database, self.corner, Chance(self.played), self.faults).taken
        labels = [done.option.step.label for done in taken]
        self.played += 1
        self.trips += sum(not label.startswith("provider") and not label.endswith("goes on") for label in labels)


def guarded(boxes: int = 2, orders: int = 2) -> Any:
    from exercises.scenarios.boxes import Setting
    from exercises.scenarios.corner import Corner

    return Corner(Setting(lock="none", settle="guarded"), boxes, orders)


# --- The floors ---------------------------------------------------------------------------------------------------


class Floor:
    """What two boxes do in an order in which both find both rows, without a laboratory. `said`: its statements."""

    def __init__(self) -> None:
        from exercises.scenarios import corner
        from marlow.clock import StandingClock
        from shop.permit import Permit

        self.corner, self.form = corner, guarded().setting.form
        clock = StandingClock(corner.START)
        self.permits = [Permit(clock, box, uuid.uuid5(uuid.NAMESPACE_OID, box)) for box in ("box-a", "box-b")]
        self.said: list[tuple[str, Any]] = []
        self.set_up: list[tuple[str, Any]] = []

    def orm(self) -> None:
        from shop.models import Order

        pending = Order.objects.filter(status=Order.Status.PENDING, created_at__lt=self.corner.START)
        with self.corner.furnished_with(2):
            lists = [self.form.read(permit, pending.order_by("created_at", "id")) for permit in self.permits]
            for order in zip(*lists, strict=True):
                for permit, row in zip(self.permits, order, strict=True):
                    self._release(row, permit)
            self.corner._counted()

    def _release(self, row: Any, permit: Any) -> None:
        self.said.append((BEGIN, None))
        self.form.release(row, permit)
        self.said.append((COMMIT, None))

    def listen(self) -> "Floor":
        """Play it once and remember what is said."""
        from django.db import connection

        def note(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
            self.said.append((sql, params))
            return execute(sql, params, many, context)

        self.orm()
        self.said.clear()
        with connection.execute_wrapper(note):
            self.orm()
        self.set_up, self.said = self.said, []
        return self

    @property
    def trips(self) -> int:
        """Statements and COMMITs of the two boxes: without the setting up, counting and clearing."""
        ours = ("SELECT", "UPDATE", "INSERT", COMMIT)
        return sum(sql.startswith(ours) for sql, _ in self.set_up)

    def psycopg(self) -> None:
        from django.db import connection

        with connection.connection.cursor() as cursor:
            for sql, params in self.set_up:
                cursor.execute(sql, params)


# --- Several processes --------------------------------------------------------------------------------------------

# Of a process of the pool: its laboratory, open as long as the process lives.
_open = ExitStack()
_mine: list[Orders] = []


def _open_for_good() -> None:
    _mine.append(Orders(_open.enter_context(opened()), guarded()))


def _play(seconds: float) -> float:
    return rates(seconds, _mine[0])[0]


def together(pool: Pool, processes: int, seconds: float) -> float:
    """Orders a second, of so many processes at once."""
    return sum(pool.map(_play, [seconds] * processes, chunksize=1))


def two_processes(seconds: float) -> Iterator[dict[str, Any]]:
    with multiprocessing.get_context("spawn").Pool(2, _open_for_good) as pool:
        together(pool, 2, 0.1)  # both are open then
        one, two = 0.0, 0.0
        for _ in range(4):  # in turns
            one += together(pool, 1, seconds / 4) / 4
            two += together(pool, 2, seconds / 4) / 4
    yield {"name": "two processes", "rate": two, "floor": one}


# --- The table ----------------------------------------------------------------------------------------------------


def reduction(database: Any) -> dict[str, Any]:
    """`rate`: how many runs try all orders of two boxes over two rows; `floor`: how many orders there are."""
    from exercises.lab.explore import every_order
    from exercises.scenarios.corner import play

    def one(policy: Any) -> Sequence[Any]:
        return play(database, guarded(), policy).taken

    return {"name": "reduction", "rate": sum(1 for _ in every_order(one)), "floor": ALL_ORDERS}


def rows(database: Any, seconds: float) -> Iterator[dict[str, Any]]:
    from exercises.scenarios import replay
    from exercises.scenarios.boxes import Setting
    from exercises.scenarios.faults import Fault

    floor, orders = Floor().listen(), Orders(database, guarded())
    rate, orm, bare = rates(seconds, orders, floor.orm, floor.psycopg)
    trips = {"trips": round(orders.trips / orders.played, 1), "floor_trips": floor.trips}
    yield {"name": "orders", "rate": rate, "floor": orm, **trips}
    yield {"name": "orm", "rate": orm, "floor": bare}
    yield from two_processes(seconds)
    yield reduction(database)
    yield {"name": "wednesday", "rate": rates(seconds, partial(replay.play, database, Setting()))[0], "floor": None}
    sizes = ((3, 2), (4, 2), (2, 4), (2, 8))
    growing: list[tuple[str, Any, tuple[Any, ...]]] = [
        *((f"{boxes} boxes, {count} rows", guarded(boxes, count), ()) for boxes, count in sizes),
        *((f"with a {kind}", guarded(), (Fault.read(f"{kind}@box-a:3"),)) for kind in ("pause", "crash", "lost")),
    ]
    for name, corner, faults in growing:
        one, other = rates(seconds, Orders(database, corner, faults), orders)
        yield {"name": name, "rate": one, "floor": other}


def told(row: dict[str, Any]) -> str:
    name, rate, floor = row["name"], row["rate"], row["floor"]
    if name == "reduction":
        return f"reduction: {rate} runs try all of {floor:,} orders, one in {row['ratio']:,}"
    if name == "two processes":
        return f"two processes: {rate:.1f} a second, {rate / floor:.2f} times one ({floor:.1f})"
    if floor is None:
        return f"{name}: {rate:.1f} a second"
    trips = f"; statements and COMMITs: {row['trips']} and {row['floor_trips']}" if "trips" in row else ""
    return f"{name}: {rate:.1f} a second, {row['ratio']} of its floor's time ({floor:.1f}){trips}"


def main() -> None:
    parser = argparse.ArgumentParser(description="python -m bench.lab: orders a second, beside their floors.")
    parser.add_argument("--seconds", type=float, default=5.0, help="for each row, 5 by default")
    parser.add_argument("--json", action="store_true", help="rows for a machine, in the last line")
    options = parser.parse_args()
    table = []
    with postgres(), opened() as database:
        for row in rows(database, options.seconds):
            row["ratio"] = row["floor"] and round(row["floor"] / row["rate"], 2)
            table.append(row)
            print(told(row), file=sys.stderr if options.json else sys.stdout, flush=True)
    if options.json:
        print(json.dumps(table))


if __name__ == "__main__":
    main()
