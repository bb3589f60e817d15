"""Points, in whole numbers: the machine's, a person's instead of them, and what lateness takes off.

A check that a machine could not decide is never a zero: the grade is incomplete until a person gives points for it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from django.db.models import Prefetch

from exercises.handed.checks import Evidence, Outcome
from exercises.handed.exercise import there
from grading.models import Attempt, CheckResult, Counts, GradeChange, Judging, ReviewItem, State, Submission

OPEN = {Outcome.UNDECIDED.value, Outcome.INSTRUCTOR.value}  # nobody's points yet, until a person gives some
JUDGED = "judged"
WAITS = "The machine could not judge this: an instructor decides it."

# For `prefetch_related`, of attempts and of submissions: the points of many cost no query each, and answers,
# sentences and evidence (tens of kilobytes of one check) stay behind.
RESULTS = CheckResult.objects.defer("evidence", "sentence")


def _work(path: str = "") -> tuple[Any, ...]:
    return (
        Prefetch(f"{path}judgings", Judging.objects.filter(counts=True).defer("so_far")),
        Prefetch(f"{path}judgings__results", RESULTS),
        Prefetch(f"{path}review__items"),
    )


WORK = _work()
MADE = (Prefetch("made", Attempt.objects.defer("answers")), *_work("made__"))


@dataclass(frozen=True)
class Points:
    """Of one attempt. `person`: what people's points differ by from the machine's, None where nobody gave any;
    `late`: taken off; `complete`: nothing waits for a machine or a person.
    """

    machine: int
    person: int | None
    late: int
    total: int
    of: int
    complete: bool


NOTHING = Points(0, None, 0, 0, 0, complete=False)


def counted(attempt: Attempt) -> Judging | None:
    """The judging whose results are the attempt's."""
    return next((one for one in attempt.judgings.all() if one.counts), None)


def results_of(attempt: Attempt) -> list[CheckResult]:
    """Of the judging that counts; none while it waits or runs. Where it was parked, a check that it never came to
    stands there as not decided, so that an instructor can give its points.
    """
    judging = counted(attempt)
    if judging is None or judging.state in (State.WAITING, State.RUNNING):
        return []
    results = list(judging.results.all())
    return results if judging.state == State.DONE else [*results, *_missing(judging, results)]


def _missing(judging: Judging, results: Sequence[CheckResult]) -> list[CheckResult]:
    decided = {result.name for result in results}
    found = there(judging.attempt.submission.assignment.exercise)
    return [
        CheckResult(
            judging=judging,
            place=place,
            name=check.name,
            title=check.title,
            outcome=Outcome.UNDECIDED.value,
            points=0,
            of=check.points,
            sentence=WAITS,
            shown=check.shown.value,
            evidence=Evidence(WAITS).as_json(),
        )
        for place, check in enumerate(found.checks if found else ())
        if check.name not in decided
    ]


def items_of(attempt: Attempt) -> dict[str, ReviewItem]:
    """A person's points by check."""
    review = getattr(attempt, "review", None)
    return {} if review is None else {item.check_name: item for item in review.items.all()}


def given(result: CheckResult, item: ReviewItem | None) -> int:
    """A person's points where there are some, else the machine's. Checks may have become worth less since."""
    return result.points if item is None else min(item.points, result.of)


def points_of(attempt: Attempt) -> Points:
    """Lateness takes whole points, rounded in the student's favour."""
    results, items = results_of(attempt), items_of(attempt)
    if not results:
        return NOTHING
    machine, of = sum(result.points for result in results), sum(result.of for result in results)
    raw = sum(given(one, items.get(one.name)) for one in results)
    percent = min(100, attempt.late * attempt.submission.assignment.late_percent)
    late = raw * percent // 100
    complete = all(result.outcome not in OPEN or result.name in items for result in results)
    by_people = any(one.name in items for one in results)
    return Points(machine, raw - machine if by_people else None, late, raw - late, of, complete)


def counting(submission: Submission) -> Attempt | None:
    """The attempt whose points are the grade: the best (the earlier of two alike), or the last that was judged."""
    judged = [one for one in _in_order(submission) if results_of(one)]
    if not judged:
        return None
    if submission.assignment.counts == Counts.LAST:
        return judged[-1]
    return max(judged, key=lambda one: points_of(one).total)  # of equals the first


def grade_of(submission: Submission) -> Points:
    """Incomplete while another attempt than the counting one may still become the grade."""
    attempt = counting(submission)
    if attempt is None:
        return NOTHING
    points, made = points_of(attempt), _in_order(submission)
    if submission.assignment.counts == Counts.LAST:
        settled = attempt.pk == made[-1].pk
    else:
        settled = points.total == points.of or all(points_of(one).complete for one in made)
    return replace(points, complete=points.complete and settled)


def _in_order(submission: Submission) -> list[Attempt]:
    return sorted(submission.made.all(), key=lambda one: one.number)


def judged(judging: Judging, now: datetime) -> None:
    """The judge's entry in the history, in the transaction that wrote the results; and what people said is flagged
    where the machine says otherwise by now. A judging that does not count yet changes nothing.

    The judging's row is locked by then, and the attempt's after it: in this order everywhere.
    """
    if Judging.objects.filter(pk=judging.pk, counts=True).exists():
        said = GradeChange.objects.filter(attempt=judging.attempt_id, by=None, why=JUDGED).order_by("at", "pk")
        enter(judging, dict(said.values_list("what", "after")), JUDGED, None, now)


def enter(judging: Judging, before: dict[str, str], why: str, by: Any, now: datetime) -> None:
    """From what was said of each check to this judging's results, a row for each that is otherwise. The flags are
    set anew, under the attempt's row lock: an instructor may be giving points meanwhile.
    """
    Attempt.objects.select_for_update(of=("self",), no_key=True).get(pk=judging.attempt_id)
    new = {result.name: result for result in judging.results.all()}
    changes = [
        GradeChange(
            attempt_id=judging.attempt_id,
            what=name,
            before=before.get(name, ""),
            after=told(new.get(name)) or "nothing",
            why=why,
            by=by,
            at=now,
        )
        for name in dict.fromkeys([*before, *new])
        if before.get(name, "") != told(new.get(name))
    ]
    GradeChange.objects.bulk_create(changes)
    for item in ReviewItem.objects.filter(review__attempt=judging.attempt_id):
        item.disagrees = otherwise(item, new.get(item.check_name))
        item.save(update_fields=["disagrees"])


def otherwise(item: ReviewItem, says: CheckResult | None) -> bool:
    """Whether the machine says something else than when a person gave these points."""
    return says is None or (says.outcome, says.points, says.of) != (item.outcome, item.machine, item.of)


def told(result: CheckResult | None) -> str:
    """As the history has it: an open check shows no points, for it has none."""
    if result is None:
        return ""
    return result.outcome if result.outcome in OPEN else f"{result.points} of {result.of}, {result.outcome}"
