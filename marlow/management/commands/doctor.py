"""`manage.py doctor`: a line each of what is found, what is missing, and what to do."""

import sys
from typing import Any

from django.core.management.base import BaseCommand
from rich.console import Console
from rich.text import Text

from marlow.doctor import State, examine

STYLES = {State.OK: "green", State.NOTE: "yellow", State.MISSING: "bold red"}


class Command(BaseCommand):
    help = "Say what is found, what is missing and what to do. Exit status 1 when something is missing."
    requires_system_checks = []  # a doctor that refuses to see the ill is of no use

    def handle(self, *args: Any, **options: Any) -> None:
        console = Console(soft_wrap=True)
        missing = False
        for finding in examine():
            line = Text(f"{finding.state:8}", style=STYLES[finding.state])
            line.append(f"{finding.what:18} ", style="bold").append(finding.found, style="default")
            if finding.do:
                line.append(f" → {finding.do}", style="italic")
            console.print(line)
            missing |= finding.state is State.MISSING
        sys.exit(1 if missing else 0)
