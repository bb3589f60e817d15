"""The Celery app of the judges: one or more workers on every box, all on one queue that they share.

    celery --app marlow.judging worker --beat --concurrency 1

It is no box's app: no sweep waits for a judging, and no judging for a sweep. Its beat is by the real clock, never by
the shop's. Messages are nudges; what is to be judged stands in the database.
"""

import os

from celery import Celery
from django.conf import settings

from grading.nudge import QUEUE, TASK

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "marlow.settings")  # noqa: TID251  which settings, before any are

app = Celery("judging", include=["grading.tasks"])
app.conf.update(
    broker_url=settings.CELERY_BROKER_URL,
    broker_connection_retry_on_startup=True,
    task_default_queue=QUEUE,
    task_ignore_result=True,
    task_acks_late=True,
    worker_prefetch_multiplier=1,
    worker_hijack_root_logger=False,
    worker_send_task_events=False,
    # In memory: a look that was missed is made up for by the next one.
    beat_scheduler="celery.beat:Scheduler",
    beat_schedule={
        "look": {
            "task": TASK,
            "schedule": settings.GRADING_EVERY,
            "options": {"queue": QUEUE, "expires": settings.GRADING_EVERY},
        }
    },
)
