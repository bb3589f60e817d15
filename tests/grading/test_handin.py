"""What is taken, what is refused and why, and that what was acknowledged is there."""

import json
import uuid
from datetime import UTC, datetime, timedelta
from hashlib import sha256

import pytest
from django.db import connection, transaction

from exercises.handed.answers import NotAnswers
from grading import nudge, queue
from grading.extension import NotAnExtension, extend
from grading.handin import NoReceipt, Refused, hand_in, receipt, standing
from grading.models import Attempt, Enrolment, Extension, Judging, Submission
from grading.sight import NotYours
from tests.fakes import Boxes
from tests.grading.school import DAY, DUE, MINUTE, NOON, OPENS, RIGHT, School, break_off, judge, person, real_commits

pytestmark = pytest.mark.django_db
SECOND = timedelta(seconds=1)


def refused(school: School, now: datetime = NOON, student: object = None) -> Refused:
    with pytest.raises(Refused) as why:
        school.hand_in(now, student)
    return why.value


# --- What is kept, and the receipt ---------------------------------------------------------------------------------


def test_an_attempt_is_kept_with_its_receipt_and_waits_to_be_judged():
    school = School()
    attempt = school.hand_in()
    kept = Attempt.objects.get(pk=attempt.pk)
    canonical = json.dumps(RIGHT, sort_keys=True, separators=(",", ":"))
    assert (kept.number, kept.received_at, kept.through, kept.late) == (1, NOON, "form", 0)
    assert (kept.answers, kept.answers_version) == (RIGHT, 2)
    assert kept.sha256 == sha256(canonical.encode()).hexdigest()
    judging = kept.judgings.get()
    assert (judging.state, judging.counts, queue.position(judging)) == ("waiting", True, 1)


def test_a_receipt_can_be_looked_up_by_its_owner_and_the_class_instructor_alone():
    school, other = School(), School("Thursday")
    attempt = school.hand_in()
    for viewer in (school.student, school.teacher, person("root", is_superuser=True)):
        found = receipt(viewer, str(attempt.receipt))
        assert (found.number, found.sha256, found.received_at) == (1, attempt.sha256, NOON)
    for viewer in (other.student, other.teacher, school.enrolled("neighbour"), person("operator", "Operator")):
        with pytest.raises(NoReceipt):
            receipt(viewer, attempt.receipt)


@pytest.mark.parametrize("number", ["", "1", "x" * 5000, "\x00", None, uuid.UUID(int=0)])
def test_a_receipt_that_was_never_given_is_not_found(number):
    with pytest.raises(NoReceipt, match="as it was shown"):
        receipt(School().student, number)


@real_commits
def test_it_is_acknowledged_only_after_the_commit():
    """Within somebody's transaction it refuses, for an acknowledgement could be rolled back with it."""
    school = School()
    with pytest.raises(RuntimeError, match="durable"), transaction.atomic():
        school.hand_in()
    assert not Attempt.objects.exists()
    attempt = school.hand_in()
    with Boxes(1) as boxes:
        assert boxes.run(lambda: receipt(school.student, attempt.receipt).pk) == [attempt.pk]


@real_commits
def test_a_commit_that_fails_acknowledges_nothing():
    """A constraint that is checked at the very end refuses the row: the student is told no number."""
    school = School()
    with connection.cursor() as cursor:
        cursor.execute(
            "create function refuse() returns trigger language plpgsql as "
            "$$ begin raise 'the disk is full' using errcode = '53100'; end $$"
        )
        cursor.execute(
            "create constraint trigger refuses after insert on grading_attempt "
            "deferrable initially deferred for each row execute function refuse()"
        )
    try:
        with pytest.raises(Exception, match="the disk is full"):
            school.hand_in()
        assert not Attempt.objects.exists()
        assert not Judging.objects.exists()
    finally:
        with connection.cursor() as cursor:
            cursor.execute("drop trigger refuses on grading_attempt; drop function refuse()")
    assert school.hand_in().number == 1


@real_commits
def test_a_broker_that_is_down_loses_no_attempt(settings, monkeypatch, caplog):
    def away(*_, **__):
        raise ConnectionRefusedError("no broker")

    monkeypatch.setattr(nudge, "_sender", away)
    school = School()
    attempt = school.hand_in()
    assert receipt(school.student, attempt.receipt) == attempt
    assert attempt.judgings.get().state == "waiting"
    assert "it will be judged when one looks" in caplog.text


# --- Numbers -------------------------------------------------------------------------------------------------------


def test_attempts_are_numbered_for_each_student_and_assignment():
    school = School()
    neighbour = school.enrolled("neighbour")
    numbers = [school.hand_in(NOON + n * MINUTE).number for n in range(3)]
    assert numbers == [1, 2, 3]
    assert school.hand_in(NOON, neighbour).number == 1


