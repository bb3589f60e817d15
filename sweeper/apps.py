"""The sweeper: one sweep, its locks, its journal."""

from django.apps import AppConfig


class SweeperConfig(AppConfig):
    name = "sweeper"
    verbose_name = "Sweeper"

    def ready(self) -> None:
        from sweeper import checks  # noqa: F401  registers the system checks
