"""The evening on real boxes: start the clock, let them run, stop it, sell and count on Friday, read the verdict."""

import threading
import uuid
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from itertools import repeat
from typing import Any, Protocol

from django.db import connections

from exercises import stage
from exercises.friday import sell_and_count
from exercises.models import Performance
from exercises.scenarios import wednesday
from marlow.clock import Clock, Dial, real_sleep, wait_until
from shop.checkout import SoldOut, checkout
from shop.provider.answers import Provider
from sweeper import verdict
from sweeper.models import Event, SweepRun


class Watcher(Protocol):
    """Whoever looks on while it is played."""

    def show(self, now: datetime, runs: list[SweepRun], events: list[Event]) -> None:
        """Called several times a second with the runs so far and the events since the last call."""
        ...


class EveningFailed(Exception):
    """The evening did not come to its end; the sentence says why."""


@dataclass
class Evening:
    performance: Performance
    start: datetime
    dial: Dial
    clock: Clock
    provider: Provider
    watcher: Watcher
    control: Callable[[dict[str, Any]], None]  # how the provider is told to behave
    over: threading.Event = field(default_factory=threading.Event)
    seen: set[int] = field(default_factory=set)
    trouble: list[Exception] = field(default_factory=list)

    def play(self) -> dict[str, Any]:
        """Blocks until the curtain (nine real seconds from 21:50 at 20x). Raises EveningFailed."""
        self.control(wednesday.provider_control(self.start))
        self.dial.start(wednesday.AHEAD)
        customers = threading.Thread(target=self._customers, daemon=True)
        if self.start == wednesday.START_OF_EVENING:
            customers.start()
        self._watch()
        self.over.set()
        self.dial.stop()
        if customers.ident is not None:
            customers.join(self.clock.real(60))
        if self.trouble:
            raise EveningFailed(f"A checkout failed: {self.trouble[0]}") from self.trouble[0]
        self._let_runs_end()
        return self._conclude()

    def _watch(self) -> None:
        """Until the last run of 21:52 has ended; at the latest until just before the boxes fire again."""
        while (now := self.clock.now()) < wednesday.LAST_CURTAIN:
            runs = self._look(now)
            if now >= wednesday.CURTAIN and not _running(runs):
                return
            real_sleep(0.1)

    def _let_runs_end(self) -> None:
        """The clock stands, nobody fires any more; runs that are still at it answer their last questions."""
        if not wait_until(lambda: not _running(self._look(self.clock.now())), self.clock.real(300), every=0.1):
            raise EveningFailed("A run did not end within five virtual minutes; the boxes' logs say more.")
        late = SweepRun.objects.filter(started_at__gte=wednesday.LAST_SLOT)
        if absent := set(wednesday.CLOCK_OFFSETS) - set(late.values_list("box", flat=True)):
            raise EveningFailed(f"{' and '.join(sorted(absent))} did not sweep at 21:52; its log says more.")

    def _look(self, now: datetime) -> list[SweepRun]:
        runs = list(SweepRun.objects.order_by("started_at"))
        fresh = list(Event.objects.exclude(pk__in=self.seen).order_by("real_at", "id"))
        self.seen.update(event.pk for event in fresh)
        self.watcher.show(now, runs, fresh)
        return runs

    def _customers(self) -> None:
        """The customers' thread; what goes wrong there is kept for the end."""
        try:
            self._shop()
        except Exception as error:
            self.trouble.append(error)
        finally:
            connections.close_all()

    def _shop(self) -> None:
        """Real checkouts, one each fifty virtual seconds, until the evening is over."""
        furnished = stage.standing()
        for when, book, buyer, reference in wednesday.evening_orders(furnished):
            while (wait := (when - self.clock.now()).total_seconds()) > 0 and not self.over.is_set():
                self.over.wait(self.clock.real(wait))
            if self.over.is_set():
                break
            with suppress(SoldOut):
                ids, key = repeat(reference).__next__, f"evening-{reference}"
                checkout(book, buyer, provider=self.provider, clock=self.clock, ids=ids, key=key)

    def _conclude(self) -> dict[str, Any]:
        ended = self.clock.now()
        self.control({"default": {"mode": "fast"}})
        self.dial.set(wednesday.FRIDAY, self.dial.read().scale)
        sell_and_count(
            wednesday.NOVEL, 2, provider=self.provider, clock=self.clock, ids=lambda: f"F-{uuid.uuid4().hex[:12]}"
        )
        read = verdict.read(
            lock=self.performance.lock, settle=self.performance.settle, question=self.performance.question
        )
        Performance.objects.filter(pk=self.performance.pk).update(ended_at=ended, verdict=read)
        return read


def _running(runs: list[SweepRun]) -> bool:
    return any(run.state == SweepRun.State.RUNNING for run in runs)