@real_commits
def test_two_uploads_at_once_both_get_a_number():
    """Both are seen to wait for the submission's row; neither is lost, and no number is given twice."""
    school = School()
    school.hand_in()
    row = Submission.objects.get()
    with Boxes(2) as boxes:
        made = boxes.run_behind(row, *[lambda: school.hand_in(NOON + MINUTE).number] * 2)
    assert sorted(made) == [2, 3]
    assert sorted(Attempt.objects.values_list("number", flat=True)) == [1, 2, 3]


@real_commits
def test_two_first_uploads_at_once_make_one_submission():
    school = School()
    with Boxes(4) as boxes:
        made = boxes.run(*[lambda: school.hand_in().number] * 4)
    assert sorted(made) == [1, 2, 3, 4]
    assert Submission.objects.count() == 1


@real_commits
def test_two_uploads_at_once_do_not_share_the_last_attempt():
    school = School(rules={"attempts": 2})
    school.hand_in()
    with Boxes(2) as boxes:
        made = boxes.run_behind(Submission.objects.get(), *[lambda: school.hand_in(NOON + MINUTE).number] * 2)
    assert [one for one in made if isinstance(one, int)] == [2]
    assert [one.code for one in made if isinstance(one, Refused)] == ["no attempts left"]


# --- Who and when --------------------------------------------------------------------------------------------------


def test_who_is_not_in_the_class_hands_nothing_in():
    school, other = School(), School("Thursday")
    for stranger in (other.student, school.teacher, person("operator", "Operator")):
        assert refused(school, student=stranger).code == "stranger"
    Enrolment.objects.filter(student=school.student).delete()
    assert refused(school).code == "stranger"
    assert not Submission.objects.exists()


def test_an_account_that_was_deactivated_hands_nothing_in():
    school = School()
    school.student.is_active = False
    assert refused(school).code == "stranger"


def test_nothing_is_taken_before_it_opens():
    school = School()
    assert refused(school, OPENS - SECOND).code == "not open yet"
    assert school.hand_in(OPENS).number == 1


def test_nothing_is_taken_after_the_deadline_where_no_late_days_are_given():
    school = School()
    assert school.hand_in(DUE).late == 0
    assert refused(school, DUE + SECOND).code == "closed"


def test_lateness_is_counted_from_what_was_received_and_stays_with_the_attempt():
    school = School(rules={"late_days": 2})
    assert [school.hand_in(DUE + wait).late for wait in (SECOND, DAY, DAY + SECOND, 2 * DAY)] == [1, 1, 2, 2]
    assert refused(school, DUE + 2 * DAY + SECOND).code == "closed"


def test_the_night_of_summer_time_charges_no_day():
    """Due on Saturday at 17:00 in London. Sunday at 17:00 there, 23 hours later, is the first day's end."""
    due = datetime(2026, 3, 28, 17, 0, tzinfo=UTC)
    school = School(rules={"due_at": due, "late_days": 2})
    assert school.hand_in(datetime(2026, 3, 29, 16, 0, tzinfo=UTC)).late == 1
    assert school.hand_in(datetime(2026, 3, 30, 15, 59, tzinfo=UTC)).late == 2
    assert refused(school, datetime(2026, 3, 30, 16, 1, tzinfo=UTC)).code == "closed"
    assert standing(school.student, school.assignment, NOON).zone == "Europe/London"


def test_what_an_exercise_does_not_ask_for_is_refused_field_by_field_and_costs_nothing():
    school = School()
    wrong = {**RIGHT, "catalogue": "many", "grade": 100}
    with pytest.raises(NotAnswers) as why:
        hand_in(school.student, school.assignment, wrong, now=NOON, through="api")
    assert set(why.value.problems) == {"catalogue", "grade"}
    assert not Attempt.objects.exists()


@pytest.mark.parametrize("given", [None, [], "text", {}, {"box_a": "\ud800"}, {**RIGHT, "refused": "x" * 100_000}])
def test_what_is_no_answer_at_all_gets_a_sentence(given):
    school = School()
    with pytest.raises(NotAnswers):
        hand_in(school.student, school.assignment, given, now=NOON, through="api")


def test_an_exercise_whose_folder_is_gone_is_refused_with_a_sentence():
    school = School(rules={"exercise": "long-gone"})
    assert refused(school).code == "gone"


# --- How many and how soon -----------------------------------------------------------------------------------------


def test_the_number_of_attempts_is_kept():
    school = School(rules={"attempts": 2})
    lefts = []
    for n in range(2):
        lefts.append(standing(school.student, school.assignment, NOON).left)
        school.hand_in(NOON + n * MINUTE)
    assert lefts == [2, 1]
    assert refused(school).code == "no attempts left"


