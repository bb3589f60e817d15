"""Lateness is what the rules as they are now say of when it was received; each change of it is in the history."""

from itertools import cycle

import pytest

from grading.extension import extend
from grading.grade import points_of
from grading.handin import hand_in
from grading.lateness import reckoned_anew
from grading.models import Assignment, Attempt, GradeChange
from marlow.classroom import furnish
from tests.grading.school import DAY, DUE, MINUTE, NOON, RIGHT, School, person

pytestmark = pytest.mark.django_db
LATER = DUE + 20 * DAY


@pytest.fixture
def school() -> School:
    return School(rules={"late_days": 5, "late_percent": 50})


def history(school: School) -> list[tuple[str, str, str, object, object]]:
    rows = GradeChange.objects.filter(what="lateness", attempt__submission__assignment=school.assignment)
    return [(row.before, row.after, row.why, row.by, row.at) for row in rows]


def anew(attempt: Attempt) -> Attempt:
    return Attempt.objects.get(pk=attempt.pk)


def rules(school: School, **changed: object) -> int:
    """As the admin saves them. Returns how many attempts were charged otherwise."""
    given = Assignment.objects.get(pk=school.assignment.pk)
    with reckoned_anew([given], why="illness", by=school.teacher, now=LATER) as changes:
        Assignment.objects.filter(pk=given.pk).update(**changed)
    return len(changes)


def test_an_extension_given_after_the_work_was_handed_in_late_takes_nothing_off(school):
    attempt = school.judged(now=DUE + MINUTE)
    assert (attempt.late, points_of(attempt).late, points_of(attempt).total) == (1, 3, 3)
    extend(school.assignment, school.student, days=1, attempts=0, why="illness", by=school.teacher, now=LATER)
    assert (anew(attempt).late, points_of(anew(attempt)).total) == (0, 6)
    assert history(school) == [
        ("1 day late, 50 % off for each", "in time", "extension: illness", school.teacher, LATER)
    ]


def test_an_extension_is_one_student_s(school):
    others = school.judged(now=DUE + MINUTE, student=school.enrolled("neighbour"))
    extend(school.assignment, school.student, days=1, attempts=0, why="illness", by=school.teacher, now=LATER)
    assert (anew(others).late, history(school)) == (1, [])


def test_a_deadline_that_is_moved_reaches_what_was_received_and_only_that_assignment(school):
    early, late = school.judged(now=NOON), school.judged(now=DUE + DAY + MINUTE, student=school.enrolled("neighbour"))
    other = School("Thursday", rules={"late_days": 5})
    theirs = other.judged(now=DUE + MINUTE)
    assert rules(school, due_at=DUE + DAY) == 1
    assert [anew(one).late for one in (early, late, theirs)] == [0, 1, 1]
    ((before, after, *_),) = history(school)
    assert (before, after) == ("2 days late, 50 % off for each", "1 day late, 50 % off for each")
    assert rules(school, due_at=DUE + DAY) == 0
    assert len(history(school)) == 1


def test_a_deadline_that_is_moved_forward_charges_who_came_after_it(school):
    attempt = school.judged(now=DUE)
    rules(school, due_at=DUE - MINUTE)
    assert (anew(attempt).late, history(school)[0][:2]) == (1, ("in time", "1 day late, 50 % off for each"))


def test_what_lateness_costs_is_in_the_history_of_whom_it_costs_something(school):
    attempt, in_time = school.judged(now=DUE + MINUTE), school.judged(student=school.enrolled("neighbour"))
    assert rules(school, late_percent=10) == 1
    assert points_of(anew(attempt)).total == 6
    assert history(school)[0][:2] == ("1 day late, 50 % off for each", "1 day late, 10 % off for each")
    assert not in_time.changes.filter(what="lateness").exists()


def test_what_is_not_written_after_all_is_not_in_the_history(school):
    attempt = school.judged(now=DUE + MINUTE)

    def breaks_off() -> None:
        with reckoned_anew([school.assignment], why="x", by=school.teacher, now=LATER):
            Assignment.objects.update(due_at=LATER)
            raise InterruptedError

    with pytest.raises(InterruptedError):
        breaks_off()
    assert (anew(attempt).late, Assignment.objects.get().due_at, history(school)) == (1, DUE, [])


def test_the_demo_s_deadlines_move_as_any_other_does():
    """Staged again after them: what was late is in time, and its history says why."""
    student, instructor = person("student"), person("instructor", "Instructor")
    given = furnish(NOON).assignments.get(exercise="advisory")
    attempt = hand_in(student, given, RIGHT, now=given.due_at + MINUTE, through="form")
    furnish(given.due_at + DAY)
    assert (attempt.late, anew(attempt).late) == (1, 0)
    change = attempt.changes.get(what="lateness")
    assert (change.after, change.why, change.by) == ("in time", "the demo was staged anew", instructor)
    furnish(again := given.due_at + 60 * DAY)
    assert Assignment.objects.get(pk=given.pk).due_at > again, "and moves on every time"


def test_a_deadline_of_the_demo_that_somebody_changed_is_theirs():
    """Earlier or later, over or not, with attempts or without: staged again, it stays."""
    person("student"), person("instructor", "Instructor")
    of = furnish(NOON)
    dates = cycle([NOON + DAY, NOON + 20 * DAY, NOON + 5 * MINUTE])
    stands = {one.pk: due for one, due in zip(of.assignments.all(), dates, strict=False)}
    for pk, due in stands.items():
        Assignment.objects.filter(pk=pk).update(due_at=due)
    for later in (DAY, 30 * DAY, 90 * DAY):
        furnish(NOON + later)
        assert dict(of.assignments.values_list("pk", "due_at")) == stands
