"""Whoever judges on this box: takes the next judging, has its checks run at a desk, and brings the results back.

    queue --claim--> clerk --one check at a time--> desk (a process of its own, with a laboratory)
      ^                |
      +----finish------+   the lease is renewed meanwhile; where it is lost, nothing is written

Arbiter of two clerks: the queue's token. One that is killed leaves a lease that ends.
"""

import hashlib
import logging
import secrets
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import DatabaseError

from exercises.handed.checks import Check, Outcome, Result, undecided
from exercises.handed.exercise import Exercise, NoExercise, exercise
from grading import judges, nudge, queue
from grading.models import Judging
from grading.talk import DESK, STARTS_IN, Desk, DeskFailed, Message, result_in, told
from marlow.clock import monotonic, real_now
from marlow.servers.launcher import ServerError
from marlow.servers.postgres import EmbeddedPostgres
from marlow.turns import alone

log = logging.getLogger(__name__)
TURN = 60.0  # real seconds after which no further judging is begun for one message
PAUSE = 20.0  # real seconds before a desk that could not be opened is tried again
DESKS = 64  # in one state folder
SAYS_EVERY = 0.5  # real seconds between two words of progress that are written down
ROOMS = ("marlow", "shop", "sweeper", "exercises", "grading")
NOBODYS = "postgres://nobody@127.0.0.1:1/nothing"  # the desk is told of no database but the laboratory's


class NotOurs(Exception):
    """The judging is somebody else's by now, or nobody's."""


class Clerk:
    """One of a process. `close` ends its desk, and the laboratory's server where it is its own."""

    def __init__(self, box: str, desk: Sequence[str] = DESK) -> None:
        self.box, self.desk = box, desk
        self._closing = ExitStack()
        self._folder: Path | None = None
        self._laboratory = ""
        self._desk: Desk | None = None
        self._not_before = 0.0

    def work(self, turn: float = TURN) -> int:
        """Judge what waits, one after another, until nothing is left or the turn is over. Returns how many."""
        judges.looked(self.box, real_now())
        queue.reclaim(real_now())
        began, done = monotonic(), 0
        while (judging := self._next()) is not None:
            self.judge(judging)
            done += 1
            if monotonic() - began >= turn:
                nudge.send()  # what is left is for whoever is free
                break
        return done

    def _next(self) -> Judging | None:
        """Whoever has nothing to do opens no laboratory."""
        if not queue.anything(real_now()) or not self.opened():
            return None
        return queue.claim(self.box, real_now())

    def opened(self) -> bool:
        """Whether checks can be run here at all. While they can't, nothing is taken, and no attempt pays for it."""
        if monotonic() < self._not_before:
            return False
        try:
            self._open(lambda words: None)
        except (DeskFailed, ServerError, OSError) as away:
            log.error("Nothing is judged on %s just now: %s", self.box, away)
            self._not_before = monotonic() + PAUSE
            return False
        return True

    def judge(self, judging: Judging) -> None:
        """To its end, whatever becomes of the desk. What a database that is gone leaves behind, its lease frees."""
        try:
            found = exercise(judging.attempt.submission.assignment.exercise)
            results = self._results(judging, found)
            queue.finish(judging, results, versions(found, judging), real_now())
        except NotOurs:
            log.warning("%s is judged no further: it was given to somebody else, or dropped.", judging)
        except (NoExercise, DeskFailed, DatabaseError, ValueError) as error:
            queue.give_back(judging, f"{type(error).__name__}: {error}".translate({0: "�"}), real_now())

    def close(self) -> None:
        self._leave_desk()
        self._closing.close()
        self._folder = None

    def _results(self, judging: Judging, found: Exercise) -> list[tuple[Check, Result]]:
        """Until one could not be decided: then it is tried again another time, if there is another. What an earlier
        try decided, by the same code, is not run again.
        """
        by = versions(found, judging)
        said = judging.so_far.get("said", {}) if judging.so_far.get("by") == by else {}
        results: list[tuple[Check, Result]] = []
        for check in found.checks:
            before = said.get(check.name)
            result = result_in(before, check) if before else self._decided(judging, found, check)
            results.append((check, result))
            if any(one.outcome is Outcome.UNDECIDED for _, one in results):
                if not queue.last_try(judging):
                    break
            elif not before:
                said[check.name] = told(result)
                if not queue.keep(judging, {"by": by, "said": said}, real_now()):
                    raise NotOurs
        return results

    def _decided(self, judging: Judging, found: Exercise, check: Check) -> Result:
        question = {
            "exercise": found.slug,
            "answers": judging.attempt.answers,
            "check": check.name,
            "seed": seed(judging),
        }
        try:
            said = self._ask(question, settings.GRADING_CHECK_LIMIT, Watch(judging, check.title))
            return result_in(said, check)
        except (DeskFailed, ServerError, OSError) as failed:
            self._leave_desk()
            return undecided(str(failed))

    def _ask(self, question: Message, seconds: float, hear: Callable[[str | None], None]) -> Message:
        """Of a desk that is ready: how long one takes to start is no check's time."""
        if self._desk is None:
            self._open(hear)
        return self._said(question, seconds, hear)

    def _open(self, hear: Callable[[str | None], None]) -> None:
        said = self._said({"open": True}, STARTS_IN, hear)
        if "away" in said:
            raise DeskFailed(str(said["away"]))
        if "lacking" in said:
            judges.opened(self.box, str(said["lacking"]), said.get("together") is True, real_now())

    def _said(self, question: Message, seconds: float, hear: Callable[[str | None], None]) -> Message:
        """One that is left in the middle of something is ended."""
        if self._desk is None:
            self._desk = self._new_desk()
        try:
            return self._desk.ask(question, seconds, settings.GRADING_LEASE / 3, hear)
        except BaseException:
            self._leave_desk()
            raise

    def _leave_desk(self) -> None:
        if self._desk is not None:
            self._desk.end()
            self._desk = None

    def _new_desk(self) -> Desk:
        if self._folder is None:
            self._folder, self._laboratory = self._settled()
        given = environment(self._folder, self._laboratory)
        return Desk(self.desk, self._folder / "desk.group", settings.BASE_DIR, given)

    def _settled(self) -> tuple[Path, str]:
        """A folder that is this process's alone, and the laboratory's address: an embedded one stays from desk to
        desk. Raises ServerError.
        """
        with ExitStack() as opening:
            folder = _own_folder(opening)
            url = settings.LAB_DATABASE_URL
            if not url:
                server = EmbeddedPostgres(folder / "postgres").start()
                opening.callback(server.stop)
                url = server.url()
            self._closing = opening.pop_all()
        return folder, url


