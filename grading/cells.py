"""The gradebook as a file: its columns, its cells, and reading it again as it comes out of a spreadsheet.

A cell that a spreadsheet would take for a formula is written with an apostrophe before it, and is read without it.
"""

import hashlib
import io
import re
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import tablib
from import_export import fields, resources, widgets
from import_export.formats.base_formats import CSV, XLSX

from grading.grade import items_of, results_of
from grading.gradebook import Book
from grading.models import Attempt

KINDS = {"csv": CSV(), "xlsx": XLSX()}
LARGEST = 2_000_000  # bytes of a file
UNPACKED = 40_000_000  # bytes of a workbook without its packing
MOST = 20_000  # rows
FORMULA = re.compile(r"'*[=+\-@\t\r\n]")
NOT_WRITTEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f]")  # no workbook holds these


class NotAGradebook(ValueError):
    """This file can't be read as one. Says what to do."""


def safe(text: str) -> str:
    """As a spreadsheet shows it and never reckons with it. `plain` takes it back, for every text."""
    return f"'{text}" if FORMULA.match(text) else text


def plain(text: str) -> str:
    return text[1:] if text.startswith("'") and FORMULA.match(text) else text


def even(text: str) -> str:
    """Without what a spreadsheet may change on the way: line ends, outer spaces, control characters."""
    return NOT_WRITTEN.sub("", re.sub(r"\r\n?|_x000D_\n", "\n", text)).strip()


class Written(widgets.Widget):  # type: ignore[misc]  # the library has no types
    """Numbers stay numbers in a workbook; text is made safe, and read back."""

    def render(self, value: Any, obj: Any = None, **_: Any) -> Any:
        return value if isinstance(value, int) else safe(even(str("" if value is None else value)))

    def clean(self, value: Any, row: Any = None, **_: Any) -> str:
        """As text, whatever a spreadsheet made of it: 3 and 3.0 are the same."""
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        return even(plain(str("" if value is None else value)))


def stamp(person: int | None, reason: str) -> str:
    """Of a person's points as they were written into the file: whether they are others by now, and whether the file's
    own are. Begins with a letter, or a spreadsheet would make a number of some.
    """
    said = "" if person is None else f"{person}: {even(reason)}"
    return "s" + hashlib.sha256(said.encode()).hexdigest()[:12]


@dataclass(frozen=True)
class Line:
    """A row of the file: one check of one attempt. `person`: None where only the machine gave points."""

    attempt: Attempt
    check: str
    outcome: str
    machine: int
    person: int | None
    reason: str
    of: int

    @property
    def stamp(self) -> str:
        return stamp(self.person, self.reason)


def lines_of(attempt: Attempt) -> Iterator[Line]:
    items = items_of(attempt)
    for result in results_of(attempt):
        item = items.get(result.name)
        person, reason = (item.points, item.reason) if item else (None, "")
        yield Line(attempt, result.name, str(result.outcome), result.points, person, reason, result.of)


def column(attribute: str, name: str) -> fields.Field:
    return fields.Field(attribute=attribute, column_name=name, widget=Written())


class Lines(resources.Resource):  # type: ignore[misc]  # the library has no types
    """`person` and `reason` are what an import takes; `stamp` says what they were."""

    of_class = column("attempt__submission__assignment__of__name", "class")
    student = column("attempt__submission__student__username", "student")
    exercise = column("attempt__submission__assignment__exercise", "exercise")
    number = column("attempt__number", "attempt")
    receipt = column("attempt__receipt", "receipt")
    check_name = column("check", "check")
    outcome = column("outcome", "outcome")
    machine = column("machine", "machine")
    person = column("person", "person")
    reason = column("reason", "reason")
    worth = column("of", "of")
    stamp = column("stamp", "stamp")


COLUMNS: dict[str, fields.Field] = {field.column_name: field for field in Lines().get_export_fields()}


def lines_as(kind: str, book: Book) -> bytes:
    """A row per student, exercise and check, of the attempts that count; `kind`: csv or xlsx."""
    graded = (cell.attempt for row in book.rows for cell in row.cells if cell.graded and cell.attempt)
    found = [line for attempt in graded for line in lines_of(attempt)]
    return _packed(kind, Lines().export(found, force_native_type=True))


def totals_as(kind: str, book: Book) -> bytes:
    """A row per student, two columns per exercise: the points, empty where there are none yet, and how far it is."""
    heads = [name for one in book.assignments for name in (one.exercise, f"{one.exercise}: state")]
    dataset = tablib.Dataset(headers=["class", "student", *heads, "points"])
    for row in book.rows:
        cells = [
            part for cell in row.cells for part in (cell.points.total if cell.graded else "", str(cell.stage.value))
        ]
        dataset.append([safe(book.of.name), safe(row.student.get_username()), *cells, row.total])
    return _packed(kind, dataset)


def _packed(kind: str, dataset: tablib.Dataset) -> bytes:
    dataset.title = "gradebook"
    packed = KINDS[kind].export_data(dataset)
    return packed if isinstance(packed, bytes) else packed.encode("utf-8-sig")  # or Excel reads another alphabet


def rows_of(file: bytes) -> Sequence[dict[str, str]]:
    """Each row of the file by column, as text; empty rows are left out. Raises NotAGradebook."""
    if len(file) > LARGEST:
        raise NotAGradebook(f"The file is larger than {LARGEST // 1_000_000} MB: export one class, and import that.")
    dataset = _unpacked(file)
    heads = [str(head or "").strip() for head in dataset.headers or []]
    if missing := [name for name in COLUMNS if name not in heads]:
        raise NotAGradebook(f"There is no column {', '.join(missing)}: edit a file that was exported here.")
    if len(dataset) > MOST:
        raise NotAGradebook(f"The file has more than {MOST:,} rows: import it in parts.")
    cells = (dict(zip(heads, row, strict=True)) for row in dataset)
    rows = [{name: field.clean(row) for name, field in COLUMNS.items()} for row in cells]
    return [row for row in rows if any(row.values())]


def _unpacked(file: bytes) -> tablib.Dataset:
    try:
        if file.startswith(b"PK"):
            _demand_small(file)
            return KINDS["xlsx"].create_dataset(file)
        text = file.decode("utf-8-sig")
        head = text.partition("\n")[0]
        return KINDS["csv"].create_dataset(text, delimiter=max(",;\t", key=head.count))
    except NotAGradebook:
        raise
    except UnicodeDecodeError as wrong:
        raise NotAGradebook(
            "This is neither a workbook nor text in UTF-8: save it as .xlsx or as CSV UTF-8."
        ) from wrong
    except Exception as wrong:  # whatever a library makes of somebody's file
        raise NotAGradebook("This file can’t be read: save it as .xlsx or as CSV, and choose it again.") from wrong


def _demand_small(file: bytes) -> None:
    """A small file may unpack into one that fills the memory."""
    with zipfile.ZipFile(io.BytesIO(file)) as packed:
        if sum(part.file_size for part in packed.infolist()) > UNPACKED:
            raise NotAGradebook("This workbook is too large: export one class, and import that.")
