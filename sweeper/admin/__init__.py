"""The sweeper in the admin: its runs, its journal, and the picture of an evening."""

from sweeper.admin import evening, records

__all__ = ["evening", "records"]
