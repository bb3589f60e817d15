"""Who begins, applies and drops a regrade, and that students stop none."""

import pytest
from django.core.exceptions import PermissionDenied

from grading import queue, regrade
from grading.models import Regrade
from grading.regrade import NotARegrade
from tests.fakes import Boxes
from tests.grading.anew import LATER, apply, begun, judged_anew, points
from tests.grading.school import School, person, real_commits

pytestmark = pytest.mark.django_db


def test_a_dropped_regrade_never_counts_and_is_not_judged():
    school = School()
    attempt = school.judged()
    made = begun(school, attempt)
    for _ in range(2):
        regrade.drop(made, by=school.teacher, now=LATER)
    assert queue.claim("box-a", LATER) is None
    with pytest.raises(NotARegrade, match="was dropped"):
        apply(school, made)
    assert points(attempt).machine == 6


def test_what_was_applied_is_not_dropped():
    school = School()
    made = judged_anew(school, school.judged())
    apply(school, made)
    with pytest.raises(NotARegrade, match="has been applied"):
        regrade.drop(made, by=school.teacher, now=LATER)


def test_a_student_can_not_stop_what_staff_began():
    """Nor begin, nor apply it; nor does a new attempt of theirs stop it."""
    school = School()
    attempt = school.judged()
    made = judged_anew(school, attempt)
    for verb in (
        lambda: regrade.drop(made, by=school.student, now=LATER),
        lambda: regrade.apply(made, by=school.student, now=LATER),
        lambda: regrade.begin([attempt], "mine", "I like it.", by=school.student, now=LATER),
    ):
        with pytest.raises(PermissionDenied, match="Only an instructor"):
            verb()
    school.hand_in(LATER)
    assert apply(school, made) == 1
    assert points(attempt).machine == 7


def test_nobody_of_another_class_or_role_regrades():
    school, other = School(), School("Thursday")
    attempt = school.judged()
    made = judged_anew(school, attempt)
    for stranger in (other.teacher, person("operator", "Operator")):
        with pytest.raises(PermissionDenied):
            regrade.apply(made, by=stranger, now=LATER)
        with pytest.raises(PermissionDenied):
            regrade.begin([attempt], "theirs", "So.", by=stranger, now=LATER)
    assert Regrade.objects.count() == 1


def test_a_regrade_is_of_one_class_of_something_and_for_a_reason():
    school, other = School(), School("Thursday")
    mine, theirs = school.judged(), other.judged()
    other.of.instructors.add(school.teacher)
    for attempts, why in (([], "So."), ([mine, theirs], "So."), ([mine], " "), ([mine], "\x00")):
        with pytest.raises(NotARegrade):
            begun(school, *attempts, why=why)
    assert not Regrade.objects.exists()


def test_the_same_asked_for_twice_is_begun_once():
    school = School()
    attempt = school.judged()
    made = begun(school, attempt)
    assert begun(school, attempt) == made
    assert begun(school, attempt, why="Another reason.") != made
    regrade.drop(made, by=school.teacher, now=LATER)
    assert begun(school, attempt) != made


@real_commits
def test_a_button_pressed_twice_at_once_begins_one():
    school = School()
    attempt = school.judged()
    with Boxes(2) as boxes:
        made = boxes.run_behind(school.of, *[lambda: begun(school, attempt).pk] * 2)
    assert len(set(made)) == Regrade.objects.count() == 1
    assert attempt.judgings.count() == 2
