"""Judged over again: rows are added, the difference is shown, then it counts, once; what people said stays."""

import pytest

from grading import queue, regrade, review
from grading.models import Attempt, CheckResult, ReviewItem
from grading.regrade import Difference, NotARegrade
from tests.fakes import Boxes
from tests.grading.anew import ANEW, LATER, apply, begun, judged_anew, points
from tests.grading.school import (
    DAY,
    NOON,
    PASSED,
    UNDECIDED,
    WELL,
    Said,
    School,
    break_off,
    claimed,
    judge,
    real_commits,
    told,
)

pytestmark = pytest.mark.django_db


# --- Before it counts ----------------------------------------------------------------------------------------------


def test_a_regrade_adds_a_judging_for_each_attempt_and_changes_nothing_that_counts():
    school = School()
    attempts = [school.judged(), school.judged(student=school.enrolled("neighbour"))]
    before = [points(one) for one in attempts]
    made = begun(school, *attempts)
    assert [one.judgings.filter(regrade=made, counts=False, state="waiting").count() for one in attempts] == [1, 1]
    judge(attempts[0], ANEW, LATER, made)
    assert [points(one) for one in attempts] == before
    assert regrade.waiting(made) == 1


def test_the_difference_is_shown_check_by_check_and_a_drop_is_flagged():
    school = School()
    attempt = school.judged()
    found = regrade.differences(judged_anew(school, attempt))
    assert found == [
        Difference(attempt, "boxes", "3 of 3, passed", "2 of 3, failed", drop=True, person=None, disagrees=False),
        Difference(attempt, "refused", "0 of 2, failed", "2 of 2, passed", drop=False, person=None, disagrees=False),
    ]


def test_the_difference_says_where_a_persons_points_survive_and_where_the_machine_disagrees():
    school = School()
    attempt = school.judged()
    review.override(attempt, "refused", 1, "Half.", by=school.teacher, now=NOON)
    of_refused = regrade.differences(judged_anew(school, attempt))[1]
    assert (of_refused.check, of_refused.person, of_refused.disagrees) == ("refused", 1, True)


def test_the_drops_come_first_whichever_attempt_they_are_of():
    """A page shows so many and no more: a drop is never what it leaves out."""
    school = School()
    attempts = [school.judged(), school.judged(student=school.enrolled("neighbour"))]
    made = begun(school, *attempts)
    judge(attempts[0], {**WELL, "refused": Said(PASSED, 2, 2)}, LATER, made)
    judge(attempts[1], ANEW, LATER, made)
    found = [(one.attempt, one.check, one.drop) for one in regrade.differences(made)]
    assert found == [
        (attempts[1], "boxes", True),
        (attempts[0], "refused", False),
        (attempts[1], "refused", False),
    ]


def test_the_same_verdict_is_no_difference():
    school = School()
    assert regrade.differences(judged_anew(school, school.judged(), WELL)) == []


def test_checks_that_came_and_went_are_differences():
    school = School()
    attempt = school.judged({"old": Said(PASSED, 2, 2)})
    review.override(attempt, "old", 1, "Half.", by=school.teacher, now=NOON)
    made = judged_anew(school, attempt, {"new": Said(PASSED, 3, 3)})
    told = [(one.check, one.before, one.after, one.drop, one.person) for one in regrade.differences(made)]
    assert told == [
        ("old", "2 of 2, passed", "nothing", True, None),
        ("new", "nothing", "3 of 3, passed", False, None),
    ]
    apply(school, made)
    assert points(attempt).total == 3
    assert ReviewItem.objects.get().disagrees


# --- Applying ------------------------------------------------------------------------------------------------------


def test_applied_the_new_results_count_and_the_old_ones_stay():
    school = School()
    attempt = school.judged()
    made = judged_anew(school, attempt)
    assert apply(school, made) == 1
    assert (points(attempt).machine, points(attempt).total) == (7, 7)
    assert attempt.judgings.get(counts=True).regrade == made
    assert CheckResult.objects.filter(judging__attempt=attempt).count() == 6
    made.refresh_from_db()
    assert (made.applied_by, made.applied_at, made.dropped_at) == (school.teacher, LATER, None)


def test_applying_is_in_the_history_with_who_and_why():
    school = School()
    attempt = school.judged()
    apply(school, judged_anew(school, attempt, why="The oracle was wrong."))
    rows = attempt.changes.exclude(by=None).order_by("pk")
    assert [(row.what, row.before, row.after, row.why, row.by, row.at) for row in rows] == [
        ("boxes", "3 of 3, passed", "2 of 3, failed", "regrade: The oracle was wrong.", school.teacher, LATER),
        ("refused", "0 of 2, failed", "2 of 2, passed", "regrade: The oracle was wrong.", school.teacher, LATER),
    ]


def test_a_persons_points_survive_and_are_flagged_where_the_machine_disagrees_by_now():
    school = School()
    attempt = school.judged()
    review.override(attempt, "refused", 1, "Half.", by=school.teacher, now=NOON)
    review.override(attempt, "friday", 2, "A slip.", by=school.teacher, now=NOON)
    review.comment(attempt, "Good.", by=school.teacher, now=NOON)
    apply(school, judged_anew(school, attempt))
    items = {item.check_name: (item.points, item.disagrees) for item in ReviewItem.objects.all()}
    assert items == {"refused": (1, True), "friday": (2, False)}
    assert (points(attempt).machine, points(attempt).total) == (7, 5)
    assert Attempt.objects.get(pk=attempt.pk).review.comment == "Good."


