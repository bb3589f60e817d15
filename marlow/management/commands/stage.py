"""`manage.py stage`: tables, demo logins with their class, the shop as it stood, the clock standing at the start."""

import shutil
from argparse import ArgumentParser
from datetime import datetime
from pathlib import Path
from typing import Any

import redis
from django.conf import settings
from django.contrib.auth.models import Group, User
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError, InterfaceError

from exercises import stage
from exercises.scenarios import wednesday
from marlow import classroom
from marlow.clock import Dial, real_now
from marlow.logins import LOGINS, PASSWORD


class Command(BaseCommand):
    help = "Set the stage for a scenario. Clears the shop of the last one; users stay."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--from", dest="start", choices=sorted(wednesday.STARTS), default="21:50")

    def handle(self, *args: Any, **options: Any) -> None:
        if not settings.DEMO or not settings.MARLOW_CLOCK_FILE:
            raise CommandError(
                "A stage is set by `manage.py up`, in a demo (MARLOW_DEMO=1) and on a clock of its own."
            )
        start = wednesday.STARTS[options["start"]]
        try:
            self._set(start)
        except stage.NotAStage as shop:
            raise CommandError(str(shop)) from shop
        except redis.RedisError as down:
            raise CommandError(f"A Redis of CELERY_BROKER_URL or LOCK_REDIS_URL does not answer: {down}") from down
        except (DatabaseError, InterfaceError) as down:
            raise CommandError(f"The Postgres of DATABASE_URL does not answer as it should: {down}") from down

    def _set(self, start: datetime) -> None:
        _demand_quiet_queues(stage.demand_stage())
        call_command("migrate", verbosity=0)
        stage.reset(
            start,
            lock=settings.SWEEPER_LOCK,
            settle=settings.SWEEPER_SETTLE,
            question=settings.SWEEPER_QUESTION,
            real=real_now(),
        )
        _logins()
        classroom.furnish(real_now())
        _sweep_out()
        epoch = datetime.fromisoformat(settings.MARLOW_CLOCK_EPOCH) if settings.MARLOW_CLOCK_EPOCH else start
        Dial(Path(settings.MARLOW_CLOCK_FILE)).set(epoch, settings.MARLOW_TIME_SCALE)


def _logins() -> None:
    for name, group in LOGINS.items():
        user, made = User.objects.get_or_create(username=name, defaults={"is_staff": True})
        user.set_password(PASSWORD)  # each time: the printed login works, whoever changed it
        user.save()
        if made:
            user.groups.add(Group.objects.get(name=group))


def _demand_quiet_queues(played_before: bool) -> None:
    """Messages on a broker that nobody has played on are somebody's: raise NotAStage and leave them."""
    with redis.Redis.from_url(settings.CELERY_BROKER_URL) as broker:
        if not played_before and broker.exists(*wednesday.CLOCK_OFFSETS):
            raise stage.NotAStage(
                "CELERY_BROKER_URL names a broker with messages for these boxes that no scenario sent: "
                "name another one, or leave CELERY_BROKER_URL out for an embedded one."
            )


def _sweep_out() -> None:
    """What an earlier evening left outside the database: messages, a lock's key, charges, ready marks."""
    with redis.Redis.from_url(settings.LOCK_REDIS_URL) as locks:
        locks.delete("lock:sweeper")
    with redis.Redis.from_url(settings.CELERY_BROKER_URL) as broker:
        broker.delete(*wednesday.CLOCK_OFFSETS)
    for file in Path(settings.STATE_DIR).glob("provider.sqlite3*"):
        file.unlink()
    for folder in ("ready", "journal"):
        shutil.rmtree(Path(settings.STATE_DIR) / folder, ignore_errors=True)
