"""The Celery app of the laboratory's workers: any number of them, on any box, on one queue that all share.

    celery --app marlow.laboratory worker --concurrency 1

It is not a box's app: no beat, no sweeps, and a sweep never waits for an exploration. Each worker process makes
itself a database beside the one that LAB_DATABASE_URL names.
"""

import os
from functools import cache
from typing import Any

from celery import Celery
from django.conf import settings

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "marlow.settings")  # noqa: TID251  which settings, before any are

QUEUE = "laboratory"
LIMIT = 600  # real seconds that one part may take; it takes seconds

app = Celery("laboratory")
app.conf.update(
    broker_url=settings.CELERY_BROKER_URL,
    broker_connection_retry_on_startup=True,
    task_default_queue=QUEUE,
    task_ignore_result=True,
    # A part is in hand for as long as its worker lives; whoever merges sends it again when it takes too long.
    task_acks_late=True,
    task_time_limit=LIMIT,
    worker_prefetch_multiplier=1,
    worker_hijack_root_logger=False,
    worker_send_task_events=False,
)


@app.task(name="laboratory.explore")  # type: ignore[untyped-decorator]  # Celery ships no types
def explore(pk: int) -> None:
    """One part of an exploration. The laboratory is imported by those who work in it, and not by those who send."""
    from exercises.scenarios.spread import explore_part

    explore_part(pk, _room())


@cache
def _room() -> Any:
    """This process's laboratory, which stays open from part to part."""
    from exercises.scenarios.room import KeptLaboratory

    return KeptLaboratory()


def send(pk: int) -> None:
    """A part of an exploration, to whoever is free."""
    explore.apply_async(args=[pk], queue=QUEUE)
