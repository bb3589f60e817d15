"""A box in a process of its own that takes a lock, says so, and holds it until it is killed.

python -m tests.servers.holder etcd http://127.0.0.1:2379 sweeper 2
"""

import contextlib
import subprocess
import sys
import uuid
from collections.abc import Iterator

from marlow.clock import RealClock, real_sleep
from sweeper.locks import LOCKS, build
from sweeper.locks.base import Lease
from sweeper.locks.live import Addresses, open_ports
from sweeper.locks.ports import Ports

HELD = "held"


@contextlib.contextmanager
def holding(lock: str, address: str, name: str, ttl: float) -> Iterator["subprocess.Popen[str]"]:
    """Such a process, once it holds the lock; killed afterwards in any case. `ttl` in real seconds."""
    command = [sys.executable, "-m", "tests.servers.holder", lock, address, name, str(ttl)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline().strip() == HELD
            yield process
        finally:
            process.kill()


def main() -> None:
    lock, address, name, ttl = sys.argv[1:]
    plain = Ports(clock=RealClock(), box="box-b", run="held", every=120, new_value=lambda: uuid.uuid4().hex)
    addresses = Addresses(etcd=(address,), zookeeper=address)
    with open_ports(LOCKS[lock].server, plain, addresses, ttl=float(ttl)) as ports:
        if isinstance(build(lock, ports).acquire(name, float(ttl)), Lease):
            print(HELD, flush=True)
            real_sleep(600)


if __name__ == "__main__":
    main()
