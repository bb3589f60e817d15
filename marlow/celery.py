"""The Celery app of a box: its own queue, its own beat, and the crontab that was copied with the image."""

import math
import os
from datetime import datetime
from pathlib import Path
from typing import Any

from celery import Celery
from celery.beat import Scheduler
from celery.schedules import BaseSchedule, schedstate
from celery.signals import worker_init, worker_ready
from django.conf import settings

from marlow.clock import live

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "marlow.settings")  # noqa: TID251  which settings, before any are


class Aligned(BaseSchedule):
    """Fires at every multiple of `every` virtual seconds (plus `offset`) on this box's clock, like a crontab line.

    An interval would count from when its beat was started, and two boxes would stay out of phase for ever.
    """

    def __init__(self, every: float, offset: float = 0.0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.every, self.offset = every, offset

    def is_due(self, last_run_at: datetime) -> schedstate:
        clock = live()
        # The mark itself counts as not yet passed: a clock that is started on a mark fires there.
        last = math.ceil(self._marks(clock.at(last_run_at))) - 1
        now = self._marks(clock.now())
        wait = (math.floor(now) + 1 - now) * self.every
        return schedstate(math.floor(now) > last, clock.real(wait))

    def _marks(self, moment: datetime) -> float:
        return (moment.timestamp() - self.offset) / self.every


# Real seconds between two looks at a clock that stands: before an evening, and after it.
SOON, LATER = 0.005, 0.5


class ClockScheduler(Scheduler):
    """Beat by the shop's clock: it stands still with it, and what was missed meanwhile stays missed."""

    patience = SOON

    def tick(self, *args: Any, **kwargs: Any) -> float:
        if not live().ticking():
            _ready("beat")
            return self.patience
        if self.patience == SOON:  # the clock has just been started: every entry's next time is to be worked out
            self._heap = None
            self.patience = LATER
        interval: float = super().tick(*args, **kwargs)
        return interval


def _ready(part: str) -> None:
    """Tell whoever started this box that a part of it is up."""
    folder = Path(settings.STATE_DIR) / "ready"
    folder.mkdir(parents=True, exist_ok=True)
    mark = folder / f"{settings.MARLOW_BOX}.{part}"
    if not mark.exists():
        mark.touch()


@worker_init.connect
def _demand_a_world(**kwargs: Any) -> None:
    """Before the first message: settings that make sense, servers that answer, and no run left open by a kill."""
    from sweeper.box import open_box

    try:
        open_box()
    except Exception as missing:
        raise SystemExit(f"{settings.MARLOW_BOX} can't start: {missing}") from missing


@worker_ready.connect
def _worker_is_up(**kwargs: Any) -> None:
    _ready("worker")


def _configure(app: Celery) -> None:
    clock, queue = live(), settings.MARLOW_BOX
    limit = clock.real(settings.SWEEPER_TIME_LIMIT)
    app.conf.update(
        broker_url=settings.CELERY_BROKER_URL,
        broker_connection_retry_on_startup=True,
        # A message is given out anew when it was not acknowledged for this long (real seconds): longer than any run.
        broker_transport_options={"visibility_timeout": max(3600.0, 3 * limit)},
        task_ignore_result=True,
        task_acks_late=True,
        task_soft_time_limit=limit,
        task_time_limit=limit + clock.real(settings.SWEEPER_GRACE),
        task_default_queue=queue,
        worker_prefetch_multiplier=1,
        worker_hijack_root_logger=False,
        worker_send_task_events=False,
        beat_scheduler="marlow.celery:ClockScheduler",
        beat_schedule={
            "sweep": {
                "task": "sweeper.sweep",
                "schedule": Aligned(settings.SWEEPER_EVERY, app=app),
                "options": {"queue": queue},
            },
            "reconcile": {
                "task": "sweeper.reconcile",
                "schedule": Aligned(settings.SWEEPER_RECONCILE_EVERY, settings.SWEEPER_EVERY / 2, app=app),
                "options": {"queue": queue},
            },
        },
    )


app = Celery("marlow")
_configure(app)
app.autodiscover_tasks()
