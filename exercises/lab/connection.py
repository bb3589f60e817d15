"""The Postgres connection that yields: each round trip is a step, and a blocked one is told from a slow one.

psycopg drives each round trip through `Connection.wait`. Here that first waits for the scheduler's choice; then it
sends, and waits for the socket. What has not answered after SLOW is asked about on a second connection: if another
session blocks it, its fibre waits for that and others go on. Outside a fibre this is psycopg's own connection.
"""

import select
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Self

import psycopg
from psycopg import IsolationLevel, pq
from psycopg.abc import PQGen
from psycopg.adapt import AdaptersMap
from psycopg.pq.abc import PGconn
from psycopg.waiting import Ready, Wait

from exercises.lab.fibre import Abandoned, Fibre, Waiting, current
from exercises.lab.monitor import Lost, Monitor
from exercises.lab.scheduler import LabError
from exercises.lab.statements import BY_NAME, COMMIT, LOCAL, ROLLBACK, Statement, read
from exercises.lab.steps import EVERYTHING, Mode, Step, Touch, touching
from marlow.clock import monotonic

SLOW = 0.0003  # real seconds after which a statement may be a blocked one
UNLIKELY = 0.005  # likewise, where it wants no lock that somebody else can have
PATIENCE = 20.0  # real seconds that a statement which nobody blocks may take


