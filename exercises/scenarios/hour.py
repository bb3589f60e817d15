"""The evening from 20:50:00 in virtual time: the customers, the hour in which answers come too late, and workers that
are busy.
"""

from collections import Counter, deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import datetime
from itertools import repeat
from typing import Any

from exercises.lab.database import Database
from exercises.lab.fibre import Waiting, current
from exercises.lab.scheduler import LabError
from exercises.lab.steps import step
from exercises.scenarios import wednesday
from exercises.scenarios.boxes import Box, Servers, Setting
from shop.checkout import SoldOut, checkout
from shop.provider.answers import Verdict
from shop.provider.modes import Operation, read_control
from sweeper.events import Kind
from sweeper.journal import Memory, Run

ANSWER = 10.0  # virtual seconds: as long as the shop waits, and just in time
PROCESSES = 2  # of a box's worker, as `manage.py up` starts it


class Pace:
    """How long the provider takes, by the very rules that the live one is told; from 21:50:00 on exactly ten seconds,
    for here nobody needs a margin. A question is counted when it arrives, and gets the rule of that moment.
    """

    def __init__(self, now: Callable[[], datetime], start: datetime) -> None:
        self.now, self.control = now, read_control(wednesday.provider_control(start))
        self.asked = Counter[str]()

    def __call__(self, question: str) -> float:
        now = self.now()
        if now >= wednesday.START:
            return ANSWER
        _, phase = self.control.phase(now)
        place = self.asked[question]
        self.asked[question] += 1
        return phase.rule(Operation(question)).hit(place).latency


class StaffedBox(Box):
    """A box whose worker has so many processes, each with a database session that it keeps from run to run, as live.
    One that was lost meanwhile is opened anew before the next run.

    A message that finds all of them busy waits in the box's queue, and its run begins when a process is free: late,
    and in the order in which the messages came. With two that never happens on the Wednesday, for no run takes twice
    as long as it is to the next message.
    """

    def __init__(
        self, name: str, servers: Servers, setting: Setting, journal: Memory, database: Database, processes: int
    ) -> None:
        super().__init__(name, 0.0, servers, setting, journal)
        self.database = database
        self.free = [f"{name} process {number}" for number in range(1, processes + 1)]
        self.queue = deque[str]()
        for process in self.free:
            database.session(process)

    def _sweep(self, run: Run, name: str) -> None:
        process = self._process(name)
        self.database.mend(process)
        self._pass_on(process, name)
        try:
            super()._sweep(run, name)
        finally:
            self._pass_on(name, process)
            self.free.append(process)

    def _process(self, name: str) -> str:
        if self.free and not self.queue:
            return self.free.pop(0)
        waiting = current()
        if waiting is None:
            raise LabError("Only a fibre can wait for a process.")
        self.queue.append(name)
        waiting.blocked(Waiting(lambda: bool(self.free) and self.queue[0] == name, "queue"), step(f"{name} begins"))
        self.queue.popleft()
        return self.free.pop(0)

    def _pass_on(self, one: str, other: str) -> None:
        """The one's session is the other's from now on."""
        sessions = self.database.sessions
        sessions.update({to: sessions.pop(of) for of, to in ((one, other), (other, one)) if of in sessions})


def customers(web: Box, furnished: wednesday.Stage) -> None:
    """Real checkouts, one each fifty virtual seconds, until just before the boxes would fire again. On a fibre."""
    for when, book, buyer, reference in wednesday.evening_orders(furnished):
        if when > wednesday.LAST_CURTAIN:
            return
        web.clock.sleep((when - web.clock.now()).total_seconds())
        with suppress(SoldOut):
            ids, key = repeat(reference).__next__, f"evening-{reference}"
            checkout(book, buyer, provider=web.provider, clock=web.clock, ids=ids, key=key)


def without_vain_questions(events: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """The journal, as told, for people: without the many questions that found no answer. (Whatever is asked
    from 21:50:00 on finds one.)
    """
    return [event for event in events if not _in_vain(event)]


def _in_vain(event: dict[str, Any]) -> bool:
    match event["kind"]:
        case Kind.ASKED:
            return datetime.fromisoformat(event["at"]) < wednesday.START
        case Kind.ANSWERED:
            return bool(event["answer"] == Verdict.UNKNOWN)
        case Kind.SKIPPED:
            return str(event["why"]).startswith("no answer")
    return False
