"""Places where a box can be made to stand: just before it notes a given kind of event.

A trigger on the journal of the lane's own database waits there for whoever closed the gate. So a play says exactly
where the first box is when the fault strikes, instead of hoping for it by timing.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from django.conf import settings
from django.db import connections

from marlow.clock import wait_until

SPACE = 7283  # of advisory locks with two keys, which never meet those with one; the trigger below says it too
HANG = """
    create table if not exists proof_gate (id int primary key, box text not null, kind text not null);
    create or replace function proof_gate() returns trigger language plpgsql as $$
    declare gate int;
    begin
        select id into gate from proof_gate g where g.box = new.box and g.kind = new.kind;
        if found then
            perform pg_advisory_xact_lock_shared(7283, gate);
        end if;
        return new;
    end $$;
    drop trigger if exists proof_gate on sweeper_event;
    create trigger proof_gate before insert on sweeper_event for each row execute function proof_gate();
"""
# How many sessions stand at the gate: they asked for its lock and have not got it.
STANDING = "select count(*) from pg_locks where locktype = 'advisory' and classid = %s and objid = %s and not granted"


def hang_gates() -> None:
    """Once for a lane's database, after its migrations."""
    with connections["default"].cursor() as cursor:
        cursor.execute(HANG)


class Gate:
    """Closed while the connection that closed it lives, or until it is opened."""

    def __init__(self, keeper: "psycopg.Connection[tuple[int, ...]]", number: int, box: str, kind: str) -> None:
        self.keeper, self.number, self.name = keeper, number, f"{box} at {kind}"
        keeper.execute("insert into proof_gate values (%s, %s, %s)", (number, box, kind))
        keeper.execute("select pg_advisory_lock(%s, %s)", (SPACE, number))

    def reached(self, seconds: float = 10.0) -> bool:
        """Wait until a box stands here."""
        return wait_until(self._somebody, seconds)

    def open(self) -> None:
        """Whoever stands here goes on, and nobody is held any more."""
        self.keeper.execute("delete from proof_gate where id = %s", (self.number,))
        self.keeper.execute("select pg_advisory_unlock(%s, %s)", (SPACE, self.number))

    def _somebody(self) -> bool:
        row = self.keeper.execute(STANDING, (SPACE, self.number)).fetchone()
        return row is not None and row[0] > 0


@contextmanager
def gates(*places: tuple[str, str]) -> Iterator[list[Gate]]:
    """A closed gate for each (box, kind); all of them are open afterwards."""
    with psycopg.connect(settings.DATABASE_URL, autocommit=True) as keeper:
        keeper.execute("delete from proof_gate")
        try:
            yield [Gate(keeper, number, box, kind) for number, (box, kind) in enumerate(places, start=1)]
        finally:
            if not keeper.closed and not keeper.broken:
                keeper.execute("delete from proof_gate")
