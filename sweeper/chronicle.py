"""The live journal: rows on a connection of its own, one log line an event, a file while the database is gone."""

import json
import logging
import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from django.db import DatabaseError, DataError, IntegrityError, InterfaceError, connections, transaction
from django.db.models import Q

from marlow.clock import real_now
from sweeper import models
from sweeper.events import Event, Kind
from sweeper.journal import AlreadyRun, Run

log = logging.getLogger("journal")
DB = "journal"
GONE = (DatabaseError, InterfaceError)
State = models.SweepRun.State
ENDS = {
    Kind.REFUSED: State.REFUSED,
    Kind.FINISHED: State.FINISHED,
    Kind.STOPPED: State.STOPPED,
    Kind.DIED: State.DIED,
}
CHANGES_ITS_RUN = {Kind.ACQUIRED, Kind.LISTED, *ENDS}


class Chronicle:
    """Writes each event at once, in autocommit, so that a settle rolled back keeps its story.

    While the database can't be reached, events go to a file in `spool` and are written when a later run begins.
    """

    def __init__(
        self,
        spool: Path,
        longest: timedelta = timedelta(minutes=16),
        new_uid: Callable[[], uuid.UUID] = uuid.uuid4,
    ) -> None:
        """`longest`: no run lives beyond this (virtual time), for its worker ends it."""
        self.spool = spool
        self.longest = longest
        self.new_uid = new_uid

    def begin(self, run: Run, at: datetime) -> None:
        self.recover()
        self.close_overdue(run.box, at)
        started = Event(at, run.box, run.run, Kind.STARTED, data={"message": run.message})
        try:
            models.SweepRun.objects.using(DB).create(
                **{name: getattr(run, name) for name in ("run", "box", "message", "lock", "settle", "question")},
                started_at=at,
            )
        except IntegrityError as twice:
            self._again(run, at)
            raise AlreadyRun(f"Message {run.message} was swept before.") from twice
        self.write(started)

    def write(self, event: Event) -> None:
        line = {"uid": str(self.new_uid()), "real_at": real_now().isoformat(), **_fields(event)}
        log.info("%s", json.dumps(line))
        try:
            _store_now(line)
        except GONE as gone:
            log.warning("journal kept in a file: %s", gone)
            self._keep(line)

    def recover(self) -> None:
        """Write what was kept in files while the database was gone. Safe to run twice and by two boxes at once."""
        for kept in sorted(self.spool.glob("*.kept*")):
            with suppress(FileNotFoundError):  # another worker was quicker
                # Ours alone from here on; whoever has more to keep opens a new file.
                taken = kept.rename(kept.with_name(f"{kept.name.partition('.')[0]}.kept-{self.new_uid()}"))
                try:
                    _store(list(_whole_lines(taken.read_text())))
                except (IntegrityError, DataError) as orphaned:
                    log.warning("journal set aside as %s.orphan: %s", taken.stem, orphaned)
                    taken.rename(taken.with_suffix(".orphan"))
                else:
                    taken.unlink()

    def bury(self, box: str, at: datetime) -> int:
        """Close the runs of this box that never ended: it was killed and is only starting now. Returns how many."""
        return self._close(Q(box=box), at, "found unfinished when its box started")

    def close_overdue(self, box: str, at: datetime) -> int:
        """Close the runs of this box that no worker can still be at: their time limit is over. Returns how many."""
        return self._close(Q(box=box, started_at__lt=at - self.longest), at, "did not end within its time limit")

    def close_lost(self, message: str, at: datetime, error: str) -> int:
        """Close the run of this message: the process that swept it is gone. Returns how many, 0 or 1."""
        return self._close(Q(message=message), at, error)

    def _close(self, which: Q, at: datetime, error: str) -> int:
        dead = list(models.SweepRun.objects.using(DB).filter(which, state=State.RUNNING))
        for run in dead:
            settled = run.events.using(DB).filter(kind=Kind.SETTLED).count()
            self.write(Event(at, run.box, run.run, Kind.DIED, data={"error": error, "settled": settled}))
        return len(dead)

    def _again(self, run: Run, at: datetime) -> None:
        """A message came a second time: say so on its first run, which may be over, dead, or still at work."""
        first = models.SweepRun.objects.using(DB).get(message=run.message)
        self.write(Event(at, run.box, first.run, Kind.REDELIVERED, data={"message": run.message}))

    def _keep(self, line: dict[str, Any]) -> None:
        self.spool.mkdir(parents=True, exist_ok=True)
        with (self.spool / f"{line['run']}.kept").open("a") as file:
            file.write(json.dumps(line) + "\n")


def _whole_lines(text: str) -> Iterator[dict[str, Any]]:
    """The events in a file whose last line may have been cut off by its writer's death."""
    for line in text.splitlines():
        try:
            yield json.loads(line)
        except ValueError:
            log.warning("half an event in the journal's file was left out: %s", line[:80])


def _fields(event: Event) -> dict[str, Any]:
    return {
        "at": event.at.isoformat(),
        "box": event.box,
        "run": str(event.run),
        "kind": str(event.kind),
        "order": event.order,
        "answer": event.answer,
        "token": event.token,
        "data": event.data,
    }


def _store(lines: list[dict[str, Any]]) -> None:
    """Rows for these events, and their runs' rows brought up to date; an event written before is left alone."""
    try:
        with transaction.atomic(using=DB):
            models.Event.objects.using(DB).bulk_create([_row(line) for line in lines], ignore_conflicts=True)
            for line in lines:
                _bring_up_to_date(line)
    except GONE:
        connections[DB].close()
        raise


def _store_now(line: dict[str, Any]) -> None:
    """One fresh event, in one round trip where its run's row does not change."""
    if Kind(line["kind"]) in CHANGES_ITS_RUN:
        _store([line])
        return
    try:
        _row(line).save(using=DB, force_insert=True)
    except GONE:
        connections[DB].close()
        raise


def _row(line: dict[str, Any]) -> models.Event:
    return models.Event(**{("run_id" if name == "run" else name): value for name, value in line.items()})


def _bring_up_to_date(line: dict[str, Any]) -> None:
    kind, data = Kind(line["kind"]), line["data"]
    changes: dict[str, Any] = {}
    if kind is Kind.ACQUIRED:
        changes = {"acquired_at": line["at"], "lease_until": data.get("deadline"), "token": line["token"]}
    elif kind is Kind.LISTED:
        changes = {"rows": data["rows"]}
    elif kind in ENDS:
        changes = {"state": ENDS[kind], "ended_at": line["at"]}
        changes |= {"settled": data["settled"]} if "settled" in data else {}
    if changes:
        models.SweepRun.objects.using(DB).filter(run=line["run"]).update(**changes)
