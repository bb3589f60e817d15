"""The Postgres connection that yields: each round trip is a step, and a blocked one is told from a slow one.

psycopg drives each round trip through `Connection.wait`. Here that first waits for the scheduler's choice; then it
sends, and waits for the socket. What has not answered after SLOW is asked about on a second connection: if another
session blocks it, its fibre waits for that and others go on. Outside a fibre this is psycopg's own connection.
"""

import select
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from psycopg import pq
from psycopg.abc import PQGen
from psycopg.waiting import Ready, Wait

from exercises.lab.fibre import Abandoned, Fibre, Waiting, current
from exercises.lab.scheduler import LabError
from exercises.lab.statements import COMMIT, LOCAL, ROLLBACK, Statement, read
from exercises.lab.steps import Mode, Step, Touch, touching
from marlow.clock import monotonic

SLOW = 0.0004  # real seconds after which a statement may be a blocked one
PATIENCE = 20.0  # real seconds that a statement which nobody blocks may take
BLOCKED = "select pg_blocking_pids(%s)"  # in: a backend's pid. Out: the pids it waits for, none if it does not wait.


# Out: a table and one that it points at.
PARENTS = "select conrelid::regclass::text, confrelid::regclass::text from pg_constraint where contype = 'f'"
# Out: the tables with a unique key beside the primary one, and those whose primary key nobody counts up.
KEYED = """select distinct i.indrelid::regclass::text from pg_index i
where i.indisunique and (not i.indisprimary or not exists (
    select from pg_attribute a where a.attrelid = i.indrelid and a.attnum = any(i.indkey) and a.attidentity <> ''))"""


class Monitor:
    """The second connection, which asks who is blocked; it also knows which inserts can meet somebody."""

    def __init__(self, conninfo: str) -> None:
        self._connection = psycopg.connect(conninfo, autocommit=True)
        self.parents: dict[str, set[str]] = {}
        for child, parent in self._connection.execute(PARENTS):
            self.parents.setdefault(child, set()).add(parent)
        self.keyed = {table for (table,) in self._connection.execute(KEYED)}

    def blocked(self, pid: int) -> bool:
        row = self._connection.execute(BLOCKED, (pid,)).fetchone()
        return bool(row and row[0])

    def end(self, pid: int) -> None:
        """End a session, as an administrator does."""
        self._connection.execute("select pg_terminate_backend(%s, 1000)", (pid,))

    def close(self) -> None:
        self._connection.close()


class LabConnection(psycopg.Connection[Any]):
    """`monitor` is set by whoever lends this to fibres; `name` stands for it in what is recorded."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.monitor: Monitor | None = None
        self._statement: Statement | None = None
        self._wrote: set[str] = set()  # by the open transaction
        self._poll = select.poll()
        self._polled = -1

    @contextmanager
    def asking(self, query: Any, params: Any) -> Iterator[None]:
        self._statement = read(query.as_string(self) if hasattr(query, "as_string") else str(query), params)
        try:
            yield
        finally:
            self._statement = None

    def wait(self, gen: PQGen[Any], interval: float = 0.1, timeout: float | None = None) -> Any:
        fibre = current()
        if fibre is None or self.monitor is None:
            return super().wait(gen, interval, timeout)
        if fibre.abandoned:
            raise Abandoned
        statement = self._statement or self._ending(gen)
        if statement is not LOCAL:
            fibre.at(Step(statement.label, self._touches(statement)))
        try:
            return self._drive(gen, fibre, statement)
        finally:
            self._remember(statement)

    def _ending(self, gen: PQGen[Any]) -> Statement:
        """Without a statement it is the end of a transaction, or something that asks the server nothing."""
        if self.pgconn.transaction_status == pq.TransactionStatus.IDLE:
            return LOCAL
        return ROLLBACK if "rollback" in getattr(gen, "__name__", "") else COMMIT

    def _touches(self, statement: Statement) -> frozenset[Touch]:
        found = statement.touches
        if self.monitor and statement.inserts and not statement.writes & self.monitor.keyed:
            found -= touching(statement.writes, Mode.LOCK)  # nothing there that two could want
        if statement in (COMMIT, ROLLBACK) or (self.autocommit and statement.writes):
            wrote = self._wrote | statement.writes
            found |= touching(wrote, Mode.COMMIT)
            if self.monitor:  # Django's foreign keys are looked at when the transaction ends
                parents = {parent for table in wrote for parent in self.monitor.parents.get(table, ())}
                found |= touching(parents, Mode.CHILD)
        return found

    def _remember(self, statement: Statement) -> None:
        if self.pgconn.transaction_status == pq.TransactionStatus.IDLE:
            self._wrote.clear()
        else:
            self._wrote |= statement.writes

    def _drive(self, gen: PQGen[Any], fibre: Fibre, statement: Statement) -> Any:
        try:
            wanted = next(gen)
            while True:
                if not self._ready(wanted, SLOW):
                    self._wait_or_yield(wanted, fibre, statement)
                wanted = gen.send(Ready.RW if wanted == Wait.RW else Ready(wanted))
        except StopIteration as over:
            return over.value

    def _ready(self, wanted: Wait, seconds: float) -> bool:
        if wanted != Wait.R:
            return True  # what is sent here is small
        if self._polled != self.pgconn.socket:
            self._polled = self.pgconn.socket
            self._poll.register(self._polled, select.POLLIN)
        return bool(self._poll.poll(seconds * 1000))

    def _wait_or_yield(self, wanted: Wait, fibre: Fibre, statement: Statement) -> None:
        if not self._arrived(wanted):
            fibre.blocked(
                Waiting(lambda: self._arrived(wanted), statement.label),
                Step(f"{statement.label} goes on", statement.touches),
            )

    def _arrived(self, wanted: Wait) -> bool:
        """Whether the answer is there. False only where somebody blocks the statement; else it is waited for."""
        if self.monitor is None:
            raise LabError("This connection has no monitor.")
        deadline = monotonic() + PATIENCE
        while not self._ready(wanted, SLOW):
            if self.monitor.blocked(self.pgconn.backend_pid):
                return False
            if monotonic() > deadline:
                raise LabError(f"A statement that nobody blocks took more than {PATIENCE:g} s.")
        return True
