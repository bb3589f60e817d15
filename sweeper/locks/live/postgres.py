"""Django's own connection: the session that locks is the session that works."""

from contextlib import closing
from typing import Any

import psycopg
from django.db import DatabaseError, InterfaceError, connections

from sweeper.locks.ports import InTransaction, LockUnavailable

ROUNDS = 3  # a busy pooler may answer like a server once; not three times


class LivePostgres:
    """Statements go to psycopg's cursor: what Django's own adds to it (wrappers, a log) costs as much as the server
    takes for a lock. The session is Django's.
    """

    def __init__(self, alias: str = "default") -> None:
        self.alias = alias
        self._kept: Any = None  # the cursor of the session that was asked last

    def row(self, sql: str, params: tuple[Any, ...] = ()) -> tuple[Any, ...] | None:
        connection = connections[self.alias]
        if connection.in_atomic_block:
            raise InTransaction(
                "A lock is taken and let go outside of any transaction: let go inside one, it is free before what "
                "was written is committed; and a transaction that fails could not let it go at all."
            )
        try:
            connection.ensure_connection()
            row: tuple[Any, ...] | None = self._cursor(connection.connection).execute(sql, params).fetchone()
            return row
        except (DatabaseError, InterfaceError, psycopg.Error) as error:
            # As Django notes it: the session is to be tried before it is used again.
            connection.errors_occurred = True
            raise LockUnavailable(f"Postgres did not answer: {error}") from error

    def _cursor(self, session: Any) -> Any:
        """Its cursor, made once; another session (opened anew, or another thread's) has another."""
        cursor = self._kept
        if cursor is None or cursor.connection is not session:
            cursor = self._kept = session.cursor()
        return cursor

    def pooler(self) -> str:
        """Two connections are opened and asked for their server process, outside a transaction and inside one that
        stays open. Without a pooler in transaction mode they are two, and neither ever changes.
        """
        try:
            for _ in range(ROUNDS):
                if self._sessions_move():
                    return "here statements of one connection reach several sessions: a pooler in transaction mode"
        except (DatabaseError, InterfaceError) as error:
            raise LockUnavailable(f"Postgres did not answer: {error}") from error
        return ""

    def _sessions_move(self) -> bool:
        one, other = connections.create_connection(self.alias), connections.create_connection(self.alias)
        with closing(one), closing(other):
            before = _process(one), _process(other)
            if before[0] == before[1]:
                return True
            one.set_autocommit(False)
            other.set_autocommit(False)
            return before != (_process(one), _process(other))


def _process(probe: Any) -> int:
    with probe.cursor() as cursor:
        cursor.execute("select pg_backend_pid()")
        return int(cursor.fetchone()[0])
