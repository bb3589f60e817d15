"""Boxes in processes of their own: eight that contend for a lock, or one that holds it until it is killed."""

import contextlib
import json
import multiprocessing
import os
import random
import subprocess
import sys
import uuid
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from multiprocessing.synchronize import Barrier

from marlow.clock import RealClock, StandingClock, monotonic, real_sleep
from shop.models import Order
from shop.settle import release_unguarded
from sweeper.locks import LOCKS, build
from sweeper.locks.base import Lease, Lock, Refusal
from sweeper.locks.live import Addresses, open_ports
from sweeper.locks.ports import Ports
from tests.fakes import WEDNESDAY, make_permit
from tests.servers.conformance.arbiter import Arbiter

BOXES = 8
EVERY = 120.0  # a slot's length
START = "import django; django.setup(); from tests.servers.conformance.processes import main; main()"
LONG = 120.0  # real seconds: longer than any contention, and than any wait of one box for the others


@dataclass(frozen=True)
class Job:
    """`over`: what no two may be in at once. "": the lock's name. "slots", "rows": each of them; `times` slots, and
    as many rows as there are orders. With "hold" one box takes the lock for `ttl` (real seconds), and the first row.
    """

    lock: str
    database: str
    at: Addresses = field(default_factory=Addresses)
    over: str = ""
    times: int = 0
    pause: float = 0.0  # real seconds, at most, before a box that was told no asks again: time for the one that works
    ttl: float = LONG

    def start(self) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            [sys.executable, "-c", START, json.dumps(asdict(self))],
            env={**os.environ, "DATABASE_URL": self.database, "DJANGO_SETTINGS_MODULE": "marlow.settings"},
            stdout=subprocess.PIPE,
            text=True,
        )


def contended(job: Job) -> int:
    """Let eight boxes contend until all have had their turns. Returns how often they were refused."""
    with job.start() as boxes:
        said, _ = boxes.communicate(timeout=2 * LONG)
    assert boxes.returncode == 0, "a box died: its traceback stands above"
    return sum(map(int, said.split()))


@contextlib.contextmanager
def holding(job: Job) -> Iterator[tuple["subprocess.Popen[str]", float]]:
    """A box that holds, and the moment (`monotonic`) from which on it may have; killed afterwards in any case."""
    with replace(job, over="hold").start() as process:
        try:
            assert process.stdout is not None
            yield process, float(process.stdout.readline())
        finally:
            process.kill()


def main() -> None:
    told = json.loads(sys.argv[1])
    at = {name: tuple(each) if isinstance(each, list) else each for name, each in told.pop("at").items()}
    job = Job(**told, at=Addresses(**at))
    if job.over == "hold":
        hold(job)
    else:
        sys.exit(contend(job))


def hold(job: Job) -> None:
    clock = StandingClock(WEDNESDAY)
    with opened(job, "box-b", clock) as ports:
        began = monotonic()
        lease = build(job.lock, ports).acquire("sweeper", job.ttl)
        with lease.claim(Order.objects.first()) as claimed:  # type: ignore[union-attr,arg-type]  # or die
            assert claimed
            print(began, flush=True)
            real_sleep(600)


def contend(job: Job) -> int:
    """Eight processes, forked while nothing is connected to anything. Returns how many of them died."""
    context = multiprocessing.get_context("fork")
    together = context.Barrier(BOXES)
    boxes = [context.Process(target=box, args=(job, number, together)) for number in range(BOXES)]
    for each in boxes:
        each.start()
    for each in boxes:
        each.join()
    return sum(each.exitcode != 0 for each in boxes)


def box(job: Job, number: int, together: Barrier) -> None:
    """One box's turns; prints how often it was refused."""
    clock = StandingClock(WEDNESDAY) if job.over else RealClock()
    turns = {"": by_name, "slots": by_slot, "rows": by_row}[job.over]
    try:
        with opened(job, f"box-{number}", clock) as ports, Arbiter(job.database) as arbiter:
            sys.stdout.write(f"{turns(job, ports, arbiter, together)}\n")  # in one piece: eight write to one pipe
            sys.stdout.flush()
    except BaseException:
        together.abort()  # the others need not wait
        raise


@contextlib.contextmanager
def opened(job: Job, name: str, clock: RealClock | StandingClock) -> Iterator[Ports]:
    plain = Ports(clock=clock, box=name, run=str(uuid.uuid4()), every=EVERY, new_value=lambda: uuid.uuid4().hex)
    with open_ports(LOCKS[job.lock].server, plain, job.at, ttl=job.ttl) as ports:
        yield ports


def fresh(job: Job, ports: Ports) -> Lock:
    """For one acquisition."""
    return build(job.lock, replace(ports, run=str(uuid.uuid4())))


def by_name(job: Job, ports: Ports, arbiter: Arbiter, together: Barrier) -> int:
    """This box's share of all turns, each as soon as it is told yes."""
    refused = 0
    together.wait(LONG)
    for _ in range(job.times // BOXES):
        while isinstance(answer := fresh(job, ports).acquire("sweeper", job.ttl), Refusal):
            refused += 1
            real_sleep(random.uniform(0, job.pause))
        arbiter.enter("sweeper")
        arbiter.leave("sweeper")
        assert answer.release().deleted == LOCKS[job.lock].excludes
    return refused


def by_slot(job: Job, ports: Ports, arbiter: Arbiter, together: Barrier) -> int:
    """All boxes ask for each slot at once, and then for the next."""
    refused = 0
    for number in range(job.times):
        together.wait(LONG)
        answer = fresh(job, ports).acquire("sweeper", job.ttl)
        if isinstance(answer, Lease):
            arbiter.enter(f"slot {number}")
            arbiter.leave(f"slot {number}")
            answer.release()
        refused += isinstance(answer, Refusal)
        ports.clock.sleep(EVERY)
    return refused


def by_row(job: Job, ports: Ports, arbiter: Arbiter, together: Barrier) -> int:
    """All boxes come to each row at once; whoever has it settles it, without a look of its own."""
    refused, lease = 0, fresh(job, ports).acquire("sweeper", job.ttl)
    assert isinstance(lease, Lease)
    for order in Order.objects.order_by("id"):
        together.wait(LONG)
        with lease.claim(order) as claimed:
            if claimed:
                arbiter.enter(order.reference)
                release_unguarded(order, make_permit(ports.box))
                arbiter.leave(order.reference)
        refused += not claimed
    return refused