class LabConnection(psycopg.Connection[Any]):
    """`monitor` is set by whoever lends this to fibres; `name` stands for it in what is recorded."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.monitor: Monitor | None = None
        self.played = False  # a fibre had it, in this run
        self._statement: Statement | None = None
        self._wrote: set[str] = set()  # by the open transaction
        self._held: set[str] = set()  # what it may have locked
        self._named = False  # whether the session may hold a lock by name
        self._any_level = False  # a statement was about levels of isolation: it may be at any
        self._victim = False  # of a deadlock, as the laboratory chose
        # Of the step it waits at: it is carried out (True) or not (False), and its answer is lost with the session.
        self.unknown: bool | None = None

    @classmethod
    def over(cls, spare: PGconn, described: dict[str, Any]) -> Self:
        """As `connect` with what Django describes, over a backend that is as good as new."""
        connection = cls(spare)
        connection.cursor_factory = described["cursor_factory"]
        connection.prepare_threshold = described["prepare_threshold"]
        connection._adapters = AdaptersMap(described["context"].adapters)
        return connection

    def close(self) -> None:
        """In a fibre it is over at the server before anybody goes on."""
        fibre = current()
        if fibre is not None and self.monitor is not None:
            self.monitor.end(self)
            fibre.scheduler.look_again = True
        super().close()

    @contextmanager
    def asking(self, query: Any, params: Any) -> Iterator[None]:
        # A query that is put together is read without the connection, which may be lost.
        text = query.as_string(None) if hasattr(query, "as_string") else str(query)
        self._statement = read(text, params)
        self._any_level = self._any_level or "isolation" in text.lower()
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
        self.played = True
        statement = self._statement or self._ending(gen)
        step = Step(statement.label, self._touches(statement), self._frees(statement))
        if statement is not LOCAL:
            fibre.at(step)
        unknown, self.unknown = self.unknown, None
        if unknown is False:
            self.monitor.end(self)
        try:
            answer = self._drive(gen, fibre, statement)
        except psycopg.Error as error:
            fibre.scheduler.look_again = True  # what fails lets go of its transaction's locks at once
            step.besides.update(touching(self._held, Mode.COMMIT))
            if not (self._victim and isinstance(error, psycopg.errors.QueryCanceled)):
                raise
            raise psycopg.errors.DeadlockDetected("deadlock detected: this session gave way") from error
        finally:
            self._victim = False
            self._remember(statement)
        if unknown:
            self.monitor.end(self)
            raise psycopg.OperationalError("the connection was lost before the server answered")
        return answer

    def fresh(self) -> None:
        """Nothing of a run is left."""
        self.unknown, self.played, self._named, self._any_level = None, False, False, False
        self._wrote.clear()
        self._held.clear()

    @property
    def end(self) -> frozenset[Touch]:
        """What the end of this session would touch: what it has written or locked, as far as anybody can tell."""
        if self.pgconn.transaction_status == pq.TransactionStatus.ACTIVE:
            return frozenset({Touch(EVERYTHING, Mode.COMMIT)})  # of a statement that waits nobody knows what it has
        return touching(self._held | ({BY_NAME} if self._named else set()), Mode.COMMIT)

    def _ending(self, gen: PQGen[Any]) -> Statement:
        """Without a statement it is the end of a transaction, or something that asks the server nothing."""
        if self.pgconn.transaction_status == pq.TransactionStatus.IDLE:
            return LOCAL
        return ROLLBACK if "rollback" in _name(gen) else COMMIT

    def _touches(self, statement: Statement) -> frozenset[Touch]:
        found = statement.touches | self._by_level(statement)
        if self.monitor and statement.inserts and not statement.writes & self.monitor.keyed:
            found -= touching(statement.writes, Mode.LOCK)  # nothing there that two could want
        if statement in (COMMIT, ROLLBACK) or (self.autocommit and statement.writes):
            wrote = self._wrote | statement.writes
            found |= touching(wrote | self._held, Mode.COMMIT)  # of what was locked alone the lock is let go
            if self.monitor:  # Django's foreign keys are looked at when the transaction ends
                tables = {name.partition(":")[0] for name in wrote}
                parents = {parent for table in tables for parent in self.monitor.parents.get(table, ())}
                found |= touching(parents, Mode.CHILD)
        return found

    def _frees(self, statement: Statement) -> bool:
        """Whether somebody may go on behind it: it ends a transaction, or is one, or lets go of something by name."""
        looks = all(touch.mode is Mode.SNAPSHOT for touch in statement.touches)
        return statement.frees or (self.autocommit and not looks)

    def _by_level(self, statement: Statement) -> frozenset[Touch]:
        """From REPEATABLE READ on a transaction's first statement takes its snapshot of everything; at SERIALIZABLE
        whatever anybody reads or writes may be what another's COMMIT fails for.
        """
        level = IsolationLevel.SERIALIZABLE if self._any_level else self.isolation_level
        if self.autocommit or level is None or level < IsolationLevel.REPEATABLE_READ:
            return frozenset()
        if level is IsolationLevel.SERIALIZABLE:
            return frozenset({Touch(EVERYTHING, Mode.COMMIT)})
        first = self.pgconn.transaction_status == pq.TransactionStatus.IDLE and statement is not COMMIT
        return frozenset({Touch(EVERYTHING, Mode.SNAPSHOT)}) if first else frozenset()

    def _remember(self, statement: Statement) -> None:
        if self.monitor is None:
            return
        touched = {touch.what for touch in statement.touches if touch.mode is not Mode.SNAPSHOT}
        self._named = self._named or BY_NAME in touched
        if self.pgconn.transaction_status == pq.TransactionStatus.IDLE:
            self._wrote.clear()
            self._held.clear()
            self.monitor.busy.discard(self.pgconn.backend_pid)
        else:
            self._wrote |= statement.writes
            self._held |= touched
            self.monitor.busy.add(self.pgconn.backend_pid)

    def _drive(self, gen: PQGen[Any], fibre: Fibre, statement: Statement) -> Any:
        if not hasattr(psycopg.Connection, _name(gen)):  # a cursor's, which may have another's backend in its hand
            self._demand_session()
        try:
            wanted = next(gen)
            while True:
                if not self._ready(wanted, SLOW if self._may_wait(statement) else UNLIKELY):
                    self._wait_or_yield(wanted, fibre, statement)
                    self._demand_session()
                wanted = gen.send(Ready.RW if wanted == Wait.RW else Ready(wanted))
        except StopIteration as over:
            return over.value

    def _may_wait(self, statement: Statement) -> bool:
        """Whether it is likely to: a guess, which decides how soon it is asked about and nothing else."""
        locks = any(touch.mode is Mode.LOCK for touch in statement.touches)
        return locks and self.monitor is not None and bool(self.monitor.busy - {self.pgconn.backend_pid})

    def _demand_session(self) -> None:
        if isinstance(self.pgconn, Lost):
            raise self.pgconn.asked()

    def _ready(self, wanted: Wait, seconds: float) -> bool:
        """Not with poll(), which knows no less than a millisecond."""
        if wanted != Wait.R:
            return True  # what is sent here is small
        return bool(select.select([self.pgconn.socket], [], [], seconds)[0])

    def _wait_or_yield(self, wanted: Wait, fibre: Fibre, statement: Statement) -> None:
        pid = self.pgconn.backend_pid
        if self._blockers(pid) or not self._arrived(wanted):
            fibre.blocked(
                Waiting(
                    lambda: self._arrived(wanted), statement.label, pid, lambda: self._blockers(pid), self._give_up
                ),
                # At the server it went on when it was freed.
                Step(f"{statement.label} goes on", frees=self._frees(statement)),
            )

    def _blockers(self, pid: int) -> set[int]:
        return self.monitor.blockers(pid) if self.monitor else set()

    def _give_up(self) -> None:
        """Be the victim of a deadlock."""
        self._victim = True
        if self.monitor:
            self.monitor.give_up(self.pgconn.backend_pid)

    def _arrived(self, wanted: Wait) -> bool:
        """Whether the answer is there. False only where somebody blocks the statement; else it is waited for."""
        if self.monitor is None:
            raise LabError("This connection has no monitor.")
        deadline = monotonic() + PATIENCE
        while not isinstance(self.pgconn, Lost) and not self._ready(wanted, SLOW):
            if self.monitor.blockers(self.pgconn.backend_pid) and not self._victim:
                return False
            if monotonic() > deadline:
                raise LabError(f"A statement that nobody blocks took more than {PATIENCE:g} s.")
        return True


def _name(gen: PQGen[Any]) -> str:
    """Of psycopg's function that this is a round trip of."""
    return getattr(gen, "__name__", "")
