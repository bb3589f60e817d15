"""`manage.py crowd`: ninety-six of a hundred connections, and twelve pods that each want an advisory lock."""

from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from exercises.scenarios import crowd
from marlow.servers.launcher import ServerError


class Command(BaseCommand):
    help = "Show what an advisory lock costs: the lesson's 96 of 100 connections, on a Postgres of its own."
    requires_system_checks = []

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            came = crowd.gather(Path(settings.STATE_DIR) / "crowd", self.stdout.write)
        except ServerError as error:
            raise CommandError(str(error)) from error
        self.stdout.write(f"{came.served} of {crowd.PODS} pods could sweep. A lock in Redis would have cost none.")
