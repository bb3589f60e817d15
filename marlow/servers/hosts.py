"""Hosts of our own, to cut the power of: network namespaces joined by a bridge of this machine.

    with Network() as network:
        server = EmbeddedPostgres(folder, address=network.address, clients=network.subnet).start()
        box = network.host()
        process = box.run([sys.executable, "box.py", server.url()])
        box.cut()   # nothing it says arrives any more, and nobody was told: no FIN, no RST
        box.mend()

Needs root (CAP_NET_ADMIN and CAP_SYS_ADMIN) and iproute2's `ip`; no netem, no iptables. Servers run as always and
listen on the bridge's address, so that this machine and every host of the network reach them, and nobody else.

What is made is called `marlow` and a number: the bridge `marlow7`, its hosts `marlow7-1` and so on. A number is taken
by binding an abstract Unix socket, which lives in this machine's network namespace as the bridge does and goes with
its owner however that ends. So two networks never collide, and a number that can be taken has no living owner:
whatever still bears it was left behind, and the next start removes it.
"""

import contextlib
import ipaddress
import json
import os
import re
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from marlow.clock import wait_until
from marlow.servers.launcher import ServerError

NEEDS = "needs root and iproute2: apt-get install iproute2"
NET_ADMIN, SYS_ADMIN = 1 << 12, 1 << 21  # capability bits: root in a container may lack them
# 198.18.0.0/15 is set aside for benchmarks of networks (RFC 2544), and no host should have an address in it.
SUBNETS = list(ipaddress.IPv4Network("198.18.0.0/15").subnets(new_prefix=24))
OURS = re.compile(r"marlow(\d+)(?:-\d+)?")
DEVICE = "eth0"  # a host's own end of its cable
SECONDS = 5.0  # real seconds that a link may take to come up, and processes to be gone once killed


def missing() -> str:
    """What keeps hosts of our own from being made here, as a sentence; empty if nothing does."""
    found = re.search(r"^CapEff:\s*(\w+)", _text("/proc/self/status"), re.MULTILINE)
    able = int(found[1], 16) if found else 0
    if not shutil.which("ip") or not able & NET_ADMIN or not able & SYS_ADMIN:
        return f"A network of hosts {NEEDS} (in a container also the capabilities NET_ADMIN and SYS_ADMIN)."
    return ""


@dataclass
class Host:
    """A network namespace with one cable, plugged into the bridge. Made by `Network.host`.

    Files, processes and the clock are this machine's; only the network is its own.
    """

    name: str
    address: str
    processes: "list[subprocess.Popen[Any]]" = field(default_factory=list, init=False)

    def run(self, command: Sequence[str], **options: Any) -> "subprocess.Popen[Any]":
        """Start a command on this host; `options` are Popen's. Its pid is the command's own, and its group's.

        It ends when the network is stopped, at the latest. It does not end with this process: have it read its
        standard input, or the next start of a network kills it.
        """
        process = subprocess.Popen(["ip", "netns", "exec", self.name, *command], start_new_session=True, **options)
        self.processes.append(process)
        return process

    def cut(self) -> None:
        """Take the link down. To the others it looks like a loss of power; here everything goes on, unheard."""
        _ip("-n", self.name, "link", "set", DEVICE, "down")

    def mend(self) -> None:
        """Bring the link up again. Connections that neither end has given up go on."""
        _ip("-n", self.name, "link", "set", DEVICE, "up")
        if not wait_until(self._connected, SECONDS):
            raise ServerError(f"The link of {self.name} did not come up within {SECONDS:g} s.")

    def _connected(self) -> bool:
        return all(
            link["operstate"] == "UP"
            for words in (["-n", self.name, "link", "show", DEVICE], ["link", "show", self.name])
            for link in json.loads(_ip("-j", *words))
        )


