"""What decides an answer: checks, each of one claim, with the run that decided it as evidence."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from exercises.lab.database import Database

Json = Any  # what JSON can say
ANSWERS = "answers.json"  # what was handed in, as a file: its exercise, and its answers


class Outcome(StrEnum):
    PASSED = "passed"
    FAILED = "failed"
    UNDECIDED = "could not decide"  # the judge's own failure, never the student's
    INSTRUCTOR = "needs an instructor"


class Shown(StrEnum):
    """When a student sees what a check said. Points are another matter: nobody sees any before the release."""

    ALWAYS = "always"
    AFTERWARDS = "after the deadline"
    HIDDEN = "hidden"  # its outcome with the release, its evidence never


@dataclass(frozen=True)
class Evidence:
    """The run that decided. `text` is the same for the same answer on any machine: no times, no ids, no counts that
    depend on how fast it was. `again` plays the run again, behind `manage.py`; where none is said, a check
    has one of its own. `verdict` and `steps` are as a LabRun keeps them, and are drawn by the same pictures.
    """

    text: str
    again: str = ""
    schedule: str = ""
    wrong: tuple[str, ...] = ()
    verdict: dict[str, Json] | None = None
    steps: list[dict[str, str]] = field(default_factory=list)

    def as_json(self) -> dict[str, Json]:
        return {**asdict(self), "wrong": list(self.wrong)}


@dataclass(frozen=True)
class Result:
    """Of one check: the outcome, a sentence that teaches, the points (of the check's own), the evidence."""

    outcome: Outcome
    sentence: str
    points: int
    evidence: Evidence


class CouldNotDecide(Exception):
    """The judge's own failure, with its reason: a server, a sandbox, a clock. Never a verdict on the answer."""


class TheirsFailed(Exception):
    """The student's program failed, with a sentence for the student: it raised, said what is no message, asked for
    ever, or ran out of CPU time or memory. A check makes a verdict of it.
    """


Port = Callable[[str, list[Json]], Json]  # a question of theirs: the call's name and its arguments; what it answers


class Talk(Protocol):
    """One running copy of a program: an instance of its class, alone in its process."""

    def call(self, name: str, arguments: Sequence[Json], port: Port) -> Json:
        """Call this method of the instance and return its answer. Each question that it asks of its port meanwhile is
        put to `port`, here. What `port` raises ends the talk and comes out of here. Raises TheirsFailed,
        CouldNotDecide.
        """
        ...


class Program(Protocol):
    """A student's Python in its sandbox, read once; each copy that is started knows nothing of the others."""

    def start(self) -> AbstractContextManager[Talk]:
        """A new instance, made with its port as the only argument. Raises TheirsFailed, CouldNotDecide."""
        ...


class Room(Protocol):
    """What checks are judged in: the judge's laboratory, lent, and a sandbox for what was handed in as a program."""

    def laboratory(self) -> AbstractContextManager["Database"]:
        """`django.db.connection` is the laboratory's meanwhile. Raises CouldNotDecide."""
        ...

    def python(self, source: str, name: str) -> AbstractContextManager[Program]:
        """The class of this name in this source, sandboxed. Raises TheirsFailed where the source can't be run,
        CouldNotDecide where there is no sandbox.
        """
        ...

    def say(self, words: str) -> None:
        """What is being done just now, for whoever waits."""
        ...


@dataclass(frozen=True)
class Check:
    """One claim of an answer. `decide` raises CouldNotDecide for the judge's own failures; anything else that it
    raises is one too.
    """

    name: str
    title: str
    points: int
    decide: Callable[[Any, Room], Result]
    shown: Shown = Shown.ALWAYS

    @property
    def again(self) -> str:
        """Decides the same answers again, by this check alone, and prints the evidence."""
        return f"judge {ANSWERS} --check {self.name}"

    def passed(self, sentence: str, evidence: Evidence) -> Result:
        return Result(Outcome.PASSED, sentence, self.points, self._with_again(evidence))

    def failed(self, sentence: str, evidence: Evidence, points: int = 0) -> Result:
        return Result(Outcome.FAILED, sentence, points, self._with_again(evidence))

    def _with_again(self, evidence: Evidence) -> Evidence:
        return evidence if evidence.again else replace(evidence, again=self.again)


def undecided(why: str) -> Result:
    return Result(Outcome.UNDECIDED, why, 0, Evidence(why))
