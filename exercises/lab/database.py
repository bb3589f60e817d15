"""Django's connections, a set for each fibre, over the engine that yields."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.db import DEFAULT_DB_ALIAS, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from psycopg import pq
from psycopg.conninfo import make_conninfo

from exercises.lab.connection import LabConnection
from exercises.lab.engine.base import DatabaseWrapper
from exercises.lab.fibre import current
from exercises.lab.guest import TIDYING, Guest, described
from exercises.lab.monitor import Lost, Monitor

ENGINE = "exercises.lab.engine"
# The laboratory sees a deadlock at once, and chooses the victim itself. Nothing here must outlive a crash of the
# server, so no COMMIT waits for its log.
OPTIONS = "-c deadlock_timeout=10min -c synchronous_commit=off"
UNLOCK = "select pg_advisory_unlock_all()"  # what a session still holds by name, freed before its next run


class Database:
    """One database, given as Django's DATABASES has it. Sessions are kept from run to run: opening one costs more
    than a run. Fibres of one name in later runs get the same session, unless it was lost.
    """

    def __init__(self, described: dict[str, Any], tidying: str = UNLOCK, *, by_force: bool = False) -> None:
        """`tidying`: a statement that makes a session as good as new after a run. `by_force`: a lost session costs
        its backend, as live; it comes to the same, and takes longer.
        """
        options = {**described.get("OPTIONS", {})}
        options["options"] = f"{options.get('options', '')} {OPTIONS}".strip()
        self.tidying, self.by_force = tidying, by_force
        self.described = {**described, "ENGINE": ENGINE, "OPTIONS": options}
        self.sessions: dict[str, DatabaseWrapper] = {}
        self._logins: dict[Guest, dict[str, Any]] = {}  # of guests whose role is ready
        self.guests: dict[str, dict[str, Any]] = {}  # the logins of those who are here now, by their alias
        self.monitor: Monitor | None = None

    @contextmanager
    def lent(self, *, keep: bool = False) -> Iterator["Database"]:
        """`django.db.connection` is this database meanwhile, in fibres and outside them. Closes every session, unless
        they are to be kept for the next time.
        """
        handler: Any = connections  # its `_connections`, which the stubs do not know, says whose they are
        mine, handler._connections = handler._connections, _Shelf(self)
        try:
            yield self
        finally:
            handler._connections = mine
            if not keep:
                self.close()

    @contextmanager
    def receiving(self, guest: Guest) -> Iterator[None]:
        """`connections[guest.alias]` is the guest's meanwhile: of every fibre, and outside them. The role is made
        once and kept for the next time. Raises NoGuest.
        """
        if guest not in self._logins:
            self._logins[guest] = {**described(guest, self.described), "ENGINE": ENGINE}
        self.guests[guest.alias] = self._logins[guest]
        try:
            yield
        finally:
            del self.guests[guest.alias]
            for name in [name for name in self.sessions if name.rpartition(" ")[2] == guest.alias]:
                _drop(self.sessions.pop(name))

    def session(self, name: str) -> DatabaseWrapper:
        """Open, and fit to be lent to a fibre of this name, with a guest's beside it where there is one; opening is
        no step of its run.
        """
        if " " not in name:
            for guest in self.guests:
                self.session(f"{name} {guest}")
        alias = name.rpartition(" ")[2]
        if name not in self.sessions:
            login = self.guests.get(alias, self.described)
            self.sessions[name] = DatabaseWrapper(login, alias if alias in self.guests else DEFAULT_DB_ALIAS)
        session = self.sessions[name]
        session.monitor = self.monitor  # before it connects, for it may have a backend to spare
        session.ensure_connection()
        connection = session.connection
        assert isinstance(connection, LabConnection)  # noqa: S101  our engine makes no other
        if self.monitor is None:
            address = {**connection.info.get_parameters(), "password": self.described.get("PASSWORD", "")}
            self.monitor = Monitor(make_conninfo(**address), by_force=self.by_force)
        session.monitor = connection.monitor = self.monitor
        return session

    def tidy(self) -> None:
        """After a run: nobody's transaction is open, nobody holds a lock, and a session that was lost is let go."""
        for name, session in list(self.sessions.items()):
            connection = session.connection
            lost = connection is None or isinstance(connection.pgconn, Lost)
            fit = not (lost or connection.closed or session.errors_occurred)
            tidying = TIDYING if name.rpartition(" ")[2] in self.guests else self.tidying
            if not fit or not _rolled_back(connection, tidying if connection.played else ""):
                self.lose(name)  # a backend whose client has gone may go on for a while, with all its locks
                _drop(session)
                del self.sessions[name]
                continue
            session.in_atomic_block, session.savepoint_ids, session.needs_rollback = False, [], False
            session.run_on_commit.clear()
            connection.fresh()
            session.had = {connection.pgconn.backend_pid}
            session.set_autocommit(True)
        if self.monitor is not None:
            self.monitor.busy.clear()

    def lose(self, name: str) -> None:
        """End this fibre's session at the server, which rolls back and frees its locks; its next step says so."""
        session = self.sessions.get(name)
        if session is not None and session.connection is not None and self.monitor is not None:
            self.monitor.end(session.connection)

    def mend(self, name: str) -> None:
        """As a worker before its next run: a session that was lost is opened anew. No step of anybody's run."""
        session = self.sessions.get(name)
        connection = None if session is None else session.connection
        if session is not None and connection is not None and isinstance(connection.pgconn, Lost):
            _drop(session)
            del self.sessions[name]
            self.session(name)

    def close(self) -> None:
        for session in self.sessions.values():
            _drop(session)
        self.sessions.clear()
        self._logins.clear()
        if self.monitor is not None:
            self.monitor.close()
            self.monitor = None


class _Shelf:
    """Stands where Django keeps a thread's connections by alias. Every alias is the one database, and a session of
    its own: `box-a/1`, and `box-a/1 journal`.
    """

    def __init__(self, database: Database) -> None:
        self.__dict__["database"] = database

    def __getattr__(self, alias: str) -> BaseDatabaseWrapper:
        database: Database = self.__dict__["database"]
        fibre = current()
        name = "" if fibre is None else fibre.name
        name += "" if alias == DEFAULT_DB_ALIAS else f" {alias}"
        if name not in database.sessions:
            database.session(name)
        return database.sessions[name]

    def __setattr__(self, alias: str, session: object) -> None:
        raise AttributeError("The laboratory's connections are not to be replaced.")

    def __delattr__(self, alias: str) -> None: ...


def _rolled_back(connection: Any, tidying: str) -> bool:
    if connection.info.transaction_status == pq.TransactionStatus.ACTIVE:
        return False  # an abandoned statement: its answer is still to come
    try:
        connection.rollback()
        if tidying:
            connection.execute(tidying)
            connection.commit()
    except Exception:
        return False
    return True


def _drop(session: DatabaseWrapper) -> None:
    if session.connection is not None:
        session.connection.close()
        session.connection = None
