"""One exploration over many workers: its parts are rows, whoever is free explores one, and one process merges.

Nothing here depends on a message being delivered once, or at all. A part's result is written by a guarded update: of
two workers that explored the same part one writes, and both would have written the same. A part that nobody has
finished in time is sent again. Who merges holds a turn, a number that only rises, and every merge is written under
it: of two that believe to be the one, the older is refused.
"""

import hashlib
import json
from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import datetime, timedelta
from uuid import UUID

from django.db import transaction
from django.db.models import F

from exercises.lab.database import Database
from exercises.lab.scheduler import LabError
from exercises.models import Exploration, ExplorationPart
from exercises.scenarios import carried
from exercises.scenarios.boxes import Unplayable
from exercises.scenarios.corner import Corner
from exercises.scenarios.exploration import Found
from exercises.scenarios.part import Bounds, Enough, Frontier, Part, Tally, explore
from exercises.scenarios.shorter import shorter
from exercises.scenarios.written import length, replay
from marlow.clock import real_now

A_PART = 300  # orders, after which a part leaves the rest of its tree to others
PATIENCE = timedelta(seconds=60)  # real; a part takes seconds
TRIES = 3  # of a part whose workers can't explore it


class Overtaken(LabError):
    """Another process merges this exploration by now."""


class PartFailed(LabError):
    """A part could not be explored, wherever it was tried."""


def explore_part(pk: int, open_laboratory: Callable[[], AbstractContextManager[Database]]) -> None:
    """Explore one part and write what came of it, unless it is written already. While the laboratory is open,
    `django.db.connection` is the laboratory's: the rows are read before and written after.
    """
    row = ExplorationPart.objects.select_related("exploration").filter(pk=pk, done_at=None).first()
    if row is None or row.exploration.ended_at is not None:
        return
    ExplorationPart.objects.filter(pk=pk, done_at=None).update(taken_at=real_now())
    corner, bounds = carried.corner_from(row.exploration.corner), carried.bounds_from(row.exploration.bounds)
    tally, failed, beyond = Tally(), "", None
    try:
        with open_laboratory() as database:
            beyond = explore(database, corner, bounds, carried.part_from(row.part), tally, lambda: None, A_PART)
    except LabError as error:
        failed = str(error)
    except Exception as error:  # of the worker and its servers: somebody else may fare better
        ExplorationPart.objects.filter(pk=pk, done_at=None).update(
            failed=f"{type(error).__name__}: {error}"[:1000], tries=F("tries") + 1
        )
        raise
    # update … where id = :id and done_at is null: of two workers one writes.
    ExplorationPart.objects.filter(pk=pk, done_at=None).update(
        done_at=real_now(),
        failed=failed,
        tally=carried.tally_to(tally),
        beyond=beyond and carried.beyond_to(beyond),
    )


