"""How many orders a second the laboratory plays, beside the same work without it.

    python -m bench.lab [--seconds 5] [--json]

`orders`: two boxes over two rows, guarded and without a lock, orders taken by chance so that some statements block.
Its floors, on the same server in the same run, world set up and cleared each time as for an order: `orm`, the same
two sweeps one after another on Django's own connection; `psycopg`, the statements of those, straight to psycopg.
`wednesday` is a whole evening, set up and cleared. Then how the rate falls with boxes, rows and faults.
"""

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from marlow.clock import monotonic
from marlow.servers.postgres import EmbeddedPostgres


@contextmanager
def opened() -> Iterator[Any]:
    """A laboratory on a Postgres of its own. Django's settings are read here: what needs them is imported later."""
    with tempfile.TemporaryDirectory(prefix="marlow-bench-") as folder:
        postgres = EmbeddedPostgres(Path(folder) / "postgres").start()
        os.environ.pop("MARLOW_CLOCK_FILE", None)
        os.environ |= {
            "DJANGO_SETTINGS_MODULE": "marlow.settings",
            "MARLOW_DEMO": "1",
            "MARLOW_TIME_SCALE": "1",
            "MARLOW_STATE_DIR": folder,
            "LAB_DATABASE_URL": postgres.url(),
        }
        import django

        django.setup()
        from exercises.scenarios.room import laboratory

        try:
            with laboratory() as database:
                yield database
        finally:
            postgres.stop()


def rate(seconds: float, one: Callable[[], object]) -> float:
    """How often a second, after a few for nothing."""
    for _ in range(3):
        one()
    began, times = monotonic(), 0
    while monotonic() - began < seconds:
        one()
        times += 1
    return times / (monotonic() - began)


def rows(database: Any, seconds: float) -> Iterator[dict[str, Any]]:
    from django.db import connection

    from exercises.lab.policies import Chance
    from exercises.lab.scheduler import Scheduler
    from exercises.scenarios import corner, replay
    from exercises.scenarios.boxes import Box, Servers, Setting
    from exercises.scenarios.faults import Fault
    from sweeper.journal import Memory

    seeds = iter(range(10**9))
    setting = Setting(lock="none", settle="guarded")
    two = corner.Corner(setting)

    def order(which: Any = two, faults: tuple[Any, ...] = ()) -> object:
        return corner.play(database, which, Chance(next(seeds)), faults)

    def one_after_another() -> None:
        with corner._rows(2):
            scheduler, journal = Scheduler(Chance(0), corner.START), Memory()
            servers = Servers(scheduler)
            for name in two.names:
                fibre = Box(name, 0.0, servers, setting, journal).cron(corner.START)
                fibre._work()
            corner._counted()

    said: list[tuple[str, Any]] = []

    def note(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        said.append((sql, params))
        return execute(sql, params, many, context)

    with connection.execute_wrapper(note):
        one_after_another()

    def straight() -> None:
        with connection.connection.cursor() as cursor:
            for sql, params in said:
                cursor.execute(sql, params)

    orm, bare = rate(seconds, one_after_another), rate(seconds, straight)
    yield {"name": "orders", "rate": rate(seconds, order), "floor": orm}
    yield {"name": "orm", "rate": orm, "floor": bare}
    yield {"name": "wednesday", "rate": rate(seconds, lambda: replay.play(database, Setting())), "floor": None}
    for boxes, orders in ((3, 2), (4, 2), (2, 4), (2, 8)):
        which = corner.Corner(setting, boxes, orders)
        yield {"name": f"{boxes} boxes, {orders} rows", "rate": rate(seconds, partial(order, which)), "floor": None}
    for kind in ("pause", "crash"):
        faults = (Fault.read(f"{kind}@box-a:3"),)
        yield {"name": f"with a {kind}", "rate": rate(seconds, partial(order, two, faults)), "floor": None}


def main() -> None:
    parser = argparse.ArgumentParser(description="python -m bench.lab: orders a second, beside their floors.")
    parser.add_argument("--seconds", type=float, default=5.0, help="for each row, 5 by default")
    parser.add_argument("--json", action="store_true", help="rows for a machine, in the last line")
    options = parser.parse_args()
    told = []
    with opened() as database:
        for row in rows(database, options.seconds):
            row["ratio"] = row["floor"] and round(row["floor"] / row["rate"], 2)
            told.append(row)
            floor = f", {row['ratio']} of its floor's time ({row['floor']:.0f})" if row["floor"] else ""
            print(
                f"{row['name']}: {row['rate']:.1f} a second{floor}", file=sys.stderr if options.json else sys.stdout
            )
    if options.json:
        print(json.dumps(told))


if __name__ == "__main__":
    main()
