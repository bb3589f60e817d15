"""Thin doors: what Celery calls."""

from typing import Any

from celery import shared_task

from sweeper import live


@shared_task(bind=True, name="sweeper.sweep")
def sweep(self: Any) -> int:
    return live.sweep_once(message=self.request.id)


@shared_task(name="sweeper.reconcile")
def reconcile() -> None:
    live.reconcile_once()
