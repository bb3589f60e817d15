"""A gradebook's file, and what is read out of it."""

import csv
import io

from grading import corrections
from grading.cells import lines_as, rows_of
from grading.corrections import Reading
from grading.gradebook import gradebook
from tests.grading.school import School


def exported(school: School, kind: str = "csv") -> bytes:
    return lines_as(kind, gradebook(school.of, by=school.teacher))


def edited(file: bytes, check: str = "refused", **cells: object) -> bytes:
    """The CSV with these cells of this check otherwise."""
    rows = list(csv.DictReader(io.StringIO(file.decode("utf-8-sig"))))
    out = io.StringIO()
    writer = csv.DictWriter(out, list(rows[0]))
    writer.writeheader()
    writer.writerows([{**row, **cells} if row["check"] == check else row for row in rows])
    return out.getvalue().encode()


def read(school: School, file: bytes, by=None) -> Reading:
    return corrections.read(rows_of(file), by=by or school.teacher)


def counts(reading: Reading) -> tuple[int, int, int, int]:
    return len(reading.corrections), len(reading.conflicts), len(reading.problems), reading.same
