"""An embedded pgbouncer in transaction mode: what a session lock must not stand behind."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit

from marlow.servers.launcher import Embedded, find_binary
from marlow.servers.postgres import EmbeddedPostgres, answers, unprivileged

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
    name: str = field(default="pgbouncer", kw_only=True)
    pool_size: int = 2  # sessions at the server, for each database

    def url(self, database: str = "marlow") -> str:
        """Through the pooler. psycopg needs `prepare_threshold=None` there, which is Django's default."""
        there = urlsplit(self.postgres.url(database))
        return there._replace(netloc=f"{there.username}:{there.password}@{self.address}:{self.port}").geturl()

    def start(self) -> Self:
        self._settle_in()
        return self._launch([*unprivileged(), str(binary()), str(self._configure())])

    def _configure(self) -> Path:
        """Its two files, anew at every start. The password is in one of them: readable by its owner only."""
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
        return answers(self.url("postgres"))
