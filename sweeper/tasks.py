"""Thin doors: what Celery calls, and what it tells us of a worker process that is gone."""

from typing import Any

from billiard.exceptions import TimeLimitExceeded, WorkerLostError
from celery import shared_task
from celery.signals import task_failure

from sweeper import box


@shared_task(bind=True, name="sweeper.sweep")
def sweep(self: Any) -> int:
    return box.sweep_once(message=self.request.id)


@shared_task(name="sweeper.reconcile")
def reconcile() -> None:
    box.reconcile_once()


@task_failure.connect
def _lost(sender: Any, task_id: str, exception: BaseException, **kwargs: Any) -> None:
    """Told in the worker's main process: the process that swept was killed, or ended by force at the time limit."""
    if sender.name == "sweeper.sweep" and isinstance(exception, WorkerLostError | TimeLimitExceeded):
        box.worker_lost(task_id, f"{type(exception).__name__}: {exception}"[:500])
