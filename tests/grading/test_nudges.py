"""Nudges: one message tells the workers that there is something to do, after the commit, and a broker that is down
costs nothing.
"""

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection, transaction

from grading import nudge, queue, regrade
from grading.models import Attempt, Regrade, State
from tests.grading.school import NOON, School, crowd, real_commits, state


class Sent(list[tuple[str, str]]):
    def __call__(self, broker: str) -> "Sent":
        return self

    def send_task(self, name: str, queue: str, **_: Any) -> None:
        assert not connection.in_atomic_block, "a worker would not see it yet"
        self.append((name, queue))


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> Sent:
    made = Sent()
    monkeypatch.setattr(nudge, "_sender", made)
    return made


@real_commits
def test_a_hand_in_nudges_after_its_commit_and_a_rollback_does_not(sent: Sent) -> None:
    school = School()
    school.hand_in()
    assert sent == [("grading.judge", "grading")]
    attempt = Attempt.objects.get()
    with transaction.atomic():
        queue.ask(attempt, NOON, regrade=Regrade.objects.create(of=school.of, begun_by=school.teacher, begun_at=NOON))
        transaction.set_rollback(True)
    assert len(sent) == 1


@real_commits
def test_a_class_that_is_judged_over_nudges_once(sent: Sent) -> None:
    """Two hundred messages to a broker that is away would take minutes."""
    school = School()
    made = crowd(school, 4)
    sent.clear()
    regrade.begin(made, "all", "A check was wrong.", by=school.teacher, now=NOON + timedelta(hours=1))
    assert len(sent) == 1


@real_commits
def test_a_broker_that_is_down_costs_a_hand_in_no_time_and_nothing_else(settings: Any, caplog: Any) -> None:
    """The real sender, and nobody at the address."""
    settings.CELERY_BROKER_URL = "redis://127.0.0.1:1/0"
    attempt = School().hand_in()
    assert state(attempt) == State.WAITING
    assert "No worker could be nudged" in caplog.text


def test_the_judges_app_listens_to_what_is_sent() -> None:
    """The web sends by an app of its own, since it must not be a worker."""
    from marlow import judging

    assert judging.app.conf.task_default_queue == nudge.QUEUE
    judging.app.loader.import_default_modules()
    assert nudge.TASK in judging.app.tasks
    entry = judging.app.conf.beat_schedule["look"]
    assert (entry["task"], entry["options"]["queue"]) == (nudge.TASK, nudge.QUEUE)
    assert judging.app.conf.task_acks_late is True
