"""The second connection to the laboratory's database: who is blocked, what inserts can meet, and how sessions end.

A session that ends costs its backend: a new one takes longer than a whole run. So the backend is made as good as new
at that very moment, its client is told that it is gone, and the backend is kept for whoever connects next.
"""

from collections.abc import Collection
from functools import cached_property
from typing import Any, cast

import psycopg
from psycopg import pq
from psycopg.pq.abc import PGconn

from marlow.clock import monotonic

BLOCKED = "select pg_blocking_pids(%s)"  # in: a backend's pid. Out: the pids it waits for, none if it does not wait.
# In: a backend's pid. Out: whether it is at a statement; no more once the transaction of one that failed is undone.
WORKING = "select state = 'active' from pg_stat_activity where pid = %s"
# Out: a table and one that it points at. Names as `statements` has them: in small letters, without a schema.
PARENTS = """select lower(child.relname), lower(parent.relname) from pg_constraint
join pg_class child on child.oid = conrelid join pg_class parent on parent.oid = confrelid where contype = 'f'"""
# Out: the tables with a unique key beside the primary one, and those whose primary key nobody counts up.
KEYED = """select distinct lower(t.relname) from pg_index i join pg_class t on t.oid = i.indrelid
where i.indisunique and (not i.indisprimary or not exists (
    select from pg_attribute a where a.attrelid = i.indrelid and a.attnum = any(i.indkey) and a.attidentity <> ''))"""

UNDONE_WITHIN = 5.0  # real seconds; it takes a thousandth
OPEN = (pq.TransactionStatus.INTRANS, pq.TransactionStatus.INERROR)
COPYING = (pq.ExecStatus.COPY_IN, pq.ExecStatus.COPY_OUT, pq.ExecStatus.COPY_BOTH)


class Lost:
    """What a client holds whose session has ended at the server. It does not know so until it next asks something,
    and is then told what Postgres tells whoever was ended by an administrator.
    """

    _encoding = "utf-8"
    pipeline_status = pq.PipelineStatus.OFF

    def __init__(self, was: PGconn) -> None:
        self.status, self.transaction_status = pq.ConnStatus.OK, was.transaction_status
        self.backend_pid, self.socket = was.backend_pid, was.socket

    def finish(self) -> None:
        self.status, self.transaction_status = pq.ConnStatus.BAD, pq.TransactionStatus.UNKNOWN

    def asked(self) -> psycopg.OperationalError:
        """What the client hears: the first time, and ever after."""
        if self.status == pq.ConnStatus.BAD:
            return psycopg.OperationalError("the connection is closed")
        self.finish()
        return psycopg.errors.AdminShutdown("terminating connection due to administrator command")

    def __getattr__(self, name: str) -> Any:
        raise self.asked()


class Monitor:
    """`by_force`: sessions are ended as an administrator ends them, and backends with them. It changes nothing but
    the time it takes.
    """

    def __init__(self, conninfo: str, *, by_force: bool = False) -> None:
        self._connection = psycopg.connect(conninfo, autocommit=True)
        self.by_force = by_force
        self.busy: set[int] = set()  # backends in the middle of a transaction
        self._spare: list[PGconn] = []  # backends as good as new, that nobody has

    @cached_property
    def parents(self) -> dict[str, set[str]]:
        """Of each table those that it points at. Looked up when a fibre first writes: migrations are over then."""
        found: dict[str, set[str]] = {}
        for child, parent in self._connection.execute(PARENTS):
            found.setdefault(child, set()).add(parent)
        return found

    @cached_property
    def keyed(self) -> set[str]:
        """Tables in which two inserts can want the same. Looked up when a fibre first inserts."""
        return {table for (table,) in self._connection.execute(KEYED)}

    def blockers(self, pid: int) -> set[int]:
        """The sessions that this one waits for; none where it does not wait."""
        row = self._connection.execute(BLOCKED, (pid,)).fetchone()
        return set(row[0]) if row else set()

    def cancel(self, pid: int) -> None:
        self._connection.execute("select pg_cancel_backend(%s)", (pid,))

    def give_up(self, pid: int) -> None:
        """Cancel the statement that this one waits with, and see it undone. The client hears of the error a moment
        before its locks are let go, and whoever waits for those is asked right behind this.
        """
        self.cancel(pid)
        deadline = monotonic() + UNDONE_WITHIN
        while self._connection.execute(WORKING, (pid,)).fetchone() == (True,) and monotonic() < deadline:
            pass

    def end(self, connection: psycopg.Connection[Any]) -> None:
        """End its session, now: what it waits for is cancelled, its transaction rolled back, its locks, settings and
        all else are gone. Its client learns of it when it next asks something. To end it again changes nothing.
        """
        link = connection.pgconn
        if isinstance(link, Lost) or link.status != pq.ConnStatus.OK:
            return
        if self.by_force:
            self._terminate(link.backend_pid)
            return
        connection.pgconn = cast(PGconn, Lost(link))
        if self._tidied(link):
            self._spare.append(link)
        else:
            self._terminate(link.backend_pid)
            link.finish()

    def spare(self, but: Collection[int], user: str) -> PGconn | None:
        """A backend for a new session of this user (none named: ours), but none of these: one that lost its session
        gets another backend, as live. A guest never gets one that was logged in as anybody else.
        """
        wanted = (user or self._connection.info.user).encode()
        for link in self._spare:
            if link.backend_pid not in but and link.user == wanted:
                self._spare.remove(link)
                return link
        return None

    def close(self) -> None:
        for link in self._spare:
            link.finish()
        self._spare.clear()
        self._connection.close()

    def _tidied(self, link: PGconn) -> bool:
        """Whether it is as good as new. Not of one in the middle of a pipeline or a COPY: that one is to be ended."""
        try:
            if link.pipeline_status != pq.PipelineStatus.OFF:
                return False
            if link.transaction_status == pq.TransactionStatus.ACTIVE and not self._came_to_an_end(link):
                return False
            if link.transaction_status in OPEN:
                link.exec_(b"rollback")
            return link.exec_(b"discard all").status == pq.ExecStatus.COMMAND_OK
        except psycopg.Error:
            return False

    def _came_to_an_end(self, link: PGconn) -> bool:
        """Its statement: cancelled, unless the answer is there already."""
        link.consume_input()
        if link.is_busy():
            self.cancel(link.backend_pid)
        while (result := link.get_result()) is not None:
            if result.status in COPYING:
                return False
        return True

    def _terminate(self, pid: int) -> None:
        self._connection.execute("select pg_terminate_backend(%s, 1000)", (pid,))
