"""Thin doors: what Celery calls."""

from celery import shared_task
from celery.signals import worker_process_shutdown

from grading.clerk import here
from grading.nudge import TASK


@shared_task(name=TASK)
def judge() -> int:
    """Whatever waits. The message says nothing: it may come twice, late or never."""
    return here().work()


@worker_process_shutdown.connect
def _leave(**kwargs: object) -> None:
    here().close()