def test_an_attempt_that_the_judge_failed_on_is_given_back():
    """Parked by a judge that broke off three times, it costs none of them; the next one waits all the same."""
    school = School(rules={"attempts": 1, "cooldown": 90})
    attempt = school.hand_in()
    assert refused(school, NOON + MINUTE).code == "no attempts left"
    assert break_off(attempt).state == "parked"
    assert refused(school, NOON + MINUTE).code == "too soon"
    assert standing(school.student, school.assignment, NOON + 2 * MINUTE).left == 1
    assert school.hand_in(NOON + 2 * MINUTE).number == 2


def test_whoever_makes_the_judge_fail_is_not_given_back_attempts_for_ever():
    school = School(rules={"attempts": 2})
    lefts = []
    for n in range(queue.GIVEN_BACK + 2):
        break_off(school.hand_in(NOON + n * DAY / 24), NOON + n * DAY / 24)
        lefts.append(standing(school.student, school.assignment, NOON).left)
    assert lefts == [2] * queue.GIVEN_BACK + [1, 0]
    assert standing(school.enrolled("neighbour"), school.assignment, NOON).left == 2


def test_two_attempts_are_so_many_seconds_apart():
    school = School(rules={"cooldown": 600})
    school.hand_in()
    early = refused(school, NOON + timedelta(seconds=590))
    assert (early.code, "in 11 s" in str(early)) == ("too soon", True)
    assert standing(school.student, school.assignment, NOON + SECOND).not_before == NOON + timedelta(seconds=600)
    assert school.hand_in(NOON + timedelta(seconds=600)).number == 2


def test_where_one_stands_is_what_handing_in_meets():
    """The same answer at every moment, before anything was handed in and after."""
    school = School(rules={"attempts": 2, "cooldown": 60, "late_days": 1})
    for now in (OPENS - SECOND, OPENS, OPENS + SECOND, NOON, NOON + MINUTE, DUE + 2 * DAY):
        told = standing(school.student, school.assignment, now)
        if told.open:
            assert school.hand_in(now).late == told.days_late
        else:
            why = refused(school, now)
            assert (why.code, str(why)) == (told.code, told.why)
    assert Attempt.objects.count() == 2
    with pytest.raises(Refused):
        standing(school.teacher, school.assignment, NOON)


# --- Extensions ----------------------------------------------------------------------------------------------------


def extended(school: School, **given: int) -> Extension:
    given = {"days": 0, "attempts": 0, **given}
    return extend(school.assignment, school.student, why="a fever", by=school.teacher, now=NOON, **given)


def test_an_extension_moves_one_students_deadline_and_nobody_elses():
    school = School(rules={"late_days": 1})
    neighbour = school.enrolled("neighbour")
    extended(school, days=3)
    assert school.hand_in(DUE + 3 * DAY).late == 0
    assert school.hand_in(DUE + 3 * DAY + SECOND).late == 1
    assert refused(school, DUE + 2 * DAY, neighbour).code == "closed"
    told = standing(school.student, school.assignment, NOON)
    assert (told.due, told.closes) == (DUE + 3 * DAY, DUE + 4 * DAY)


def test_an_extension_gives_more_attempts_and_a_second_one_stands_instead_of_the_first():
    school = School(rules={"attempts": 1})
    extended(school, attempts=1)
    extended(school, attempts=2)
    assert [school.hand_in(NOON + n * MINUTE).number for n in range(3)] == [1, 2, 3]
    assert refused(school, NOON + DAY).code == "no attempts left"
    assert Extension.objects.count() == 1


def test_only_an_instructor_of_the_class_extends_and_only_for_its_students():
    school, other = School(), School("Thursday")
    for stranger in (school.student, other.teacher, person("operator", "Operator")):
        with pytest.raises(NotYours):
            extend(school.assignment, school.student, days=1, attempts=0, why="so", by=stranger, now=NOON)
    with pytest.raises(NotAnExtension, match="enrol them first"):
        extend(school.assignment, other.student, days=1, attempts=0, why="so", by=school.teacher, now=NOON)
    assert not Extension.objects.exists()


@pytest.mark.parametrize(
    ("days", "attempts", "why", "wrong"),
    [
        (-1, 0, "so", ["days"]),
        (100_000, 0, "so", ["days"]),
        (0, -1, "so", ["attempts"]),
        (0, 1001, "so", ["attempts"]),
        (1, 1, " ", ["why"]),
        (-1, -1, "", ["why", "days", "attempts"]),
    ],
)
def test_an_extension_that_makes_no_sense_is_refused_field_by_field(days, attempts, why, wrong):
    school = School()
    with pytest.raises(NotAnExtension) as said:
        extend(school.assignment, school.student, days=days, attempts=attempts, why=why, by=school.teacher, now=NOON)
    assert list(said.value.problems) == wrong


def test_what_was_judged_stays_an_attempt_of_its_number():
    """Handing in again adds a row and alters none."""
    school = School()
    first = school.hand_in()
    judge(first, {})
    before = Attempt.objects.filter(pk=first.pk).values().get()
    school.hand_in(NOON + MINUTE)
    assert Attempt.objects.filter(pk=first.pk).values().get() == before
