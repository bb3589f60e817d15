"""Handing in under a receipt of one's own choice: the same again, at once or much later, makes one attempt."""

import uuid
from datetime import datetime, timedelta

import pytest
from django.db import connection, transaction

from exercises.handed.answers import NotAnswers
from grading.handin import Refused, hand_in, standing
from grading.models import Attempt, Enrolment, Judging, Submission
from tests.fakes import Boxes, outcomes, wait_for_waiters
from tests.grading.school import DAY, DUE, MINUTE, NOON, OPENS, RIGHT, School, real_commits

pytestmark = pytest.mark.django_db
SECOND = timedelta(seconds=1)


def numbered(
    school: School, number: uuid.UUID, now: datetime = NOON, student: object = None, **changed: object
) -> Attempt:
    """Handed in under a receipt that the student has chosen."""
    given, whose = {**RIGHT, **changed}, student or school.student
    return hand_in(whose, school.assignment, given, now=now, through="form", receipt=number)


def test_the_same_receipt_again_is_the_attempt_that_was_made_whatever_the_rules_say_by_then():
    school, number = School(rules={"attempts": 1, "cooldown": 600}), uuid.uuid4()
    first = numbered(school, number)
    assert (first.receipt, first.received_at) == (number, NOON)
    for now in (NOON, NOON + SECOND, NOON + DAY, DUE + 30 * DAY):
        again = numbered(school, number, now)
        assert (again.pk, again.received_at) == (first.pk, NOON)
    assert standing(school.student, school.assignment, NOON + DAY).code == "no attempts left"
    assert standing(school.student, school.assignment, NOON).made == 1
    assert Judging.objects.count() == 1


def test_a_receipt_of_somebody_else_or_of_another_assignment_is_refused_and_not_told_whose():
    school, other, number = School(), School("Thursday"), uuid.uuid4()
    Enrolment.objects.create(of=other.of, student=school.student, since=OPENS)
    numbered(school, number)
    sentences = set()
    for there, student in ((school, school.enrolled("neighbour")), (other, other.student), (other, school.student)):
        with pytest.raises(Refused) as why:
            numbered(there, number, student=student)
        sentences.add((why.value.code, str(why.value)))
    assert sentences == {("receipt taken", "This receipt is taken: hand in under a fresh one.")}
    assert Attempt.objects.count() == Judging.objects.count() == 1


def test_other_answers_under_the_same_receipt_are_refused_and_not_lost_in_silence():
    school, number = School(), uuid.uuid4()
    numbered(school, number)
    with pytest.raises(Refused, match="Attempt 1 has this receipt, and other answers") as why:
        numbered(school, number, shelf=1)
    assert why.value.code == "other answers"
    with pytest.raises(NotAnswers):
        numbered(school, number, shelf="many")
    assert numbered(school, uuid.uuid4(), shelf=1).number == 2


def test_who_has_left_the_class_is_not_told_of_a_receipt_either():
    school, number = School(), uuid.uuid4()
    numbered(school, number)
    Enrolment.objects.filter(student=school.student).delete()
    with pytest.raises(Refused) as why:
        numbered(school, number)
    assert why.value.code == "stranger"


@real_commits
def test_the_same_receipt_twice_at_once_makes_one_attempt():
    """Both wait for the submission's row, beside another attempt of the same student's."""
    school, number = School(), uuid.uuid4()
    school.hand_in()
    with Boxes(3) as boxes:
        sends = [lambda one=one: numbered(school, one, NOON + MINUTE).pk for one in (number, number, uuid.uuid4())]
        made = boxes.run_behind(Submission.objects.get(), *sends)
    assert made[0] == made[1] != made[2]
    assert sorted(Attempt.objects.values_list("number", flat=True)) == [1, 2, 3]
    assert Judging.objects.count() == 3


@real_commits
def test_a_first_attempt_sent_four_times_at_once_is_one():
    school, number = School(), uuid.uuid4()
    with Boxes(4) as boxes:
        made = boxes.run(*[lambda: numbered(school, number).pk] * 4)
    assert made == [Attempt.objects.get().pk] * 4
    assert Judging.objects.count() == 1


@real_commits
def test_of_two_students_with_one_receipt_at_once_one_has_it_and_the_other_is_refused():
    """The second is seen to wait for the constraint, for the first has not committed yet."""
    school, number = School(), uuid.uuid4()
    neighbour = school.enrolled("neighbour")
    with Boxes(1) as boxes, connection.cursor() as cursor:
        school.hand_in(NOON)
        with transaction.atomic():
            cursor.execute("update grading_attempt set receipt = %s", [number])
            (later,) = boxes.start(lambda: numbered(school, number, student=neighbour))
            wait_for_waiters(1)
        (told,) = outcomes([later])
    assert (type(told), told.code) == (Refused, "receipt taken")
    assert Attempt.objects.get().submission.student == school.student
    assert Judging.objects.count() == 1
