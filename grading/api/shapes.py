"""What goes in and comes out, as `openapi.json` has it. Times are UTC, ISO 8601; points are whole numbers."""

from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from ninja import Schema
from pydantic import ConfigDict, Field


class Given(Schema):
    """An answer. A file of `manage.py judge` written as JSON may be sent as it is: its `exercise` is then checked."""

    model_config = ConfigDict(extra="forbid")

    answers: Any
    exercise: str | None = None


Words = Annotated[str, Field(max_length=20_000)]  # how much of it is taken, threads say themselves


class Question(Schema):
    model_config = ConfigDict(extra="forbid")

    check: Annotated[str, Field(max_length=40)]
    text: Words


class Post(Schema):
    model_config = ConfigDict(extra="forbid")

    text: Words


class StandingShape(Schema):
    """Null fields: any number of attempts, no wait. `code` is empty where an attempt would be taken now."""

    open: bool
    code: str
    why: str
    due: datetime
    closes: datetime
    zone: str
    made: int
    left: int | None
    not_before: datetime | None
    days_late: int


class AssignmentShape(Schema):
    """`standing` is null for whoever is not in the class: its instructors."""

    id: int
    class_name: str
    exercise: str
    title: str
    points: int
    opens_at: datetime
    standing: StandingShape | None


class ExerciseShape(AssignmentShape):
    """`statement` is Markdown; `answers_schema` is JSON Schema. Null before it opens."""

    statement: str | None
    answers_version: int
    answers_schema: dict[str, Any] | None


class Receipt(Schema):
    """What was acknowledged: it is in the database. `sha256` is of the answers as canonical JSON."""

    receipt: UUID
    assignment: int
    exercise: str
    class_name: str
    student: str
    number: int
    sha256: str
    received_at: datetime
    late: int
    through: str


class AttemptShape(Receipt):
    state: str


class CheckShape(Schema):
    """What is null is withheld, and `withheld` says until when."""

    name: str
    title: str
    of: int
    outcome: str | None
    sentence: str | None
    points: int | None
    reason: str | None
    evidence: dict[str, Any] | None
    withheld: str


class ChangeShape(Schema):
    what: str
    before: str
    after: str
    why: str
    by: str | None
    at: datetime


class SeenShape(AttemptShape):
    """`position`: in the queue, while it waits. `points` and what follows them are null until they are released."""

    doing: str
    position: int | None
    answers: dict[str, Any]
    checks: list[CheckShape]
    of: int
    points: int | None
    taken_off_for_lateness: int | None
    complete: bool | None
    comment: str | None
    changes: list[ChangeShape]
    versions: str


class PostShape(Schema):
    by: str
    text: str
    at: datetime


class ThreadShape(Schema):
    id: int
    receipt: UUID
    check: str
    open: bool
    opened_at: datetime
    posts: list[PostShape]


class Trouble(Schema):
    """Every answer that is no success. `problems`: a sentence by field, where fields are what is wrong."""

    code: str
    detail: str
    problems: dict[str, str] | None = None
