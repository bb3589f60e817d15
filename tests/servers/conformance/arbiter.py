"""Who is in at the same time, decided by something that is not the lock: a counter a place, in a table of Postgres.

A box counts itself in when the lock has said yes and out before it lets go, each with a commit of its own; so where
the counter ever says two, two were told yes at once.
"""

from types import TracebackType
from typing import NamedTuple

import psycopg

MAKE = """
    create unlogged table arbiter (
        place text primary key, inside int not null, entries int not null default 1, most int not null default 1
    )
"""
# In: place. One more is inside it; out: how many are now.
ENTER = """
    insert into arbiter as seen (place, inside) values (%s, 1)
    on conflict (place) do update set
        inside = seen.inside + 1, entries = seen.entries + 1, most = greatest(seen.most, seen.inside + 1)
    returning inside
"""
LEAVE = "update arbiter set inside = inside - 1 where place = %s"  # in: place


class Seen(NamedTuple):
    """Of one place: how many entries there were, how many were inside at most, and how many are left there."""

    entries: int
    most: int
    inside: int


class Arbiter:
    def __init__(self, database: str) -> None:
        self.connection = psycopg.connect(database, autocommit=True)
        self.connection.execute("set synchronous_commit = off")

    def __enter__(self) -> "Arbiter":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.connection.close()

    def begin(self) -> None:
        self.end()
        self.connection.execute(MAKE)

    def end(self) -> None:
        self.connection.execute("drop table if exists arbiter")

    def enter(self, place: str) -> None:
        self.connection.execute(ENTER, (place,))

    def leave(self, place: str) -> None:
        self.connection.execute(LEAVE, (place,))

    def seen(self) -> dict[str, Seen]:
        """By place."""
        rows = self.connection.execute("select place, entries, most, inside from arbiter").fetchall()
        return {place: Seen(*numbers) for place, *numbers in rows}
