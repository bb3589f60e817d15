"""What an instructor makes of an attempt: who may, within which bounds, and that the history has it."""

import pytest
from django.core.exceptions import PermissionDenied

from grading import grade, review
from grading.models import Assignment, Attempt, GradeChange, Release, Review, ReviewItem
from grading.review import NotAReview
from tests.fakes import Boxes
from tests.grading.school import DAY, NOON, PASSED, Said, School, break_off, person, real_commits

pytestmark = pytest.mark.django_db


def history(attempt: Attempt, what: str) -> list[tuple]:
    """What people changed, the oldest first."""
    rows = attempt.changes.filter(what=what).exclude(by=None).order_by("pk")
    return [(row.before, row.after, row.why, row.by.username) for row in rows]


def override(school: School, attempt: Attempt, points: int, reason: str = "Half right.", by=None) -> ReviewItem:
    return review.override(attempt, "refused", points, reason, by=by or school.teacher, now=NOON)


# --- Points --------------------------------------------------------------------------------------------------------


def test_a_persons_points_are_kept_with_their_reason_and_the_machines():
    school = School()
    attempt = school.judged()
    item = override(school, attempt, 1)
    assert (item.points, item.of, item.reason) == (1, 2, "Half right.")
    assert (item.outcome, item.machine, item.disagrees) == ("failed", 0, False)
    assert attempt.judgings.get().results.get(name="refused").points == 0


def test_each_change_of_points_is_in_the_history_with_who_from_to_and_why():
    school = School()
    attempt = school.judged()
    colleague = person("colleague", "Instructor")
    school.of.instructors.add(colleague)
    override(school, attempt, 1)
    override(school, attempt, 2, "On second thoughts.", colleague)
    review.withdraw(attempt, "refused", "The machine was right.", by=school.teacher, now=NOON)
    assert history(attempt, "refused") == [
        ("0 of 2, failed", "1 of 2", "Half right.", "teacher-Wednesday"),
        ("1 of 2", "2 of 2", "On second thoughts.", "colleague"),
        ("2 of 2", "0 of 2, failed", "The machine was right.", "teacher-Wednesday"),
    ]
    assert not ReviewItem.objects.exists()


def test_points_that_replace_no_decision_are_not_told_as_replacing_a_nought():
    school = School()
    attempt = school.hand_in()
    break_off(attempt)
    override(school, attempt, 2)
    assert history(attempt, "refused") == [("could not decide", "2 of 2", "Half right.", "teacher-Wednesday")]


def test_the_same_given_twice_changes_nothing():
    school = School()
    attempt = school.judged()
    first = override(school, attempt, 1)
    assert override(school, attempt, 1) == first
    assert len(history(attempt, "refused")) == 1
    for _ in range(2):
        review.withdraw(attempt, "refused", "No.", by=school.teacher, now=NOON)
    assert len(history(attempt, "refused")) == 2


@pytest.mark.parametrize("points", [-1, 3, 10**12])
def test_no_more_than_the_check_can_give_and_no_less_than_nothing(points):
    school = School()
    attempt = school.judged()
    with pytest.raises(NotAReview, match="from 0 to 2"):
        override(school, attempt, points)
    assert not Review.objects.exists()


@pytest.mark.parametrize("reason", ["", "  \n", "\x00", "x" * 401])
def test_a_reason_is_asked_for(reason):
    school = School()
    attempt = school.judged()
    with pytest.raises(NotAReview):
        override(school, attempt, 1, reason)
    with pytest.raises(NotAReview):
        review.withdraw(attempt, "refused", reason, by=school.teacher, now=NOON)


def test_there_is_nothing_to_override_in_an_attempt_that_waits_or_in_a_check_that_is_not_there():
    school = School()
    with pytest.raises(NotAReview, match="no check 'refused'"):
        override(school, school.hand_in(), 1)
    with pytest.raises(NotAReview, match="no check 'gone'"):
        review.override(school.judged(), "gone", 1, "So.", by=school.teacher, now=NOON)


@real_commits
def test_two_instructors_at_once_both_stand_in_the_history():
    """Both wait for the attempt's row; the second one's change begins where the first one's ended."""
    school = School()
    attempt = school.judged()
    colleague = person("colleague", "Instructor")
    school.of.instructors.add(colleague)
    one, two = lambda: override(school, attempt, 1, "One."), lambda: override(school, attempt, 2, "Two.", colleague)
    with Boxes(2) as boxes:
        boxes.run_behind(attempt, one, two)
    first, second = history(attempt, "refused")
    assert first[0] == "0 of 2, failed"
    assert second[0] == first[1]
    assert {first[2], second[2]} == {"One.", "Two."}
    assert f"{ReviewItem.objects.get().points} of 2" == second[1]


def test_points_whose_history_can_not_be_written_are_not_given(monkeypatch):
    def broken(**_):
        raise RuntimeError("no history")

    school = School()
    attempt = school.judged()
    monkeypatch.setattr(GradeChange.objects, "create", broken)
    with pytest.raises(RuntimeError):
        override(school, attempt, 1)
    assert not Review.objects.exists()


# --- Comment -------------------------------------------------------------------------------------------------------


def test_a_comment_is_kept_and_beside_the_points():
    school = School()
    attempt = school.judged()
    override(school, attempt, 1)
    for _ in range(2):
        review.comment(attempt, "  Read §3 again.\n", by=school.teacher, now=NOON)
    kept = Review.objects.get()
    assert (kept.comment, kept.items.count()) == ("Read §3 again.", 1)


