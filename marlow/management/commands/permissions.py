"""Print `docs/permissions.md` from the table of roles."""

from typing import Any

from django.core.management.base import BaseCommand

from marlow.roles import as_markdown


class Command(BaseCommand):
    help = "Print who may do what, as docs/permissions.md has it."
    requires_system_checks: list[str] = []

    def handle(self, *args: Any, **options: Any) -> None:
        self.stdout.write(as_markdown(), ending="")
