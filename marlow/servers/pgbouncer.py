"""An embedded pgbouncer in transaction mode: what a session lock must not stand behind."""

from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import psycopg

from marlow.servers.launcher import Embedded, find_binary, free_port, launch
from marlow.servers.postgres import EmbeddedPostgres, unprivileged

INSTALL = "apt-get install pgbouncer"
CONFIGURATION = """\
[databases]
* = host={host} port={server_port}

[pgbouncer]
listen_addr = {address}
listen_port = {port}
unix_socket_dir =
auth_type = scram-sha-256
auth_file = {users}
pool_mode = transaction
default_pool_size = {pool_size}
; Django says how its session should be; who shares sessions can't keep that promise, and drops it without a word.
ignore_startup_parameters = extra_float_digits,options
"""


def binary() -> Path:
    """The pooler's program. Raises ServerError saying what to install."""
    return find_binary("pgbouncer", [], ["pgbouncer", "/usr/sbin/pgbouncer"], INSTALL)


@dataclass
class EmbeddedPgbouncer(Embedded):
    """A pooler before `postgres`, which must be running. Sessions are lent for one transaction each."""

    postgres: EmbeddedPostgres
    pool_size: int = 2  # sessions at the server, for each database

    def url(self, database: str = "marlow") -> str:
        """Through the pooler. psycopg needs `prepare_threshold=None` there, which is Django's default."""
        there = urlsplit(self.postgres.url(database))
        return there._replace(netloc=f"{there.username}:{there.password}@{self.address}:{self.port}").geturl()

    def start(self) -> "EmbeddedPgbouncer":
        self.port = self.port or free_port()
        command = [*unprivileged(), str(binary()), str(self._configure())]
        self.running = launch("pgbouncer", command, self.folder, self._answers, urgent=self.urgent)
        return self

    def _configure(self) -> Path:
        """Its two files, anew at every start. The password is in one of them: readable by its owner only."""
        self.folder.mkdir(parents=True, exist_ok=True)
        there = urlsplit(self.postgres.url())
        users = self.folder.resolve() / "users.txt"
        users.touch(mode=0o600)
        users.write_text(f'"{there.username}" "{there.password}"\n')
        configuration = self.folder.resolve() / "pgbouncer.ini"
        configuration.write_text(
            CONFIGURATION.format(
                host=there.hostname,
                server_port=there.port,
                address=self.address,
                port=self.port,
                users=users,
                pool_size=self.pool_size,
            )
        )
        return configuration

    def _answers(self) -> bool:
        try:
            with psycopg.connect(self.url("postgres"), connect_timeout=2, prepare_threshold=None) as probe:
                return probe.execute("select 1").fetchone() == (1,)
        except psycopg.OperationalError:
            return False
