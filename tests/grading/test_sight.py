"""What each role sees of somebody's work: rows, checks, points and evidence, before and after each moment."""

from dataclasses import replace

import pytest
from django.contrib.auth.models import AnonymousUser

from exercises.handed.checks import Shown
from exercises.handed.exercise import Exercise, exercise
from grading import queue, regrade, review, sight, threads
from grading.extension import extend
from grading.models import Attempt, Enrolment
from grading.sight import LATER, NEVER, WITH_RELEASE, NotYours, seen
from tests.grading.school import (
    AFTER,
    DAY,
    DUE,
    FAILED,
    MINUTE,
    NOON,
    OPENS,
    PASSED,
    WELL,
    Said,
    School,
    break_off,
    judge,
    person,
)

pytestmark = pytest.mark.django_db
LISTS = [sight.classes, sight.assignments, sight.submissions, sight.attempts, sight.judgings, sight.threads]
MIXED = {
    "open": Said(PASSED, 3, 3),
    "later": Said(FAILED, 1, 2, Shown.AFTERWARDS),
    "secret": Said(FAILED, 0, 4, Shown.HIDDEN),
}


def counts(viewer) -> list[int]:
    """How many rows of each list this person sees."""
    return [rows(viewer).count() for rows in LISTS]


def worked() -> School:
    """A judged attempt with a thread, in a class beside another."""
    school = School()
    attempt = school.judged(MIXED)
    threads.open_thread(attempt, "open", "Why?", by=school.student, now=NOON)
    return school


def the_attempt(school: School):
    return sight.attempts(school.teacher).get()


# --- Rows ----------------------------------------------------------------------------------------------------------


def test_a_student_sees_their_own_rows_and_an_instructor_those_of_the_class():
    school = worked()
    school.judged(student=school.enrolled("neighbour"))
    assert counts(school.student) == [1, 1, 1, 1, 1, 1]
    assert counts(school.teacher) == [1, 1, 2, 2, 2, 1]
    assert counts(person("root", is_superuser=True)) == [1, 1, 2, 2, 2, 1]


def test_another_student_of_the_class_sees_the_class_and_none_of_the_work():
    school = worked()
    assert counts(school.enrolled("neighbour")) == [1, 1, 0, 0, 0, 0]


def test_whoever_is_not_of_the_class_sees_nothing():
    school, other = worked(), School("Thursday")
    assert counts(other.student) == counts(other.teacher) == [1, 1, 0, 0, 0, 0]
    assert not sight.classes(other.teacher).filter(pk=school.of.pk).exists()
    for viewer in (person("operator", "Operator"), person("teacher-of-none", "Instructor"), AnonymousUser()):
        assert counts(viewer) == [0] * 6


def test_who_left_the_class_sees_nothing_of_it_and_the_instructor_still_does():
    school = worked()
    Enrolment.objects.filter(student=school.student).delete()
    assert counts(school.student) == [0] * 6
    assert counts(school.teacher) == [1] * 6


@pytest.mark.parametrize("role", ["student", "teacher", "root"])
def test_an_account_that_was_deactivated_sees_nothing(role):
    school = worked()
    viewer = {
        "student": school.student,
        "teacher": school.teacher,
        "root": person("root", is_superuser=True),
    }[role]
    attempt = the_attempt(school)
    viewer.is_active = False
    assert counts(viewer) == [0] * 6
    with pytest.raises(NotYours):
        seen(viewer, attempt, AFTER)


def test_somebody_who_learns_in_one_class_and_teaches_another_has_each_role_in_its_place():
    school, other = worked(), School("Thursday")
    both = school.enrolled("assistant")
    other.of.instructors.add(both)
    other.judged()
    assert counts(both) == [2, 2, 1, 1, 1, 0]
    with pytest.raises(NotYours):
        seen(both, the_attempt(school), AFTER)
    assert seen(both, the_attempt(other), NOON).teaching


def test_a_person_twice_in_a_class_sees_each_row_once():
    """Enrolled and teaching, beside many others: no row is doubled by a join."""
    school = worked()
    Enrolment.objects.create(of=school.of, student=school.teacher, since=NOON)
    for name in ("one", "two", "three"):
        school.of.instructors.add(school.enrolled(name))
    assert counts(school.teacher) == [1] * 6


