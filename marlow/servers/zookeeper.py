"""A ZooKeeper from the system's package, under our launcher."""

import shutil
import socket
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from marlow.servers.launcher import Embedded, ServerError

INSTALL = "apt-get install zookeeper; or set LOCK_ZOOKEEPER_HOSTS to servers that run."
JARS = Path("/usr/share/java")
# The package's jar names what else it needs in its manifest; the second one writes the log to standard error.
CLASS_PATH = [JARS / "zookeeper.jar", JARS / "slf4j-simple.jar"]
# Real milliseconds. Sessions end on a tick, so a short one ends them on time.
TICK, SHORTEST, LONGEST = 200, 400, 120_000
# As small as it gets, and not waiting for the disk: a server that is killed loses nothing by that.
JAVA = ["-Xms16m", "-Xmx192m", "-XX:+UseSerialGC", "-Dzookeeper.forceSync=no", "-Dzookeeper.jmx.log4j.disable=true"]


def binary() -> Path:
    """The server's jar. Raises ServerError saying what to install."""
    if not CLASS_PATH[0].exists():
        raise ServerError(f"No ZooKeeper here: {INSTALL}")
    return CLASS_PATH[0]


def command(configuration: Path) -> list[str]:
    """What starts a server. Raises ServerError saying what to install."""
    java = shutil.which("java")
    binary()
    if java is None:
        raise ServerError(f"No Java for ZooKeeper here: apt-get install default-jre-headless, and {INSTALL}")
    classes = ":".join(str(jar) for jar in CLASS_PATH)
    log = "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"
    server = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
    return [java, *JAVA, log, "-cp", classes, server, str(configuration)]


@dataclass
class EmbeddedZooKeeper(Embedded):
    """One server on loopback."""

    name: str = field(default="zookeeper", kw_only=True)

    @property
    def hosts(self) -> str:
        return f"{self.address}:{self.port}"

    def start(self) -> Self:
        """Start it and return once it serves. Safe after kill -9, which sessions and nodes outlive."""
        self._settle_in()
        settings = {
            "tickTime": TICK,
            "minSessionTimeout": SHORTEST,
            "maxSessionTimeout": LONGEST,
            "dataDir": self.folder / "data",
            "clientPort": self.port,
            "clientPortAddress": self.address,
            "maxClientCnxns": 0,
            "admin.enableServer": "false",
            "4lw.commands.whitelist": "srvr",
        }
        configuration = self.folder / "zoo.cfg"
        configuration.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
        return self._launch(command(configuration), seconds=60)

    def _answers(self) -> bool:
        """Whether it says in which mode it serves; before that it only says that it does not."""
        try:
            with socket.create_connection((self.address, self.port), timeout=2) as asking:
                asking.sendall(b"srvr")
                answer = b"".join(iter(lambda: asking.recv(4096), b""))
        except OSError:
            return False
        return b"Mode:" in answer
