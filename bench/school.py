"""A class that hands in, and the judges of a benchmark, who can be killed."""

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from datetime import timedelta
from itertools import cycle
from pathlib import Path
from typing import Any

from marlow.clock import real_now
from marlow.servers.launcher import leashed

CELERY = (sys.executable, "-m", "celery", "--app", "marlow.judging", "worker", "--beat", "--concurrency", "1")


class Judges:
    """Two, warm. `kill` ends one as a power cut would, and starts another."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.running = folder, {}  # type: tuple[Path, dict[str, subprocess.Popen[bytes]]]
        self.turns = cycle(("box-a", "box-b"))
        for name in ("box-a", "box-b"):
            self.start(name)

    def start(self, name: str) -> None:
        command = [*CELERY, "--hostname", f"{name}@%h", "--without-gossip", "--without-mingle"]
        with (self.folder / f"{name}.log").open("ab") as log:
            self.running[name] = subprocess.Popen(
                leashed([*command, "--loglevel", "WARNING"], self.folder / f"{name}.group", grace=1.0),
                env={**os.environ, "MARLOW_BOX": name},
                stdout=log,
                stderr=log,
            )

    def kill(self) -> None:
        name = next(self.turns)
        os.killpg(int((self.folder / f"{name}.group").read_text()), signal.SIGKILL)
        self.running[name].wait(20)
        self.start(name)

    def end(self) -> None:
        for process in self.running.values():
            process.terminate()
        for process in self.running.values():
            process.wait(20)


class Course:
    """A class with so many students; each exercise is given to it."""

    def __init__(self, students: int) -> None:
        from django.contrib.auth.models import User

        from grading.models import Class, Enrolment

        now = real_now()
        self.of = Class.objects.create(name="Bench")
        made = User.objects.bulk_create(User(username=f"student {n}", is_staff=True) for n in range(students))
        Enrolment.objects.bulk_create(Enrolment(of=self.of, student=one, since=now) for one in made)
        self.students = made

    def given(self, found: Any) -> Any:
        from grading.models import Assignment

        now = real_now()
        term = {"opens_at": now - timedelta(days=1), "due_at": now + timedelta(days=1)}
        return Assignment.objects.get_or_create(of=self.of, exercise=found.slug, defaults=term)[0]

    def hand_in(self, found: Any, answers: Any, students: Sequence[Any]) -> list[int]:
        """The attempts' keys."""
        from grading.handin import hand_in

        assignment = self.given(found)
        return [hand_in(one, assignment, answers, now=real_now(), through="bench").pk for one in students]
