"""Regrades of a school's attempts, begun by its instructor and judged by the queue."""

from grading import grade, regrade
from grading.models import Attempt, Regrade
from tests.grading.school import DAY, FAILED, NOON, PASSED, Said, School, judge

# Otherwise than WELL: the first drops by one, the second rises by two, the third is the same.
ANEW = {"boxes": Said(FAILED, 2, 3), "refused": Said(PASSED, 2, 2), "friday": Said(PASSED, 3, 3)}
LATER = NOON + DAY


def begun(school: School, *attempts: Attempt, why: str = "A check was wrong.") -> Regrade:
    return regrade.begin(attempts, "the advisory lock", why, by=school.teacher, now=LATER)


def judged_anew(
    school: School, attempt: Attempt, says: dict[str, Said] | None = None, why: str = "Wrong."
) -> Regrade:
    made = begun(school, attempt, why=why)
    judge(attempt, says or ANEW, LATER, made)
    return made


def points(attempt: Attempt) -> grade.Points:
    return grade.points_of(Attempt.objects.get(pk=attempt.pk))


def apply(school: School, made: Regrade) -> int:
    return regrade.apply(made, by=school.teacher, now=LATER)
