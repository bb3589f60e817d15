"""What the races came to: a table, a document, or rows for a machine."""

import json
import os
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from textwrap import fill

from rich.console import Console
from rich.table import Table

from bench.locks.contest import CLOSE, GOAL, Row
from marlow.clock import real_now

LIBRARIES = (
    *("redis", "hiredis", "Django", "psycopg", "kazoo", "etcd3gw"),
    *("python-redis-lock", "pottery", "django-pglock"),
)
COLUMNS = ("lock", "path", "floor: the bare commands", "floor, µs", "ours, µs", "ratio", "others, ratio", "goal")

DOCUMENT = """# What the locks cost

{date}, {cores} cores, load average {load} when it ended, {rounds} rounds. Written by
`python -m bench.locks --rounds {rounds} --markdown`, and to be written anew rather than edited.

{table}

{versions}
{left_out}
**Ratio** is the median of ours, or of another library's lock, divided by the median of the floor: the same answer got
by the bare commands in the third column. Those go through the client that people use (redis-py with hiredis, etcd3gw,
kazoo), or through Django's cursor. Ours costs less than its floor where it leaves that client aside: over Redis it
uses redis-py's connections, below its client; to etcd it speaks over connections of its own; in Postgres it asks
psycopg.
The goal is at most {goal} of the floor, and no slower than any of the others; medians within {close:.0%} of each
other count as the same.

`acquired` is to acquire and to release. `refused` is to be told no by a lock that somebody else holds, and who that
is, where the lock can tell. None of the others tells, so they may get by with fewer commands. Over Redis the refusal
itself says who (`GET` beside `NX`, from Redis 7.0 on), so it costs one question, or five at once, where its floor
asks two. In ZooKeeper ours stands in line before it looks, as its floor does: a bare look costs half as much, but the
server that is asked may be behind the others.

All contestants of a row play on one server, in turns, in an order that is shuffled for each round. Connections are
open, no garbage is collected, nothing is journalled. The servers are the demo's, with the demo's durability, the same
for the floor: Postgres and ZooKeeper do not wait for the disk, the Redises keep nothing, etcd does wait.

**Not measured**: the network between a box and a server; several boxes at once; more than one member of etcd or
ZooKeeper, where each write is agreed upon; opening a connection; renewal (etcd's is started and ended, and has
nothing to do in between); what the fence or the session's mark adds to each write. Nor a run as a whole, which asks
the provider about every row and so takes a thousand times as long as any lock here.
"""


def as_json(rows: Sequence[Row]) -> str:
    return json.dumps([row.as_json() for row in rows])


def show(rows: Sequence[Row], missing: Mapping[str, str]) -> None:
    """On the terminal."""
    table = Table(title="What the locks cost, beside their floor and beside others", box=None, padding=(0, 2, 0, 0))
    for title in ("lock", "path", "floor, µs", "ours, µs", "ratio", "others, ratio"):
        table.add_column(title, no_wrap=True)
    for row in rows:
        lock, path, _, floor, ours, ratio, others, _ = cells(row)
        style = "red" if row.missed else ""
        table.add_row(lock, path, floor, ours, ratio, others.replace(", ", "\n"), style=style)
    console = Console()
    console.print(table)
    for row in rows:
        if row.missed:
            console.print(f"{row.race.lock}, {row.race.path}: {row.missed}", style="red")
    for name, why in missing.items():
        console.print(f"{name} was left out: {why}", markup=False)


def document(rows: Sequence[Row], missing: Mapping[str, str], versions: Mapping[str, str], rounds: int) -> str:
    """For `docs/bench-locks.md`."""
    lines = [COLUMNS, ["---", "---", "---", "---:", "---:", "---:", "---", "---"], *(cells(row) for row in rows)]
    servers = ", ".join(f"{name} {told}" for name, told in versions.items())
    libraries = ", ".join(f"{name} {version(name)}" for name in LIBRARIES)
    return DOCUMENT.format(
        date=real_now().date().isoformat(),
        cores=os.cpu_count(),
        load=f"{os.getloadavg()[0]:.1f}",
        rounds=rounds,
        table="\n".join(f"| {' | '.join(line)} |" for line in lines),
        versions=fill(f"Servers: {servers}. Libraries: {libraries}.", 118),
        left_out="".join(f"\nLeft out: {name}. {why}\n" for name, why in missing.items()),
        goal=GOAL,
        close=CLOSE - 1,
    )


def cells(row: Row) -> list[str]:
    peers = ", ".join(f"{name} {seconds / row.floor:.2f}" for name, seconds in row.peers.items())
    return [
        *(row.race.lock, row.race.path, row.race.commands, f"{row.floor * 1e6:.0f}", f"{row.ours * 1e6:.0f}"),
        *(f"{row.ratio:.2f}", peers or "–", row.missed or "met"),
    ]