@dataclass
class Network:
    """A bridge and its hosts. `start` it, or use it in a `with`; `stop` removes everything and kills what runs there.

    Raises ServerError, with what to do, where it can't be made.
    """

    number: int = field(default=-1, init=False)
    hosts: list[Host] = field(default_factory=list, init=False)
    _claim: socket.socket | None = field(default=None, init=False, repr=False)

    @property
    def subnet(self) -> str:
        """Where its hosts live, as in 198.18.7.0/24."""
        return str(SUBNETS[self.number])

    @property
    def address(self) -> str:
        """The bridge's address: the one that its hosts and this machine reach a server at."""
        return str(SUBNETS[self.number][1])

    def start(self) -> "Network":
        if lacking := missing():
            raise ServerError(lacking)
        remove_left_overs()
        self.number, self._claim = _free_number()
        try:
            _ip("link", "add", "name", f"marlow{self.number}", "type", "bridge")
            _ip("address", "add", f"{self.address}/24", "dev", f"marlow{self.number}")
            _ip("link", "set", f"marlow{self.number}", "up")
        except ServerError:
            self.stop()
            raise
        return self

    def host(self) -> Host:
        """One more host, connected."""
        place = len(self.hosts) + 1
        host = Host(f"marlow{self.number}-{place}", str(SUBNETS[self.number][place + 1]))
        self.hosts.append(host)
        _ip("netns", "add", host.name)
        _ip("link", "add", "name", host.name, "type", "veth", "peer", "name", DEVICE, "netns", host.name)
        _ip("link", "set", host.name, "master", f"marlow{self.number}", "up")
        _ip("-n", host.name, "link", "set", "lo", "up")
        _ip("-n", host.name, "address", "add", f"{host.address}/24", "dev", DEVICE)
        host.mend()
        return host

    def stop(self) -> None:
        if self._claim is None:
            return
        _remove(self.number)
        for process in (process for host in self.hosts for process in host.processes):
            process.wait()
        self._claim.close()
        self._claim = None
        self.hosts.clear()

    def __enter__(self) -> "Network":
        return self.start()

    def __exit__(self, *error: object) -> None:
        self.stop()


def remove_left_overs() -> None:
    """Remove the networks whose owners are dead, with whatever still runs on their hosts. Living ones are left."""
    for number in {int(found[1]) for name in _all_names() if (found := OURS.fullmatch(name))}:
        if claim := _take(number):
            with claim:
                _remove(number)


def _free_number() -> tuple[int, socket.socket]:
    routed = list(_routed())
    for number, subnet in enumerate(SUBNETS):
        if not any(subnet.overlaps(other) for other in routed) and (claim := _take(number)):
            return number, claim
    raise ServerError("No subnet of 198.18.0.0/15 is free for a network of hosts: this machine has routes into it.")


def _take(number: int) -> socket.socket | None:
    """The number's claim, for as long as the socket is open; None while a living process has it."""
    claim = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        claim.bind(f"\0marlow-network-{number}")
    except OSError:
        claim.close()
        return None
    return claim


def _routed() -> Iterator[ipaddress.IPv4Network]:
    """What this machine has routes to, but for those that stand for everywhere else."""
    for route in json.loads(_ip("-j", "-4", "route", "show", "table", "all")):
        if route["dst"] != "default":
            network = ipaddress.IPv4Network(route["dst"], strict=False)
            if network.prefixlen >= 8:  # 0.0.0.0/1 and its like are a VPN's way to say "default"
                yield network


def _all_names() -> list[str]:
    links = [link["ifname"] for link in json.loads(_ip("-j", "link", "show"))]
    return links + _namespaces()


def _namespaces() -> list[str]:
    return [each["name"] for each in json.loads(_ip("-j", "netns", "list") or "[]")]


def _remove(number: int) -> None:
    """Kill what runs on its hosts while they are still connected, so that servers hear of it; then take it down."""
    hosts = [name for name in _namespaces() if re.fullmatch(rf"marlow{number}-\d+", name)]
    for name in hosts:
        if not wait_until(partial(_quiet, name), SECONDS):
            raise ServerError(f"What runs on {name} could not be killed.")
    for name in hosts:
        with contextlib.suppress(ServerError):  # it may have been left half made
            _ip("link", "delete", name)
        _ip("netns", "delete", name)
    with contextlib.suppress(ServerError):
        _ip("link", "delete", f"marlow{number}")


def _quiet(name: str) -> bool:
    """Whether nothing runs on this host. What does is killed, and may be gone when asked again."""
    found = [int(pid) for pid in _ip("netns", "pids", name).split()]
    for pid in found:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return not found


def _ip(*words: str) -> str:
    """What `ip` prints. Raises ServerError with what it complained of."""
    done = subprocess.run(["ip", *words], capture_output=True, text=True, check=False)
    if done.returncode:
        raise ServerError(f"ip {' '.join(words)}: {done.stderr.strip()}. A network of hosts {NEEDS}.")
    return done.stdout


def _text(path: str) -> str:
    try:
        return Path(path).read_text()
    except OSError:
        return ""