def test_points_of_a_check_that_became_worth_less_are_no_more_than_it_can_give():
    school = School()
    attempt = school.judged()
    review.override(attempt, "boxes", 3, "All of it.", by=school.teacher, now=NOON)
    apply(school, judged_anew(school, attempt, {**WELL, "boxes": Said(PASSED, 2, 2)}))
    assert (points(attempt).total, points(attempt).of) == (5, 7)
    assert ReviewItem.objects.get().disagrees


def test_it_is_applied_once():
    school = School()
    attempt = school.judged()
    made = judged_anew(school, attempt)
    assert [apply(school, made), apply(school, made)] == [1, 0]
    assert attempt.changes.exclude(by=None).count() == 2


@real_commits
def test_two_who_apply_at_once_apply_it_once():
    school = School()
    attempt = school.judged()
    made = judged_anew(school, attempt)
    with Boxes(2) as boxes:
        done = boxes.run_behind(made, *[lambda: apply(school, made)] * 2)
    assert sorted(done) == [0, 1]
    assert attempt.changes.exclude(by=None).count() == 2


@real_commits
def test_one_who_applies_and_one_who_drops_at_once_never_both_succeed():
    school = School()
    attempt = school.judged()
    made = judged_anew(school, attempt)
    with Boxes(2) as boxes:
        done = boxes.run_behind(
            made, lambda: apply(school, made), lambda: regrade.drop(made, by=school.teacher, now=LATER)
        )
    assert [type(one) for one in done].count(NotARegrade) == 1
    made.refresh_from_db()
    assert (made.applied_at is None) != (made.dropped_at is None)
    assert attempt.judgings.get(counts=True).regrade == (made if made.applied_at else None)


def test_it_is_not_applied_while_some_of_it_is_still_to_be_judged():
    school = School()
    made = begun(school, school.judged())
    with pytest.raises(NotARegrade, match="1 of it are still to be judged"):
        apply(school, made)


def test_an_attempt_that_the_machine_could_not_judge_again_keeps_its_points_and_costs_as_before():
    school = School()
    attempt = school.judged()
    made = judged_anew(school, attempt, {**ANEW, "refused": Said(UNDECIDED, 0, 2)})
    before = points(attempt)
    assert (regrade.parked(made), regrade.differences(made)) == (1, [])
    assert apply(school, made) == 0
    assert points(attempt) == before
    assert Attempt.objects.get().costs


def test_an_attempt_that_was_parked_gets_its_points_from_a_regrade():
    school = School()
    attempt = school.hand_in()
    break_off(attempt)
    apply(school, judged_anew(school, attempt))
    assert (points(attempt).total, points(attempt).complete) == (7, True)


@real_commits
def test_points_given_while_it_is_applied_know_the_new_results_or_are_flagged():
    school = School()
    attempt = school.judged()
    made = judged_anew(school, attempt)
    with Boxes(2) as boxes:
        done = boxes.run_behind(
            attempt,
            lambda: apply(school, made),
            lambda: review.override(attempt, "boxes", 1, "So.", by=school.teacher, now=LATER).pk,
        )
    item = ReviewItem.objects.get()
    assert done == [1, item.pk]
    assert item.disagrees == (item.machine != 2)


# --- Which one wins ------------------------------------------------------------------------------------------------


def test_of_two_regrades_the_one_asked_for_later_wins_whichever_is_applied_last():
    school = School()
    attempt = school.judged()
    older = begun(school, attempt, why="First.")
    newer = begun(school, attempt, why="Second.")
    judge(attempt, ANEW, LATER, older)
    full = {**ANEW, "boxes": Said(PASSED, 3, 3)}
    judge(attempt, full, LATER, newer)
    assert apply(school, newer) == 1
    assert regrade.differences(older) == []
    assert apply(school, older) == 0
    assert points(attempt).machine == 8


def test_a_first_judging_that_ends_after_a_regrade_was_applied_changes_nothing():
    """The regrade was asked for later: the late one is kept, counts for nothing and enters no history."""
    school = School()
    attempt = school.hand_in()
    first = claimed()
    made = begun(school, attempt)
    judge(attempt, ANEW, LATER, made)
    assert apply(school, made) == 1
    entered = attempt.changes.count()
    assert queue.finish(first, told(), {}, LATER) is True
    assert (points(attempt).machine, attempt.changes.count()) == (7, entered)


def test_a_judging_that_nobody_asks_for_any_more_is_not_tried_again():
    """Its results are what was said then, and stay."""
    school = School()
    attempt = school.hand_in()
    parked = break_off(attempt)
    made = judged_anew(school, attempt)
    apply(school, made)
    assert not review.again(parked, by=school.teacher, now=LATER)
    dropped = judged_anew(school, attempt, {**ANEW, "boxes": Said(UNDECIDED, 0, 3)}, why="Once more.")
    judging = dropped.judgings.get()
    assert review.again(judging, by=school.teacher, now=LATER)
    assert Attempt.objects.get().costs
    judge(attempt, {**ANEW, "boxes": Said(UNDECIDED, 0, 3)}, LATER + DAY, dropped)
    regrade.drop(dropped, by=school.teacher, now=LATER)
    assert not review.again(judging, by=school.teacher, now=LATER)
