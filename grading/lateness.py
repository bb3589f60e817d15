"""How late an attempt was, reckoned anew where its deadline or what lateness costs is changed after it was received.

Each change of it is in the history of the grade, in the transaction that changed the rule. Arbiter: the attempts' row
locks. One that is handed in at that very moment is charged by the rule that it met.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from django.db import transaction

from grading.deadline import days_late, due_for
from grading.models import Assignment, Attempt, Extension, GradeChange
from shop.words import count


@contextmanager
def reckoned_anew(
    assignments: Iterable[Assignment], *, student: Any = None, why: str, by: Any, now: datetime
) -> Iterator[list[GradeChange]]:
    """Around the change of a rule: of everybody's attempts, or of one student's. The list is filled at the end."""
    changes: list[GradeChange] = []
    which: dict[str, Any] = {"submission__assignment__in": [one.pk for one in assignments]}
    if student is not None:
        which["submission__student"] = student.pk
    with transaction.atomic():
        before = {attempt.pk: _words(attempt) for attempt in _locked(which)}
        yield changes
        extended = {(one.assignment_id, one.student_id): one for one in _extensions(which)}
        for attempt in _locked({**which, "pk__in": list(before)}):
            submission = attempt.submission
            extension = extended.get((submission.assignment_id, submission.student_id))
            due = due_for(submission.assignment, extension)
            attempt.late = days_late(due, attempt.received_at, submission.assignment.of.zone)
            attempt.save(update_fields=["late"])
            if (after := _words(attempt)) != before[attempt.pk]:
                said = {"before": before[attempt.pk], "after": after, "why": why[:400], "by": by, "at": now}
                changes.append(GradeChange(attempt=attempt, what="lateness", **said))
        GradeChange.objects.bulk_create(changes)


def _locked(which: dict[str, Any]) -> Iterable[Attempt]:
    rows = Attempt.objects.select_for_update(of=("self",), no_key=True).order_by("pk")
    return rows.filter(**which).select_related("submission__assignment__of")


def _extensions(which: dict[str, Any]) -> Iterable[Extension]:
    return Extension.objects.filter(**{path.removeprefix("submission__"): what for path, what in which.items()})


def _words(attempt: Attempt) -> str:
    if not attempt.late:
        return "in time"
    return f"{count(attempt.late, 'day')} late, {attempt.submission.assignment.late_percent} % off for each"
