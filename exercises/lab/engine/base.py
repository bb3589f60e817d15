"""Where Django looks for a backend."""

from types import SimpleNamespace
from typing import Any

import psycopg
from django.db.backends.postgresql import base
from psycopg.pq.abc import PGconn

from exercises.lab.connection import LabConnection
from exercises.lab.monitor import Monitor

Cursor: Any = base.Cursor  # the stubs know psycopg2's alone


class LabCursor(Cursor):  # type: ignore[misc]  # the stubs know psycopg2's cursor alone, so this base is Any
    """Django's cursor, which says beforehand what it is about to ask."""

    def execute(self, query: Any, params: Any = None, **options: Any) -> Any:
        with self.connection.asking(query, params):
            return super().execute(query, params, **options)


def _connect(spare: PGconn | None, **described: Any) -> LabConnection:
    return LabConnection.over(spare, described) if spare else LabConnection.connect(**described)


class DatabaseWrapper(base.DatabaseWrapper):
    """All of Django's, with our class of connection."""

    # What the backend uses of the driver's module: its errors, and `connect`.
    Database: Any = SimpleNamespace(**{**vars(psycopg), "connect": _connect})

    monitor: Monitor | None = None  # of every connection this one opens, a second one included

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.had: set[int] = set()  # backends, of which none comes back to it in this run

    def get_new_connection(self, conn_params: dict[str, Any]) -> Any:
        spare = self.monitor.spare(self.had, conn_params.get("user", "")) if self.monitor else None
        connection = super().get_new_connection({**conn_params, "spare": spare})
        connection.monitor = self.monitor
        self.had.add(connection.pgconn.backend_pid)
        return connection

    def get_connection_params(self) -> dict[str, Any]:
        return {**super().get_connection_params(), "cursor_factory": LabCursor}
