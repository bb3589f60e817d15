"""One exploration over several workers: merged here, explored there; with `--workers`, over some of one's own."""

import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from django.conf import settings

from exercises.scenarios.exploration import Found
from exercises.scenarios.room import laboratory, make_database, own_laboratory
from exercises.scenarios.spread import Spread
from marlow.clock import real_sleep
from marlow.servers.launcher import ServerError, end_left_over, leashed
from marlow.servers.postgres import EmbeddedPostgres
from marlow.servers.redis import EmbeddedRedis
from marlow.settings import environment_for
from marlow.tree import manage
from marlow.turns import alone

MANY = 16  # workers: more than that belong on other boxes
AGAIN = 0.1  # real seconds between two looks at what the workers have done


def merge(spread: Spread) -> Found:
    """Until everything is explored, or it was stopped; the shortest failure is then played here, for its timeline."""
    found = spread.go(lambda: real_sleep(AGAIN))
    with own_laboratory() if settings.LAB_DATABASE_URL else laboratory() as database:
        spread.shortest_in(database)
    return found


def with_workers(number: int, words: Sequence[str]) -> int:
    """Run `manage.py …` on servers and workers of its own, and return its exit status."""
    if not 1 <= number <= MANY:
        raise ServerError(f"{number} workers are not to be had here: take from 1 to {MANY}.")
    folder = Path(settings.STATE_DIR) / "lab"
    with alone(folder, "manage.py lab"), _servers(folder) as environment, _workers(number, folder, environment):
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the other process's to answer
        try:
            return subprocess.run(manage(*words), env=environment, check=False).returncode
        finally:
            signal.signal(signal.SIGINT, before)


@contextmanager
def _servers(folder: Path) -> Iterator[dict[str, str]]:
    with ExitStack() as running:
        postgres = EmbeddedPostgres(folder / "postgres").start()
        running.callback(postgres.stop)
        broker = EmbeddedRedis(folder / "broker").start()
        running.callback(broker.stop)
        for name in ("parts", "lab"):
            make_database(postgres.url(), postgres.url(name))
        environment = environment_for(
            MARLOW_DEMO="1",
            MARLOW_STATE_DIR=str(folder),
            DATABASE_URL=postgres.url("parts"),
            CELERY_BROKER_URL=broker.url,
            LAB_DATABASE_URL=postgres.url("lab"),
        )
        subprocess.run(manage("migrate", "--verbosity", "0"), env=environment, check=True)
        yield environment


@contextmanager
def _workers(number: int, folder: Path, environment: Mapping[str, str]) -> Iterator[None]:
    """Each on a leash: none outlives this process."""
    celery = (sys.executable, "-m", "celery", "--app", "marlow.laboratory", "worker", "--pool", "solo")
    with ExitStack() as running:
        for one in range(1, number + 1):
            record = folder / f"worker-{one}.group"
            end_left_over(record)
            log = running.enter_context((folder / f"worker-{one}.log").open("wb"))
            command = [*celery, "--hostname", f"lab-{one}@%h", "--without-gossip", "--without-mingle"]
            worker = subprocess.Popen(leashed(command, record, grace=1.0), env=environment, stdout=log, stderr=log)
            running.callback(worker.wait)
            running.callback(worker.terminate)
        yield
