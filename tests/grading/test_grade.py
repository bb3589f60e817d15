"""Whole points: whose they are, what lateness takes off, which attempt counts, and what is not yet complete."""

import pytest

from grading import grade, queue, regrade, review
from grading.grade import counting, grade_of, points_of
from grading.models import Attempt, CheckResult, Counts, GradeChange, Submission
from tests.grading.school import (
    DAY,
    DUE,
    FAILED,
    INSTRUCTOR,
    MINUTE,
    NOON,
    PASSED,
    UNDECIDED,
    VERSIONS,
    WELL,
    Said,
    School,
    break_off,
    claimed,
    judge,
    told,
)

pytestmark = pytest.mark.django_db
FULL = {"boxes": Said(PASSED, 3, 3), "refused": Said(PASSED, 2, 2), "friday": Said(PASSED, 3, 3)}
POOR = {"boxes": Said(PASSED, 3, 3), "refused": Said(FAILED, 0, 2), "friday": Said(FAILED, 1, 3)}
OPEN = {"boxes": Said(PASSED, 3, 3), "refused": Said(UNDECIDED, 0, 2), "friday": Said(INSTRUCTOR, 0, 3)}


def fresh(attempt: Attempt) -> Attempt:
    return Attempt.objects.get(pk=attempt.pk)


def the_grade() -> grade.Points:
    return grade_of(Submission.objects.get())


def test_the_machines_points_are_the_sum_of_its_checks():
    assert points_of(School().judged()) == grade.Points(6, None, 0, 6, 8, complete=True)


def test_a_persons_points_stand_beside_the_machines_and_replace_nothing():
    school = School()
    attempt = school.judged()
    review.override(attempt, "refused", 1, "Half right.", by=school.teacher, now=NOON)
    points = points_of(fresh(attempt))
    assert (points.machine, points.person, points.total) == (6, 1, 7)
    assert [result.points for result in grade.results_of(fresh(attempt))] == [3, 0, 3]


def test_points_taken_away_are_a_persons_too():
    school = School()
    attempt = school.judged()
    review.override(attempt, "boxes", 0, "Copied.", by=school.teacher, now=NOON)
    assert (points_of(fresh(attempt)).person, points_of(fresh(attempt)).total) == (-3, 3)


@pytest.mark.parametrize(
    ("days", "percent", "late", "total"), [(0, 10, 0, 6), (1, 10, 0, 6), (2, 10, 1, 5), (3, 33, 5, 1), (4, 50, 6, 0)]
)
def test_lateness_takes_whole_points_rounded_in_the_students_favour(days, percent, late, total):
    """Of 6: 10 % is 0.6, 20 % is 1.2, 99 % is 5.94; it never takes more than there is."""
    school = School(rules={"late_days": 5, "late_percent": percent})
    attempt = school.judged(now=DUE + days * DAY)
    points = points_of(attempt)
    assert (points.late, points.total, points.machine) == (late, total, 6)


def test_lateness_is_taken_off_what_a_person_gave_too():
    school = School(rules={"late_days": 1, "late_percent": 50})
    attempt = school.judged(now=DUE + DAY)
    review.override(attempt, "refused", 2, "Right after all.", by=school.teacher, now=NOON)
    assert (points_of(fresh(attempt)).late, points_of(fresh(attempt)).total) == (4, 4)


# --- What is not decided -------------------------------------------------------------------------------------------


def test_an_attempt_that_waits_has_no_points_and_no_zero_either():
    school = School()
    assert points_of(school.hand_in()) == grade.NOTHING
    assert not the_grade().complete


def test_a_check_that_needs_an_instructor_leaves_the_grade_incomplete_until_one_decides():
    school = School()
    attempt = school.judged(OPEN)
    assert (points_of(attempt).total, the_grade().complete) == (3, False)
    review.override(attempt, "refused", 2, "Looked at it.", by=school.teacher, now=NOON)
    review.override(attempt, "friday", 0, "It is wrong.", by=school.teacher, now=NOON)
    assert not the_grade().complete
    review.override(attempt, "failure", 0, "It is no failure.", by=school.teacher, now=NOON)
    assert (the_grade().total, the_grade().complete) == (5, True)


def test_an_attempt_parked_before_any_check_spoke_can_be_given_points_and_is_complete_then():
    school = School()
    attempt = school.hand_in()
    break_off(attempt)
    assert (points_of(fresh(attempt)).of, the_grade().complete) == (12, False)
    for name in ("boxes", "refused", "friday", "failure"):
        review.override(attempt, name, 2, "By hand.", by=school.teacher, now=NOON)
    assert the_grade() == grade.Points(0, 8, 0, 8, 12, complete=True)