@pytest.mark.parametrize("who", ["neighbour", "other student", "other teacher", "operator", "anonymous", "left"])
def test_nobody_else_is_shown_an_attempt(who):
    school, other = worked(), School("Thursday")
    attempt = the_attempt(school)
    review.release(school.assignment, by=school.teacher, now=NOON)
    if who == "left":
        Enrolment.objects.filter(student=school.student).delete()
    viewer = {
        "neighbour": lambda: school.enrolled("neighbour"),
        "other student": lambda: other.student,
        "other teacher": lambda: other.teacher,
        "operator": lambda: person("operator", "Operator"),
        "anonymous": AnonymousUser,
        "left": lambda: school.student,
    }[who]()
    with pytest.raises(NotYours, match="somebody else"):
        seen(viewer, attempt, AFTER)


# --- Checks, points and evidence -----------------------------------------------------------------------------------


def of_student(school: School, now) -> sight.Seen:
    return seen(school.student, the_attempt(school), now)


def told(check) -> list[bool]:
    """Whether outcome, sentence, points and evidence of a check are there."""
    return [part is not None for part in (check.outcome, check.sentence, check.points, check.evidence)]


def by_name(shown: sight.Seen) -> dict[str, list[bool]]:
    return {check.name: told(check) for check in shown.checks}


NOTHING, WITHOUT_POINTS, ALL = [False] * 4, [True, True, False, True], [True] * 4


def test_before_the_deadline_a_student_sees_what_is_shown_always_and_no_points():
    shown = of_student(worked(), NOON)
    assert by_name(shown) == {"open": WITHOUT_POINTS, "later": NOTHING, "hidden-2": NOTHING}
    assert [check.withheld for check in shown.checks] == ["", LATER, WITH_RELEASE]
    assert (shown.points, shown.late, shown.complete, shown.comment, shown.changes) == (None, None, None, None, ())
    assert (shown.of, shown.teaching, shown.released) == (9, False, False)


def test_the_deadlines_own_moment_is_before_it():
    school = worked()
    assert by_name(of_student(school, DUE))["later"] == NOTHING
    assert by_name(of_student(school, DUE + MINUTE))["later"] == WITHOUT_POINTS


def test_what_is_shown_afterwards_waits_until_nobody_s_late_work_is_taken_any_more():
    """Who has handed in could tell who still may."""
    school = School(rules={"late_days": 2})
    school.judged(MIXED)
    assert by_name(of_student(school, DUE + 2 * DAY))["later"] == NOTHING
    assert by_name(of_student(school, DUE + 2 * DAY + MINUTE))["later"] == WITHOUT_POINTS


def test_what_is_asked_is_read_by_students_from_the_opening_on_and_by_instructors_before():
    school = School()
    for viewer, early in ((school.student, False), (school.teacher, True), (person("root", is_superuser=True), True)):
        assert sight.reads(viewer, school.assignment, OPENS - MINUTE) is early
        assert sight.reads(viewer, school.assignment, OPENS)


def test_after_the_deadline_a_student_sees_all_but_the_hidden_and_no_points():
    shown = of_student(worked(), AFTER)
    assert by_name(shown) == {"open": WITHOUT_POINTS, "later": WITHOUT_POINTS, "hidden-2": NOTHING}
    assert (shown.points, shown.comment, shown.changes) == (None, None, ())


def test_the_deadline_is_the_students_own():
    """Who was given two more days may not see what the others see, to hand it in then."""
    school = worked()
    extend(school.assignment, school.student, days=2, attempts=0, why="a fever", by=school.teacher, now=NOON)
    assert by_name(of_student(school, DUE + DAY))["later"] == NOTHING
    assert by_name(of_student(school, DUE + 2 * DAY + MINUTE))["later"] == WITHOUT_POINTS


def test_an_assignment_may_keep_what_the_checks_said_until_the_deadline():
    school = worked()
    type(school.assignment).objects.update(checks_before_due=False)
    assert by_name(of_student(school, NOON)) == {"open": NOTHING, "later": NOTHING, "hidden-2": NOTHING}
    assert by_name(of_student(school, AFTER))["open"] == WITHOUT_POINTS


def test_with_the_release_a_student_sees_the_points_and_of_the_hidden_no_evidence():
    school = worked()
    attempt = the_attempt(school)
    review.override(attempt, "later", 2, "Well argued.", by=school.teacher, now=NOON)
    review.comment(attempt, "Good.", by=school.teacher, now=NOON)
    review.release(school.assignment, by=school.teacher, now=NOON)
    shown = of_student(school, NOON)
    assert by_name(shown) == {"open": ALL, "later": ALL, "secret": [True, False, True, False]}
    secret = shown.check("secret")
    assert (secret.outcome, secret.points, secret.withheld) == ("failed", 0, NEVER)
    assert (shown.points, shown.of, shown.late, shown.complete, shown.comment) == (5, 9, 0, True, "Good.")
    assert (shown.check("later").machine, shown.check("later").reason) == (1, "Well argued.")
    assert {change.what for change in shown.changes} == {"open", "later", "secret", "comment"}