class Spread:
    """The one that merges. `send` gives a part's number to the workers; `progress` is called after every merge."""

    def __init__(
        self,
        exploration: Exploration,
        send: Callable[[int], None],
        progress: Callable[[Found], None] = lambda _: None,
    ) -> None:
        """Takes the next turn at this exploration and goes on where it was left."""
        self.exploration, self.send, self.progress = exploration, send, progress
        corner, bounds = carried.corner_from(exploration.corner), carried.bounds_from(exploration.bounds)
        self.found = Found(corner=corner, bounds=bounds)
        self.frontier, self.shortest, self.stopping = Frontier(), "", False
        with transaction.atomic():  # the update locks the row: nobody else's turn is read here
            Exploration.objects.filter(pk=exploration.pk).update(turn=F("turn") + 1)
            exploration.refresh_from_db()
        self.merged = 0
        for row in exploration.parts.exclude(merged=None).order_by("merged"):
            self._learn(row)
            self.merged += 1
        exploration.parts.filter(done_at=None).update(tries=0, failed="")
        self.sent: dict[int, datetime] = {}

    @classmethod
    def begin(
        cls,
        corner: Corner,
        bounds: Bounds,
        send: Callable[[int], None],
        progress: Callable[[Found], None] = lambda _: None,
    ) -> "Spread":
        """Raises Unplayable where orders are not tried by reduction: other searches can't be split."""
        if bounds.policy != "all":
            raise Unplayable(f"Only --policy all can be spread over workers, and not {bounds.policy}.")
        with transaction.atomic():
            exploration = Exploration.objects.create(
                corner=carried.corner_to(corner), bounds=carried.bounds_to(bounds), began_at=real_now()
            )
            _write(exploration, [Part()])
        return cls(exploration, send, progress)

    @classmethod
    def resume(
        cls, pk: UUID, send: Callable[[int], None], progress: Callable[[Found], None] = lambda _: None
    ) -> "Spread":
        exploration = Exploration.objects.filter(pk=pk, ended_at=None).first()
        if exploration is None:
            raise Unplayable(f"There is no exploration {pk} that could go on: it has ended, or never was.")
        return cls(exploration, send, progress)

    def stop(self) -> None:
        self.stopping = True

    def go(self, wait: Callable[[], object]) -> Found:
        """Until every part is done. `wait` passes the time between two looks. Raises Overtaken, PartFailed."""
        try:
            while self._look():
                wait()
            self.found.conclude()
        except Enough as stopped:
            self.found.conclude(str(stopped))
        self._demand_turn(ended_at=real_now(), stopped=self.found.stopped)
        return self.found

    def shortest_in(self, database: Database) -> None:
        """Play the shortest failure again, for its timeline, and look for a shorter one: workers send its text."""
        if self.shortest:
            self.found.shortest = shorter(database, (self.shortest, replay(database, self.shortest)))

    def _look(self) -> bool:
        """Merge what was done; send what is new, or was sent and is overdue. False once nothing is left."""
        if self.stopping:
            raise Enough("it was stopped by hand")
        for row in self.exploration.parts.filter(merged=None).exclude(done_at=None).order_by("done_at", "pk"):
            self._merge(row)
            self.progress(self.found)
            self.found.demand_time()
        waiting = list(self.exploration.parts.filter(done_at=None).order_by("pk").only("pk", "tries", "failed"))
        for row in waiting:
            self._send(row)
        return bool(waiting) or self.exploration.parts.filter(merged=None).exists()

    def _send(self, row: ExplorationPart) -> None:
        """What is new; what nobody has finished in time; and what a worker could not explore, a few times."""
        if row.failed and row.tries >= TRIES:
            raise PartFailed(f"The workers can't explore this, {TRIES} times over. The last one: {row.failed}")
        sent = self.sent.get(row.pk)
        if row.failed:
            self.exploration.parts.filter(pk=row.pk).update(failed="")
        elif sent is not None and real_now() - sent < PATIENCE:
            return
        self.send(row.pk)
        self.sent[row.pk] = real_now()

    def _merge(self, row: ExplorationPart) -> None:
        """The row counts as merged exactly if the parts it led to are rows as well."""
        if row.failed:
            raise PartFailed(f"A part of this exploration failed: {row.failed}")
        fresh = self._learn(row)
        self.merged += 1
        with transaction.atomic():
            self._demand_turn(turn=self.exploration.turn)
            self.exploration.parts.filter(pk=row.pk).update(merged=self.merged)
            _write(self.exploration, fresh)

    def _demand_turn(self, **written: object) -> None:
        """update … where id = :id and turn = :turn. Raises Overtaken once another process has taken a turn."""
        if not Exploration.objects.filter(pk=self.exploration.pk, turn=self.exploration.turn).update(**written):
            raise Overtaken("Another process merges this exploration by now; this one stops.")

    def _learn(self, row: ExplorationPart) -> list[Part]:
        shortest = carried.add(self.found, row.tally)
        if shortest and (not self.shortest or length(shortest) < length(self.shortest)):
            self.shortest = shortest
        return self.frontier.learn(carried.part_from(row.part), carried.beyond_from(row.beyond))


def _write(exploration: Exploration, parts: list[Part]) -> None:
    """insert … on conflict do nothing: a part is one row, whoever found it."""
    told = [carried.part_to(part) for part in parts]
    ExplorationPart.objects.bulk_create(
        [ExplorationPart(exploration=exploration, part=one, key=_key(one)) for one in told], ignore_conflicts=True
    )


def _key(told: object) -> str:
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()