def test_a_parked_attempt_that_the_machine_judges_after_all_is_an_ordinary_one():
    school = School()
    attempt = school.judged({**FULL, "boxes": Said(UNDECIDED, 0, 3)})
    judging = attempt.judgings.get()
    assert (judging.state, the_grade().complete) == ("parked", False)
    assert review.again(judging, by=school.teacher, now=NOON + DAY)
    judge(attempt, FULL, NOON + DAY)
    assert (the_grade().total, the_grade().complete) == (8, True)
    history = [(row.before, row.after) for row in GradeChange.objects.filter(what="boxes").order_by("pk")]
    assert history == [("", "could not decide"), ("could not decide", "3 of 3, passed")]


# --- Which attempt -------------------------------------------------------------------------------------------------


def attempts_of(school: School, *says: dict[str, Said]) -> list[Attempt]:
    return [school.judged(one, NOON + number * MINUTE) for number, one in enumerate(says)]


def test_the_best_attempt_counts_and_of_two_alike_the_earlier():
    school = School()
    made = attempts_of(school, POOR, WELL, POOR, WELL)
    assert counting(Submission.objects.get()) == made[1]
    assert the_grade() == points_of(made[1])


def test_the_best_is_the_best_after_lateness():
    school = School(rules={"late_days": 1, "late_percent": 90})
    early = school.judged(WELL)
    school.judged(FULL, DUE + DAY)
    assert counting(Submission.objects.get()) == early


def test_the_last_attempt_counts_where_the_assignment_says_so():
    school = School(rules={"counts": Counts.LAST})
    made = attempts_of(school, FULL, POOR)
    assert counting(Submission.objects.get()) == made[1]
    assert (the_grade().total, the_grade().complete) == (4, True)


def test_where_the_last_counts_and_is_not_judged_yet_the_grade_is_incomplete():
    school = School(rules={"counts": Counts.LAST})
    school.judged(FULL)
    waits = school.hand_in(NOON + MINUTE)
    assert (the_grade().total, the_grade().complete) == (8, False)
    break_off(waits, NOON + MINUTE)
    assert (counting(Submission.objects.get()), the_grade().complete) == (waits, False)


def test_the_best_is_incomplete_while_another_may_be_better():
    school = School()
    attempts_of(school, WELL, OPEN)
    assert (the_grade().total, the_grade().complete) == (6, False)


def test_full_points_are_complete_whatever_else_waits():
    school = School()
    attempts_of(school, FULL, OPEN)
    school.hand_in(NOON + DAY)
    assert (the_grade().total, the_grade().complete) == (8, True)


def test_an_earlier_attempt_that_waits_takes_nothing_from_the_last():
    school = School(rules={"counts": Counts.LAST})
    attempts_of(school, OPEN, WELL)
    assert (the_grade().total, the_grade().complete) == (6, True)


def test_the_points_of_a_class_cost_no_query_each(django_assert_num_queries):
    school = School()
    for name in ("one", "two", "three"):
        attempt = school.judged(student=school.enrolled(name))
        review.override(attempt, "refused", 1, "Half.", by=school.teacher, now=NOON)
    rows = Attempt.objects.select_related("submission__assignment", "review").prefetch_related(*grade.WORK)
    with django_assert_num_queries(4):
        assert [points_of(one).total for one in rows] == [7, 7, 7]


# --- The judge's entries in the history ----------------------------------------------------------------------------


def test_the_judge_enters_what_each_check_gave_in_the_transaction_that_wrote_it():
    school = School()
    attempt = school.judged(now=NOON)
    entered = {row.what: (row.before, row.after, row.why, row.by) for row in attempt.changes.all()}
    assert entered == {
        "boxes": ("", "3 of 3, passed", "judged", None),
        "refused": ("", "0 of 2, failed", "judged", None),
        "friday": ("", "3 of 3, passed", "judged", None),
    }


def test_results_whose_history_can_not_be_written_are_not_there_either(monkeypatch):
    def broken(*_):
        raise RuntimeError("no history")

    school = School()
    school.hand_in()
    taken = claimed()
    monkeypatch.setattr(grade, "enter", broken)
    with pytest.raises(RuntimeError):
        queue.finish(taken, told(), VERSIONS, NOON)
    taken.refresh_from_db()
    assert (taken.state, taken.results.count()) == ("running", 0)


def test_a_regrade_that_does_not_count_yet_enters_nothing():
    school = School()
    attempt = school.judged()
    begun = regrade.begin([attempt], "one", "a wrong check", by=school.teacher, now=NOON)
    judge(attempt, FULL, NOON + DAY, begun)
    assert attempt.changes.count() == 3


def test_an_open_check_is_told_without_points():
    """It has none, and a nought would read as one."""
    row = CheckResult(outcome=INSTRUCTOR.value, points=0, of=3)
    assert (grade.told(row), grade.told(None)) == ("needs an instructor", "")
