"""The row that a request names, of those that its person may see."""

from typing import TypeVar

from django.db.models import Model, QuerySet
from django.http import Http404

from grading.models import BIGGEST

Row = TypeVar("Row", bound=Model)


def chosen(rows: QuerySet[Row], number: str) -> Row:
    """Raises Http404 for what is not there, is not theirs or is no number: which of them is not told."""
    known = number.isascii() and number.isdecimal() and int(number[:20]) <= BIGGEST
    row = rows.filter(pk=int(number)).first() if known else None
    if row is None:
        raise Http404("There is nothing of that number that is yours.")
    return row
