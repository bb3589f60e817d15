"""Nudges: the message that tells the workers that there is something to do. What is to be judged stands in the
database, and a nudge that is lost, late or sent twice changes nothing.
"""

import logging
from functools import cache

from celery import Celery
from django.conf import settings
from django.db import connection, transaction

log = logging.getLogger(__name__)
QUEUE, TASK = "grading", "grading.judge"
AT_ONCE = 1.0  # real seconds that a nudge may take to reach its broker
STALE = 60.0  # real seconds after which a nudge that nobody took is worth nothing


def send() -> None:
    """Wake a worker. A broker that is down loses nothing: the workers look for themselves every few seconds."""
    try:
        _sender(settings.CELERY_BROKER_URL).send_task(
            TASK, queue=QUEUE, retry=False, ignore_result=True, expires=STALE
        )
    except Exception as away:
        log.warning("No worker could be nudged (%s): it will be judged when one looks.", type(away).__name__)


def after_commit() -> None:
    """Once, however much one transaction asks for."""
    if not any(waiting[1] is send for waiting in connection.run_on_commit):
        transaction.on_commit(send)


@cache
def _sender(broker: str) -> Celery:
    """An app that only sends: of no box, so that neither the web nor a command has to be one."""
    app = Celery("grading", broker=broker, set_as_current=False)
    app.conf.broker_write_url = broker  # Celery itself would rather have the environment's
    app.conf.broker_transport_options = {
        "socket_connect_timeout": AT_ONCE,
        "socket_timeout": AT_ONCE,
        "retry_on_timeout": False,
        "max_retries": 0,
    }
    return app
