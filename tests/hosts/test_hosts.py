"""Hosts of our own: joined, cut, mended, and gone afterwards."""

import json
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psutil
import psycopg
import pytest

from marlow.clock import wait_until
from marlow.servers import hosts
from marlow.servers.hosts import Network, missing
from marlow.servers.launcher import ServerError
from marlow.servers.postgres import EmbeddedPostgres

pytestmark = pytest.mark.xdist_group("hosts")

# Says every line it hears to the address it was given, over one connection.
SPEAKER = """
import socket, sys
with socket.create_connection((sys.argv[1], int(sys.argv[2]))) as line:
    for said in sys.stdin:
        line.sendall(said.encode())
"""
# Makes a network, says its number and what runs on it, and waits to be killed.
OWNER = """
import subprocess
from marlow.servers.hosts import Network
network = Network().start()
print(network.number, network.host().run(["sleep", "300"], stdout=subprocess.DEVNULL).pid, flush=True)
input()
"""


@pytest.fixture
def network() -> Iterator[Network]:
    if lacking := missing():
        pytest.skip(lacking)
    with Network() as network:
        yield network


def of(number: int) -> set[tuple[str, int]]:
    """This machine's links and namespaces that bear the number, each with what tells it from a later namesake."""
    links = json.loads(subprocess.check_output(["ip", "-j", "link"]))
    named = json.loads(subprocess.check_output(["ip", "-j", "netns"]) or "[]")
    found = {(link["ifname"], link["ifindex"]) for link in links}
    found |= {(each["name"], Path("/run/netns", each["name"]).stat().st_ino) for each in named}
    return {(name, identity) for name, identity in found if name.partition("-")[0] == f"marlow{number}"}


def test_a_cut_host_is_silent_and_a_mended_one_goes_on(network: Network) -> None:
    """No byte and no goodbye arrives while it is cut, not even of a process that ends; later, all of it."""
    host = network.host()
    with socket.create_server((network.address, 0)) as server:
        server.settimeout(10)
        port = str(server.getsockname()[1])
        speaker = host.run([sys.executable, "-c", SPEAKER, network.address, port], stdin=subprocess.PIPE, text=True)
        line, (heard_from, _) = server.accept()
    with closing(line):
        assert heard_from == host.address
        host.cut()
        speaker.communicate("hello\n")
        line.settimeout(1)
        with pytest.raises(TimeoutError):
            line.recv(100)
        host.mend()
        line.settimeout(10)
        assert line.recv(100) == b"hello\n"
        assert line.recv(100) == b"", "the goodbye"


def test_stopping_leaves_nothing_behind(network: Network) -> None:
    """Neither links nor namespaces nor what runs on a host, a host that was cut included."""
    host, other = network.host(), network.host()
    sleeping = host.run(["sh", "-c", "sleep 300 & sleep 300"])
    other.cut()
    number = network.number
    assert sorted(name for name, _ in of(number)) == sorted([f"marlow{number}", *[host.name, other.name] * 2])
    network.stop()
    assert not of(number)
    assert sleeping.returncode == -signal.SIGKILL
    network.stop()


def test_what_a_killed_owner_left_is_removed_and_a_living_one_s_is_not(network: Network) -> None:
    """At the next start, whoever makes it; its number is free then."""
    owner = subprocess.Popen([sys.executable, "-c", OWNER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    number, pid = map(int, owner.stdout.readline().split())
    living, mine = of(number), of(network.number)
    hosts.remove_left_overs()
    assert (of(number), of(network.number)) == (living, mine)
    owner.kill()
    owner.communicate()
    with Network() as third:
        assert third.number != network.number
        assert not living & of(number)
    assert wait_until(lambda: not psutil.pid_exists(pid), 5)
    assert of(network.number) == mine


def test_two_networks_at_once_share_nothing(network: Network) -> None:
    """Another number, another subnet."""
    with Network() as second:
        assert second.number != network.number
        assert second.subnet != network.subnet
        assert of(second.number)


def test_a_subnet_that_is_in_use_is_stepped_over(network: Network, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever uses it, and however the claims stand."""
    monkeypatch.setattr(hosts, "_take", lambda number: socket.socket())
    number, claim = hosts._free_number()
    claim.close()
    assert number != network.number


def test_a_server_of_the_network_listens_there_and_nowhere_else(network: Network, tmp_path: Path) -> None:
    """A password, this subnet only, and nothing on loopback."""
    server = EmbeddedPostgres(tmp_path, address=network.address, clients=network.subnet).start()
    try:
        with psycopg.connect(server.url()) as session:
            admitted = session.execute("select address, netmask, auth_method from pg_hba_file_rules").fetchall()
        subnet = network.subnet.removesuffix("/24")
        assert admitted == [(subnet, "255.255.255.0", "scram-sha-256")]
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", server.port))
    finally:
        server.stop()


@pytest.mark.parametrize("lacking", ["ip", "root"])
def test_says_what_it_needs(monkeypatch: pytest.MonkeyPatch, lacking: str) -> None:
    """Before anything is touched."""
    if lacking == "ip":
        monkeypatch.setattr(hosts.shutil, "which", lambda name: None)
    else:
        monkeypatch.setattr(hosts, "_text", lambda path: "CapEff:\t0000000000000000\n")
    with pytest.raises(ServerError, match="needs root and iproute2: apt-get install iproute2"):
        Network().start()
