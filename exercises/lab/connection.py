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
from psycopg import IsolationLevel, pq
from psycopg.abc import PQGen
from psycopg.waiting import Ready, Wait

from exercises.lab.fibre import Abandoned, Fibre, Waiting, current
from exercises.lab.scheduler import LabError
from exercises.lab.statements import COMMIT, LOCAL, ROLLBACK, Statement, read
from exercises.lab.steps import EVERYTHING, Mode, Step, Touch, touching
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

    def blockers(self, pid: int) -> set[int]:
        """The sessions that this one waits for; none where it does not wait."""
        row = self._connection.execute(BLOCKED, (pid,)).fetchone()
        return set(row[0]) if row else set()

    def cancel(self, pid: int) -> None:
        self._connection.execute("select pg_cancel_backend(%s)", (pid,))

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
        self._victim = False  # of a deadlock, as the laboratory chose
        # Of the step it waits at: it is carried out (True) or not (False), and its answer is lost with the session.
        self.unknown: bool | None = None

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
        unknown, self.unknown = self.unknown, None
        if unknown is False:
            self.monitor.end(self.pgconn.backend_pid)
        try:
            answer = self._drive(gen, fibre, statement)
        except psycopg.errors.QueryCanceled as cancelled:
            if not self._victim:
                raise
            raise psycopg.errors.DeadlockDetected("deadlock detected: this session closed the circle") from cancelled
        finally:
            self._victim = False
            self._remember(statement)
        if unknown:
            self.monitor.end(self.pgconn.backend_pid)
            raise psycopg.OperationalError("the connection was lost before the server answered")
        return answer

    def _ending(self, gen: PQGen[Any]) -> Statement:
        """Without a statement it is the end of a transaction, or something that asks the server nothing."""
        if self.pgconn.transaction_status == pq.TransactionStatus.IDLE:
            return LOCAL
        return ROLLBACK if "rollback" in getattr(gen, "__name__", "") else COMMIT

    def _touches(self, statement: Statement) -> frozenset[Touch]:
        found = statement.touches | self._by_level(statement)
        if self.monitor and statement.inserts and not statement.writes & self.monitor.keyed:
            found -= touching(statement.writes, Mode.LOCK)  # nothing there that two could want
        if statement in (COMMIT, ROLLBACK) or (self.autocommit and statement.writes):
            wrote = self._wrote | statement.writes
            found |= touching(wrote, Mode.COMMIT)
            if self.monitor:  # Django's foreign keys are looked at when the transaction ends
                parents = {parent for table in wrote for parent in self.monitor.parents.get(table, ())}
                found |= touching(parents, Mode.CHILD)
        return found

    def _by_level(self, statement: Statement) -> frozenset[Touch]:
        """From REPEATABLE READ on a transaction's first statement takes its snapshot of everything; at SERIALIZABLE
        whatever anybody reads or writes may be what another's COMMIT fails for.
        """
        if self.autocommit or self.isolation_level is None or self.isolation_level < IsolationLevel.REPEATABLE_READ:
            return frozenset()
        if self.isolation_level is IsolationLevel.SERIALIZABLE:
            return frozenset({Touch(EVERYTHING, Mode.COMMIT)})
        first = self.pgconn.transaction_status == pq.TransactionStatus.IDLE and statement is not COMMIT
        return frozenset({Touch(EVERYTHING, Mode.SNAPSHOT)}) if first else frozenset()

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
            pid = self.pgconn.backend_pid
            fibre.blocked(
                Waiting(
                    lambda: self._arrived(wanted), statement.label, pid, lambda: self._blockers(pid), self._give_up
                ),
                Step(f"{statement.label} goes on"),  # at the server it went on when it was freed
            )

    def _blockers(self, pid: int) -> set[int]:
        return self.monitor.blockers(pid) if self.monitor else set()

    def _give_up(self) -> None:
        """Be the victim of a deadlock."""
        self._victim = True
        if self.monitor:
            self.monitor.cancel(self.pgconn.backend_pid)

    def _arrived(self, wanted: Wait) -> bool:
        """Whether the answer is there. False only where somebody blocks the statement; else it is waited for."""
        if self.monitor is None:
            raise LabError("This connection has no monitor.")
        deadline = monotonic() + PATIENCE
        while not self._ready(wanted, SLOW):
            if self.monitor.blockers(self.pgconn.backend_pid) and not self._victim:
                return False
            if monotonic() > deadline:
                raise LabError(f"A statement that nobody blocks took more than {PATIENCE:g} s.")
        return True
