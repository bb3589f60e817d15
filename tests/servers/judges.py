"""Judges as they run on a box: Celery workers of `marlow.judging`, over a broker and a database of the test's."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import psutil
from django.db import connection
from django.test.utils import override_settings

from marlow.clock import wait_until
from marlow.servers.launcher import leashed
from marlow.servers.redis import EmbeddedRedis
from marlow.settings import environment_for
from tests.servers.test_wednesday import ROOT

CELERY = (sys.executable, "-m", "celery", "--app", "marlow.judging", "worker", "--beat", "--concurrency", "1")


class Judge:
    """One worker with its beat, in a process group of its own."""

    def __init__(self, name: str, folder: Path, environment: dict[str, str]) -> None:
        self.record, self.log = folder / f"{name}.group", folder / f"{name}.log"
        command = [*CELERY, "--hostname", f"{name}@%h", "--without-gossip", "--without-mingle", "--loglevel", "INFO"]
        with self.log.open("ab") as log:
            self.leash = subprocess.Popen(
                leashed(command, self.record, grace=1.0),
                env={**environment, "MARLOW_BOX": name},
                cwd=ROOT,
                stdout=log,
                stderr=log,
            )

    def kill(self) -> None:
        """kill -9 of everything of it, as by a power cut."""
        assert wait_until(lambda: self.record.exists() and bool(self.record.read_text()), 20)
        os.killpg(int(self.record.read_text()), signal.SIGKILL)
        self.leash.wait(20)

    def worker(self) -> psutil.Process:
        """The process that judges: the one whose child is a desk's leash."""
        for process in psutil.Process(self.leash.pid).children(recursive=True):
            if any("grading.desk" in " ".join(child.cmdline()) for child in process.children()):
                return process
        raise AssertionError(f"no desk: {self.said()}")

    def end(self) -> None:
        self.leash.terminate()
        self.leash.wait(20)

    def said(self) -> str:
        return self.log.read_text()


@contextmanager
def judges(folder: Path, **extra: str) -> Iterator[Any]:
    """Starts one for each name that it is called with; all are ended in the end. `environment` is theirs."""
    described = connection.settings_dict
    login = f"{described['USER']}:{described['PASSWORD']}@" if described["PASSWORD"] else f"{described['USER']}@"
    with ExitStack() as running:
        broker = EmbeddedRedis(folder / "broker").start()
        running.callback(broker.stop)
        running.enter_context(override_settings(CELERY_BROKER_URL=broker.url))
        environment = environment_for(
            DATABASE_URL=f"postgres://{login}{described['HOST']}:{described['PORT']}/{described['NAME']}",
            CELERY_BROKER_URL=broker.url,
            MARLOW_STATE_DIR=str(folder),
            **{"GRADING_EVERY": "0.5", "GRADING_LEASE": "3", **extra},
        )

        def start(name: str) -> Judge:
            judge = Judge(name, folder, environment)
            running.callback(judge.end)
            return judge

        yield start
