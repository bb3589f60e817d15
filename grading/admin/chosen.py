"""The row that a request names, of those that its person may see."""

from typing import TypeVar

from django.core.exceptions import PermissionDenied
from django.db.models import Model, QuerySet

BIGGEST = 2**63 - 1  # what a key of the database holds
Row = TypeVar("Row", bound=Model)


def chosen(rows: QuerySet[Row], number: str) -> Row:
    """Raises PermissionDenied for what is not there, is not theirs or is no number: which of them is not told."""
    known = number.isascii() and number.isdecimal() and int(number[:20]) <= BIGGEST
    row = rows.filter(pk=int(number)).first() if known else None
    if row is None:
        raise PermissionDenied("There is nothing of that number that is yours.")
    return row
