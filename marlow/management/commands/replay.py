"""`manage.py replay`: one order that the laboratory found, again."""

import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from rich.console import Console

from exercises.lab.scheduler import LabError
from exercises.scenarios import keep, told
from exercises.scenarios.exploration import replay
from exercises.scenarios.room import laboratory
from exercises.stage import NotAStage
from marlow.servers.launcher import ServerError
from marlow.settings import environment_for


class Command(BaseCommand):
    help = "Play one schedule again, as `manage.py lab explore` printed it: the same journal, to the letter."
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("schedule", help="in quotes: corner;redis-naive;unguarded;lookup;…")
        parser.add_argument("--keep", action="store_true", help="in the shop's database, for the admin")
        parser.add_argument("--json", action="store_true", help="the verdict on the last line of stdout")

    def handle(self, *args: Any, **options: Any) -> None:
        console = Console(stderr=options["json"])
        try:
            with laboratory() as database:
                played = replay(database, options["schedule"])
        except (ServerError, NotAStage, LabError) as error:
            raise CommandError(str(error)) from error
        console.print(told.timeline(keep.placed(played), keep.steps_of(played.taken)))
        console.print(told.wrong(played.wrong), soft_wrap=True)
        if options["json"]:
            self.stdout.write(json.dumps({**played.verdict, "schedule": options["schedule"]}))
        if options["keep"]:
            # Once the laboratory is closed: while it is open, the shop's connection is the laboratory's.
            try:
                keep.keep(keep.of_replay(options["schedule"], played), environment_for)
            except keep.NotKept as error:
                raise CommandError(str(error)) from error