class Watch:
    """Keeps the lease of one judging, and writes down what is being done. Raises NotOurs."""

    def __init__(self, judging: Judging, title: str) -> None:
        self.judging, self._last = judging, float("-inf")
        self(title)

    def __call__(self, words: str | None) -> None:
        if words is not None and monotonic() - self._last < SAYS_EVERY:
            return
        self._last = monotonic()
        if not queue.renew(self.judging, real_now(), words):
            raise NotOurs


def _own_folder(opening: ExitStack) -> Path:
    """The first of the numbered ones that no other process is in. Raises ServerError."""
    why = ServerError()
    for number in range(1, DESKS + 1):
        folder = Path(settings.STATE_DIR) / "judging" / str(number)
        try:
            opening.enter_context(alone(folder, "celery --app marlow.judging worker"))
        except ServerError as taken:
            why = taken
        else:
            return folder
    raise why


def environment(folder: Path, laboratory: str) -> dict[str, str]:
    """A desk's: what any program needs, the laboratory's address, and nothing of the shop's."""
    return {
        **settings.ANY_PROGRAM,
        "DJANGO_SETTINGS_MODULE": "marlow.settings",
        "MARLOW_DEMO": "0",
        "SECRET_KEY": secrets.token_urlsafe(50),
        "DATABASE_URL": NOBODYS,
        "LAB_DATABASE_URL": laboratory,
        "MARLOW_STATE_DIR": str(folder),
        "GRADING_MEMORY": str(settings.GRADING_MEMORY),
    }


def seed(judging: Judging) -> int:
    """The same for the same answers, on any machine and in every judging."""
    return int(judging.attempt.sha256[:7], 16)


def versions(found: Exercise, judging: Judging) -> dict[str, Any]:
    """What decided, to be kept with the results."""
    return {
        "checks_version": found.version,
        "digest": found.digest,
        "marlow": marlow(),
        "seed": seed(judging),
    }


@cache
def marlow() -> str:
    """The version of the project: a digest of its code."""
    code = hashlib.sha256()
    for file in _code():
        code.update(f"{file.relative_to(settings.BASE_DIR)}\n".encode() + file.read_bytes())
    return code.hexdigest()[:16]


def _code() -> Sequence[Path]:
    return sorted(file for room in ROOMS for file in (settings.BASE_DIR / room).rglob("*.py"))


_here: list[Clerk] = []


def here() -> Clerk:
    """This process's."""
    if not _here:
        _here.append(Clerk(settings.MARLOW_BOX))
    return _here[0]
