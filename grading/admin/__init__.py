"""The admin of the grader."""

from grading.admin import classes

__all__ = ["classes"]
