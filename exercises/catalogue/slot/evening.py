"""A sequence of events, played by the very sweep: each box stands still until its next event is due.

One row is pending and holds a copy; no money moves, and answers come at once. A box has one worker, and its schedule
fires at even minutes. Between two events of a box lies whatever pause the sequence says, for any process may be
stopped for any time. What is not listed does not happen.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta

from exercises.catalogue.slot.answers import Happens, on_the_day
from exercises.lab.database import Database
from exercises.lab.fibre import Fibre, State, Waiting, current
from exercises.lab.policies import FirstCome
from exercises.lab.scheduler import Scheduler
from exercises.lab.steps import step
from exercises.scenarios import oracles
from exercises.scenarios.boxes import Box, Servers, Setting, as_told
from exercises.scenarios.corner import START, Played, furnished_with
from exercises.scenarios.placed import Placed
from sweeper import verdict
from sweeper.events import Event, Kind
from sweeper.slots import slot_of

SETTING = Setting("slot", "unguarded", "lookup")
BOXES = {"box A": "box-a", "box B": "box-b"}
# Behind which event of its journal a run stands still, and what it does next.
NEXT = {
    Kind.STARTED: ("is elected", "is refused"),
    Kind.ACQUIRED: ("lists",),
    Kind.LISTED: ("asks",),
    Kind.ANSWERED: ("puts back",),
}


class Impossible(Exception):
    """This event can't happen then. Says which, and why."""


@dataclass(frozen=True)
class Evening:
    """What a sequence came to. `impossible`: a sentence where one of its events can't happen; the rest was not
    played. `twice`: slots for which more than one run was elected.
    """

    played: Played
    impossible: str = ""
    twice: int = 0

    @property
    def oversold(self) -> int:
        """Copies that the catalogue promises and no shelf holds."""
        return int(self.played.verdict["phantom"])


def play(database: Database, events: Sequence[Happens]) -> Evening:
    """The database is the laboratory's, lent."""
    with furnished_with(1):
        scheduler = Scheduler(FirstCome(), START)
        journal = _Standing(scheduler)
        director = _Director(database, scheduler, journal, events)
        directing = scheduler.start("director", "director", director.direct)
        try:
            scheduler.run()
        finally:
            database.tidy()
        if directing.error is not None and not isinstance(directing.error, Impossible):
            raise directing.error
        told = verdict.on(journal.events, verdict.counted(), **SETTING.named)
    told["events"] = as_told(journal.events)
    errors = {fibre.name: type(fibre.error).__name__ for fibre in director.runs if fibre.error is not None}
    played = Played(scheduler.taken, told, oracles.copies(told), errors, places=journal.places, events=journal.events)
    elected = [event.token for event in journal.events if event.kind is Kind.ACQUIRED]
    return Evening(played, str(directing.error or ""), len(elected) - len(set(elected)))


class _Standing(Placed):
    """The journal, at whose events runs stand still until they are let go on."""

    def __init__(self, scheduler: Scheduler) -> None:
        super().__init__(scheduler)
        self.last: dict[str, Event] = {}  # by the names of runs
        self.standing: set[str] = set()

    def write(self, event: Event) -> None:
        super().write(event)
        run = current()
        if run is None:
            return
        self.last[run.name] = event
        if event.kind in NEXT:
            self.standing.add(run.name)
            run.blocked(Waiting(lambda: run.name not in self.standing, "stands still"), step("goes on"))


class _Director:
    """Has one event after another happen, each at its time."""

    def __init__(
        self, database: Database, scheduler: Scheduler, journal: _Standing, events: Sequence[Happens]
    ) -> None:
        self.database, self.scheduler, self.journal, self.events = database, scheduler, journal, events
        servers = Servers(scheduler)
        self.boxes = {who: Box(name, 0.0, servers, SETTING, journal) for who, name in BOXES.items()}
        self.runs: list[Fibre] = []
        self.of: dict[str, Fibre] = {}  # the last run of each box
        self.began: dict[str, str] = {}  # and when it started

    def direct(self) -> None:
        try:
            for number, event in enumerate(self.events, start=1):
                self._when_it_is_due(event)
                if (why := self._happen(event)) is not None:
                    raise Impossible(f"Event {number} ({event.at}, {event.who} {event.does}) can’t happen: {why}")
        finally:
            for name in BOXES.values():  # what is not listed does not happen
                self.scheduler.crash(name)

    def _when_it_is_due(self, event: Happens) -> None:
        due = on_the_day(START, event.moment)
        if due > self.scheduler.now:
            self._me().sleep_until(due)

    def _happen(self, event: Happens) -> str | None:
        """Why it can't, in words."""
        if event.does == "starts":
            return self._start(event)
        if (why := self._cannot(event)) is not None:
            return why
        run = self.of[event.who]
        self.journal.standing.discard(run.name)
        self._until(lambda: run.name in self.journal.standing or run.state is State.DONE)
        return self._otherwise(event, self.journal.last[run.name])

    def _start(self, event: Happens) -> str | None:
        since_the_hour = timedelta(minutes=event.moment.minute, seconds=event.moment.second)
        if since_the_hour % timedelta(seconds=SETTING.every):
            return "the schedule of both boxes fires at even minutes, to the second."
        run, began = self.of.get(event.who), self.began.get(event.who)
        if began == event.at:
            return f"its schedule fires once at {event.at}, and has."
        if run is not None and run.state is not State.DONE:
            return f"its one worker is still in the middle of its run of {began}."
        run = self.of[event.who] = self.boxes[event.who].cron(self.scheduler.now)
        self.runs.append(run)
        self.began[event.who] = event.at
        self.database.session(run.name)
        self._until(lambda: run.name in self.journal.standing)
        return None

    def _cannot(self, event: Happens) -> str | None:
        run = self.of.get(event.who)
        if run is None:
            return f"{event.who} has not started a run."
        began = self.began[event.who]
        if run.state is State.DONE:
            return f"{event.who}’s run of {began} is over by then."
        last = self.journal.last[run.name]
        if last.kind is Kind.LISTED and not last.data["rows"]:
            return f"{event.who}’s run of {began} has listed no row: none is pending any more."
        if event.does not in NEXT[last.kind]:
            return f"the next that {event.who}’s run of {began} can do is another: it {' or '.join(NEXT[last.kind])}."
        return None

    def _otherwise(self, event: Happens, last: Event) -> str | None:
        """Where the lock said something else than the sequence does."""
        if event.does not in NEXT[Kind.STARTED] or (event.does == "is elected") == (last.kind is Kind.ACQUIRED):
            return None
        slot = START + timedelta(seconds=SETTING.every) * (
            slot_of(self.scheduler.now, SETTING.every) - slot_of(START, SETTING.every)
        )
        if last.kind is Kind.ACQUIRED:
            return f"nobody else was elected for the slot of {slot:%H:%M:%S}, so {event.who} is."
        return f"the slot of {slot:%H:%M:%S} has its run already, so {event.who} is refused."

    def _until(self, arrived: Callable[[], bool]) -> None:
        if not arrived():
            self._me().blocked(Waiting(arrived, "looks on"), step("the director goes on"))

    def _me(self) -> Fibre:
        me = current()
        assert me is not None  # noqa: S101  it directs as a fibre
        return me