def test_a_release_that_is_taken_back_hides_everything_again():
    school = worked()
    before = of_student(school, NOON)
    review.release(school.assignment, by=school.teacher, now=NOON)
    review.take_back(school.assignment, by=school.teacher, now=NOON)
    assert of_student(school, NOON) == before


def test_the_release_of_one_assignment_shows_no_other():
    school, other = worked(), School("Thursday")
    review.release(other.assignment, by=other.teacher, now=NOON)
    assert of_student(school, NOON).points is None


@pytest.mark.parametrize("role", ["teacher", "root"])
def test_an_instructor_sees_everything_at_any_time(role):
    school = worked()
    viewer = school.teacher if role == "teacher" else person("root", is_superuser=True)
    shown = seen(viewer, the_attempt(school), NOON)
    assert by_name(shown) == {"open": ALL, "later": ALL, "secret": ALL}
    assert (shown.points, shown.complete, shown.teaching, shown.released) == (4, True, True, False)
    assert len(shown.changes) == 3


def test_nothing_of_a_hidden_check_but_its_weight_is_anywhere_in_what_a_student_sees():
    """Its name, title, sentence and evidence, its machine's points and its history, before the release."""
    text = repr(of_student(worked(), AFTER))
    assert "secret" not in text
    assert "the evening of later" in text


def test_the_version_of_the_checks_and_the_seed_are_shown():
    assert of_student(worked(), NOON).versions == "checks 1 (0123456789abcdef), Marlow 0.1.0, seed 7"


# --- While it is judged, and judged again --------------------------------------------------------------------------


def test_an_attempt_that_waits_shows_its_place_in_the_queue_and_what_it_can_give():
    school = School()
    school.hand_in(student=school.enrolled("neighbour"))
    attempt = school.hand_in(NOON + MINUTE)
    shown = seen(school.student, attempt, NOON + MINUTE)
    assert (shown.state, shown.position, shown.checks, shown.points, shown.of) == ("waiting", 2, [], None, 12)


def test_an_attempt_that_was_parked_shows_no_zero():
    school = School()
    attempt = school.hand_in()
    break_off(attempt)
    shown = seen(school.student, the_attempt(school), NOON)
    assert (shown.state, [check.outcome for check in shown.checks]) == ("parked", ["could not decide"] * 4)
    review.release(school.assignment, by=school.teacher, now=NOON)
    assert of_student(school, NOON).complete is False


def test_a_regrade_that_is_not_applied_is_invisible_to_the_student():
    school = worked()
    attempt = the_attempt(school)
    review.release(school.assignment, by=school.teacher, now=NOON)
    before = of_student(school, AFTER)
    begun = regrade.begin([attempt], "one attempt", "a check was wrong", by=school.teacher, now=NOON)
    judge(attempt, WELL, NOON + DAY, begun)
    assert of_student(school, AFTER) == before
    assert [one.regrade for one in sight.judgings(school.student)] == [None]
    assert sight.judgings(school.teacher).count() == 2
    regrade.apply(begun, by=school.teacher, now=AFTER)
    assert set(by_name(of_student(school, AFTER))) == {"boxes", "refused", "friday"}
    assert [one.regrade for one in sight.judgings(school.student)] == [begun]


def test_what_the_judge_noted_for_instructors_is_nowhere_in_what_a_student_sees():
    school = School()
    break_off(school.hand_in())
    assert "The desk stopped." not in repr(of_student(school, AFTER))


def test_a_student_is_not_told_which_hidden_check_is_at_work(monkeypatch: pytest.MonkeyPatch) -> None:
    school = School()
    attempt = school.hand_in()
    judging = queue.claim("box-a", NOON)
    assert judging is not None
    assert queue.renew(judging, NOON, "What nobody should know")
    attempt = Attempt.objects.get(pk=attempt.pk)
    assert seen(school.student, attempt, NOON).doing == "What nobody should know"
    hidden = [replace(check, shown=Shown.HIDDEN) for check in exercise("advisory").checks]
    monkeypatch.setattr(Exercise, "checks", hidden)
    assert seen(school.student, attempt, NOON).doing == ""
    assert seen(school.teacher, attempt, NOON).doing == "What nobody should know"
