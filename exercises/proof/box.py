"""One box as a process: sweeps when it is told to, with the settings that come with the order.

An order is a line of JSON, `{"message": …, "settings": {…}}`; the answer is one too: `{"message": …, "settled": n}`
or `{"message": …, "error": "…"}`. With `"open": true` the box only does what a worker does before its first message.
What it runs is what Celery runs: `sweeper.box`.
"""

import json
from typing import Any, TextIO

from django.db import close_old_connections, connections
from django.test.utils import override_settings

from sweeper import box


def obey(orders: TextIO, answers: TextIO) -> None:
    """Until the orders end."""
    for connection in connections.all():
        connection.ensure_connection()
    _say(answers, {"ready": True})
    for line in orders:
        order = json.loads(line)
        _say(answers, {"message": order["message"], **_do(order)})


def _do(order: dict[str, Any]) -> dict[str, Any]:
    with override_settings(**order["settings"]):
        try:
            if order.get("open"):
                box.open_box()
                return {"settled": 0}
            return {"settled": box.sweep_once(order["message"])}
        except Exception as error:
            return {"error": f"{type(error).__name__}: {error}"[:500]}
        finally:
            close_old_connections()  # as Celery does behind a task


def _say(answers: TextIO, answer: dict[str, Any]) -> None:
    answers.write(json.dumps(answer) + "\n")
    answers.flush()
