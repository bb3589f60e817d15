"""More days or more attempts for one student. Arbiter: `extended_once`; the last one given is the one that stands."""

from datetime import datetime
from typing import Any

from grading.lateness import reckoned_anew
from grading.models import Assignment, Extension
from grading.sight import demand_teaches

MOST_DAYS, MOST_ATTEMPTS, LONGEST = 366, 1000, 200


class NotAnExtension(ValueError):
    """It can't be given like this. `problems`: how it can, by field (student, days, attempts, why)."""

    def __init__(self, problems: dict[str, str]) -> None:
        super().__init__(" ".join(problems.values()))
        self.problems = problems


def extend(
    assignment: Assignment, student: Any, *, days: int, attempts: int, why: str, by: Any, now: datetime
) -> Extension:
    """Instead of what they were given before; also for what was received already. Raises NotYours, NotAnExtension."""
    demand_teaches(by, assignment.of)
    why = allowed(assignment, student, days, attempts, why)
    with reckoned_anew([assignment], student=student, why=f"extension: {why}", by=by, now=now):
        given, _ = Extension.objects.update_or_create(
            assignment=assignment,
            student=student,
            defaults={"days": days, "attempts": attempts, "why": why, "given_by": by, "at": now},
        )
    return given


def allowed(assignment: Assignment, student: Any, days: int, attempts: int, why: str) -> str:
    """The reason as it will be written. Raises NotAnExtension."""
    why = why.replace("\x00", "").strip()[:LONGEST]
    problems = {}
    if not why:
        problems["why"] = "Say why: somebody else may ask."
    if not 0 <= days <= MOST_DAYS:
        problems["days"] = f"Give from 0 to {MOST_DAYS} days."
    if not 0 <= attempts <= MOST_ATTEMPTS:
        problems["attempts"] = f"Give from 0 to {MOST_ATTEMPTS} attempts."
    if not assignment.of.enrolments.filter(student=student.pk).exists():
        problems["student"] = f"{student} is not in {assignment.of}: enrol them first."
    if problems:
        raise NotAnExtension(problems)
    return why