def test_the_history_of_a_comment_says_whether_there_was_one_and_nothing_of_what_stays():
    school = School()
    attempt = school.judged()
    for text in ("Well.", "Well. ", "Very well.", "", "", "Well."):
        review.comment(attempt, text, by=school.teacher, now=NOON)
    changes = [row[:2] for row in history(attempt, "comment")]
    assert changes == [("", "written"), ("written", "written"), ("written", "taken back"), ("", "written")]


def test_an_empty_comment_where_there_was_none_is_nothing():
    school = School()
    attempt = school.judged()
    review.comment(attempt, " \n", by=school.teacher, now=NOON)
    assert not Review.objects.exists()
    assert history(attempt, "comment") == []
    override(school, attempt, 1)
    review.comment(attempt, "", by=school.teacher, now=NOON + DAY)
    assert Review.objects.get().at == NOON
    assert history(attempt, "comment") == []


def test_a_comment_has_an_end():
    school = School()
    with pytest.raises(NotAReview, match="10,001 characters"):
        review.comment(school.judged(), "x" * 10_001, by=school.teacher, now=NOON)


# --- Release -------------------------------------------------------------------------------------------------------


def test_a_release_stands_once_and_can_be_taken_back_and_given_again():
    school = School()
    first = review.release(school.assignment, by=school.teacher, now=NOON)
    assert review.release(school.assignment, by=school.teacher, now=NOON + DAY) == first
    assert review.take_back(school.assignment, by=school.teacher, now=NOON + DAY)
    assert not review.take_back(school.assignment, by=school.teacher, now=NOON + 2 * DAY)
    first.refresh_from_db()
    assert first.undone_at == NOON + DAY
    assert review.release(school.assignment, by=school.teacher, now=NOON + 2 * DAY) != first
    assert Release.objects.count() == 2


def test_a_whole_class_is_released_at_once_and_no_other_class():
    school, other = School(), School("Thursday")
    second = Assignment.objects.create(
        of=school.of, exercise="slot", opens_at=school.assignment.opens_at, due_at=school.assignment.due_at
    )
    review.release(second, by=school.teacher, now=NOON)
    released = review.release_all(school.of, by=school.teacher, now=NOON + DAY)
    assert {one.assignment for one in released} == {school.assignment, second}
    assert not Release.objects.filter(assignment=other.assignment).exists()


@real_commits
def test_two_who_release_at_once_release_once():
    school = School()
    with Boxes(4) as boxes:
        made = boxes.run(*[lambda: review.release(school.assignment, by=school.teacher, now=NOON).pk] * 4)
    assert len(set(made)) == Release.objects.count() == 1


@real_commits
def test_a_release_and_a_taking_back_at_once_leave_one_that_stands_or_none():
    school = School()
    review.release(school.assignment, by=school.teacher, now=NOON)
    with Boxes(2) as boxes:
        done = boxes.run_behind(
            school.assignment,
            lambda: review.take_back(school.assignment, by=school.teacher, now=NOON),
            lambda: review.release(school.assignment, by=school.teacher, now=NOON).pk,
        )
    assert not [one for one in done if isinstance(one, Exception)]
    assert Release.objects.filter(undone_at=None).count() in (0, 1)
    assert Release.objects.filter(undone_at=NOON).count() == 1


# --- Who -----------------------------------------------------------------------------------------------------------

VERBS = {
    "override": lambda school, attempt, by: override(school, attempt, 1, by=by),
    "withdraw": lambda school, attempt, by: review.withdraw(attempt, "refused", "So.", by=by, now=NOON),
    "comment": lambda school, attempt, by: review.comment(attempt, "So.", by=by, now=NOON),
    "again": lambda school, attempt, by: review.again(attempt.judgings.get(), by=by, now=NOON),
    "release": lambda school, attempt, by: review.release(school.assignment, by=by, now=NOON),
    "release all": lambda school, attempt, by: review.release_all(school.of, by=by, now=NOON),
    "take back": lambda school, attempt, by: review.take_back(school.assignment, by=by, now=NOON),
}


@pytest.mark.parametrize("verb", VERBS)
def test_only_an_active_instructor_of_the_class_may(verb):
    school, other = School(), School("Thursday")
    attempt = school.judged()
    gone = person("gone", "Instructor")
    school.of.instructors.add(gone)
    gone.is_active = False
    for stranger in (school.student, other.teacher, person("operator", "Operator"), gone):
        with pytest.raises(PermissionDenied, match="Only an instructor of Wednesday"):
            VERBS[verb](school, attempt, stranger)
    assert not Review.objects.exists()
    assert not Release.objects.exists()
    VERBS[verb](school, attempt, person("root", is_superuser=True))


def test_what_was_judged_already_is_not_tried_again():
    school = School()
    assert not review.again(school.judged().judgings.get(), by=school.teacher, now=NOON)


def test_a_person_who_gave_points_is_flagged_when_the_machine_says_otherwise_and_not_when_it_says_the_same():
    school = School()
    attempt = school.judged()
    override(school, attempt, 1)
    judging = attempt.judgings.get()
    grade.judged(judging, NOON)
    assert not ReviewItem.objects.get().disagrees
    judging.results.filter(name="refused").delete()
    _, result = Said(PASSED, 2, 2).of_check("refused")
    judging.results.create(
        place=1, name="refused", title="The refused", outcome=result.outcome.value, points=2, of=2, sentence="",
        shown="always", evidence={},
    )  # fmt: skip
    grade.judged(judging, NOON)
    assert ReviewItem.objects.get().disagrees
    assert override(school, attempt, 1).disagrees is False
