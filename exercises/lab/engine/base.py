"""Where Django looks for a backend."""

from types import SimpleNamespace
from typing import Any

import psycopg
from django.db.backends.postgresql import base

from exercises.lab.connection import LabConnection, Monitor

Cursor: Any = base.Cursor  # the stubs know psycopg2's alone


class LabCursor(Cursor):  # type: ignore[misc]  # the stubs know psycopg2's cursor alone, so this base is Any
    """Django's cursor, which says beforehand what it is about to ask."""

    def execute(self, query: Any, params: Any = None, **options: Any) -> Any:
        with self.connection.asking(query, params):
            return super().execute(query, params, **options)


class DatabaseWrapper(base.DatabaseWrapper):
    """All of Django's, with our class of connection."""

    # What the backend uses of the driver's module: its errors, and `connect`.
    Database: Any = SimpleNamespace(**{**vars(psycopg), "connect": LabConnection.connect})

    monitor: Monitor | None = None  # of every connection this one opens, a second one included

    def get_new_connection(self, conn_params: dict[str, Any]) -> Any:
        connection = super().get_new_connection(conn_params)
        connection.monitor = self.monitor
        return connection

    def get_connection_params(self) -> dict[str, Any]:
        return {**super().get_connection_params(), "cursor_factory": LabCursor}
