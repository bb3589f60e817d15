"""The Wednesday in virtual time, to the second: the same rows, the same sweep, the same locks, and no waiting."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import connection

from exercises.friday import sell_and_count
from exercises.lab.database import Database
from exercises.lab.policies import FirstCome
from exercises.lab.scheduler import Policy, Scheduler, Taken
from exercises.scenarios import wednesday
from exercises.scenarios.boxes import Box, Servers, Setting, as_told
from exercises.scenarios.hour import PROCESSES, Pace, StaffedBox, customers
from exercises.scenarios.mishap import Mishap, Waiting
from exercises.scenarios.placed import Placed
from marlow.clock import StandingClock
from shop.models import Book
from shop.settle import FORMS
from shop.shelf import shelf
from sweeper import verdict
from sweeper.events import Event
from sweeper.locks import LOCKS

# Box A's messages come just after box B's: B's key is alive at its deadline, and gone one millisecond later.
BEHIND = timedelta(milliseconds=1)
EVERY = timedelta(minutes=2)
# What a playing writes, in an order in which it may be deleted.
WRITTEN = ("shop_settlement", "shop_refund", "shop_straycharge", "sweeper_jobrun", "shop_fence")
FURNITURE = ("shop_stockcount", "shop_stockmovement", "shop_order", "shop_book", "shop_publisher")
CLEAR = ";".join(f"delete from {table}" for table in (*WRITTEN, *FURNITURE))  # noqa: S608  our own tables' names, nobody's input
# A session's mark and whatever it holds by name: none of it may reach its next run.
TIDYING = "select pg_advisory_unlock_all(), set_config('marlow.run', '', false)"


@dataclass(frozen=True)
class Outcome:
    """What a playing came to: ARCHITECTURE's verdict, the journal, and every choice with what it was among."""

    verdict: dict[str, Any]
    events: list[Event]
    taken: list[Taken]
    errors: dict[str, str]  # of the runs that died, by their names
    places: Sequence[int] = ()  # of the events: how many steps came before each
    novel: tuple[int, int] = (0, 0)  # copies at the end: in the catalogue, on the shelf
    mishap: Mishap | None = None


def play(
    database: Database,
    setting: Setting,
    policy: Policy | None = None,
    *,
    start: datetime = wednesday.START,
    processes: int = PROCESSES,
    friday: bool = True,
    mishap: Mishap | None = None,
) -> Outcome:
    """From `start` (one of wednesday.STARTS) to the end of the runs of 21:52, or with a mishap of those of
    wednesday.AFTERMATH, and then Friday. `processes`: of each box's worker. The database is the laboratory's, lent.
    """
    with _stage(start) as furnished:
        scheduler = Scheduler(policy or FirstCome(), start)
        servers, journal = Servers(scheduler), Placed(scheduler)
        servers.provider.pace = Pace(lambda: scheduler.now, start)
        if start == wednesday.START_OF_EVENING:
            _open_the_shop(database, Box("web", 0.0, servers, setting, journal), furnished)
        boxes = [StaffedBox(name, servers, setting, journal, database, processes) for name in ("box-b", "box-a")]
        for slot in slots(start, wednesday.CURTAIN if mishap is None else wednesday.AFTERMATH):
            for late, box in zip((timedelta(), BEHIND), boxes, strict=True):
                box.cron(slot + late)
        if mishap is not None:
            Waiting(mishap, scheduler, database, boxes, servers)
        try:
            scheduler.run()
        finally:
            database.tidy()
        servers.provider.pace = None
        if friday:
            _friday(boxes[-1])
        novel = shelf(Book.objects.filter(title=wednesday.NOVEL)).get()
        told = verdict.on(journal.events, verdict.counted(), **setting.named)
    told["events"] = as_told(journal.events)
    errors = {fibre.name: repr(fibre.error) for fibre in scheduler.fibres if fibre.error is not None}
    copies = (novel.stock, novel.on_shelf)
    return Outcome(told, journal.events, scheduler.taken, errors, journal.places, copies, mishap)


def slots(start: datetime, last: datetime = wednesday.CURTAIN) -> list[datetime]:
    """When box B fires: every two minutes from `start` on, until this moment at the latest."""
    return [start + place * EVERY for place in range((last - start) // EVERY + 1)]


def _open_the_shop(database: Database, web: Box, furnished: wednesday.Stage) -> None:
    fibre = web.scheduler.start(web.name, web.name, lambda: customers(web, furnished))
    database.session(fibre.name)


def _friday(box: Box) -> None:
    names = iter(range(1, 100))
    sell_and_count(
        wednesday.NOVEL,
        2,
        provider=box.provider,
        clock=StandingClock(wednesday.FRIDAY),
        ids=lambda: f"friday-{next(names)}",
    )


@contextmanager
def _stage(start: datetime) -> Iterator[wednesday.Stage]:
    """The shop's furniture, and at 21:50:00 the fourteen rows as well; all of it is deleted again."""
    clear()
    try:
        furnished = wednesday.furnish(wednesday.START)
        if start == wednesday.START:
            wednesday.seed_rows(furnished)
        yield furnished
    finally:
        clear()


def clear() -> None:
    """Empty the laboratory's shop: deletes, for to truncate costs more than everything else."""
    with connection.cursor() as cursor:
        cursor.execute(CLEAR)


def pairs() -> list[tuple[str, str]]:
    """Every lock with every form of settling that goes with it."""
    return [
        (lock, settle)
        for lock, strategy in LOCKS.items()
        for settle, form in FORMS.items()
        if strategy.mints_token or not form.fenced
    ]
