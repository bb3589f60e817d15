"""A second look at a check: who asks, who answers, and when it is open."""

import pytest
from django.core.exceptions import PermissionDenied

from exercises.handed.checks import Shown
from grading import review, threads
from grading.models import Attempt, Enrolment, Thread, ThreadPost
from grading.threads import NotAPost
from tests.fakes import Boxes
from tests.grading.school import AFTER, DAY, FAILED, NOON, PASSED, Said, School, person, real_commits

pytestmark = pytest.mark.django_db
MIXED = {
    "open": Said(PASSED, 3, 3),
    "later": Said(FAILED, 1, 2, Shown.AFTERWARDS),
    "secret": Said(FAILED, 0, 4, Shown.HIDDEN),
}


def asked(school: School, attempt: Attempt, text: str = "Why?", check: str = "open", now=NOON) -> Thread:
    return threads.open_thread(attempt, check, text, by=school.student, now=now)


def said(thread: Thread) -> list[tuple[str, str]]:
    return [(post.by.username, post.text) for post in thread.posts.select_related("by")]


def is_open(thread: Thread) -> bool:
    return Thread.objects.get(pk=thread.pk).open


def test_a_student_asks_an_instructor_answers_and_closes_and_the_student_may_go_on():
    school = School()
    thread = asked(school, school.judged(MIXED))
    threads.post(thread, "Because of the lease.", by=school.teacher, now=NOON)
    threads.close(thread, by=school.teacher, now=NOON)
    assert not is_open(thread)
    threads.post(thread, "It has none.", by=school.student, now=NOON + DAY)
    assert is_open(thread)
    assert said(thread) == [
        ("student-Wednesday", "Why?"),
        ("teacher-Wednesday", "Because of the lease."),
        ("student-Wednesday", "It has none."),
    ]


def test_an_instructors_answer_leaves_a_closed_thread_closed():
    school = School()
    thread = asked(school, school.judged(MIXED))
    threads.close(thread, by=school.teacher, now=NOON)
    threads.post(thread, "One more thing.", by=school.teacher, now=NOON)
    assert not is_open(thread)
    threads.reopen(thread, by=school.teacher, now=NOON)
    assert is_open(thread)


def test_closed_twice_it_stays_as_it_was_closed_first():
    school = School()
    thread = asked(school, school.judged(MIXED))
    threads.close(thread, by=school.teacher, now=NOON)
    threads.close(thread, by=person("root", is_superuser=True), now=NOON + DAY)
    thread.refresh_from_db()
    assert (thread.closed_at, thread.closed_by) == (NOON, school.teacher)


def test_there_is_one_thread_of_a_check_and_what_was_sent_twice_is_said_once():
    school = School()
    attempt = school.judged(MIXED)
    thread = asked(school, attempt)
    assert asked(school, attempt) == thread
    assert asked(school, attempt, "Still: why?") == thread
    assert [text for _, text in said(thread)] == ["Why?", "Still: why?"]


@real_commits
def test_two_who_ask_at_once_ask_in_one_thread():
    school = School()
    attempt = school.judged(MIXED)
    with Boxes(4) as boxes:
        made = boxes.run(*[lambda text=text: asked(school, attempt, text).pk for text in "abcd"])
    assert set(made) == {Thread.objects.get().pk}
    assert sorted(ThreadPost.objects.values_list("text", flat=True)) == list("abcd")


def test_an_answer_closes_only_what_was_read():
    school = School()
    thread = asked(school, school.judged(MIXED))
    threads.post(thread, "Wait.", by=school.student, now=NOON)
    for closing in (
        lambda: threads.answer(thread, "So.", seen=1, by=school.teacher, now=NOON),
        lambda: threads.close(thread, seen=1, by=school.teacher, now=NOON),
    ):
        with pytest.raises(NotAPost, match="read it, then close"):
            closing()
    assert (is_open(thread), len(said(thread))) == (True, 2)
    for _ in range(2):  # sent twice it is said once
        threads.answer(thread, "So.", seen=2, by=school.teacher, now=NOON)
    assert (is_open(thread), said(thread)[2:]) == (False, [("teacher-Wednesday", "So.")])


@real_commits
def test_a_close_and_a_students_post_at_once_leave_the_thread_as_the_last_of_them_says():
    school = School()
    thread = asked(school, school.judged(MIXED))
    with Boxes(2) as boxes:
        made = boxes.run_behind(
            thread,
            lambda: threads.close(thread, by=school.teacher, now=NOON),
            lambda: threads.post(thread, "Wait.", by=school.student, now=NOON).open,
        )
    assert not [one for one in made if isinstance(one, Exception)]
    thread.refresh_from_db()
    assert (thread.closed_at is None) == (thread.closed_by is None)
    assert ("student-Wednesday", "Wait.") in said(thread)


@pytest.mark.parametrize("check", ["later", "secret", "hidden-2", "no-such-check", "", "\x00"])
def test_nobody_asks_about_what_they_can_not_see(check):
    school = School()
    attempt = school.judged(MIXED)
    with pytest.raises(NotAPost, match="shows nothing yet"):
        asked(school, attempt, check=check)
    assert not Thread.objects.exists()


def test_what_is_shown_later_can_be_asked_about_later():
    school = School()
    attempt = school.judged(MIXED)
    assert asked(school, attempt, check="later", now=AFTER).open
    review.release(school.assignment, by=school.teacher, now=NOON)
    assert asked(school, attempt, check="secret").open


@pytest.mark.parametrize("text", ["", " \n ", "\x00", "x" * 4001])
def test_a_post_says_something_and_has_an_end(text):
    school = School()
    attempt = school.judged(MIXED)
    with pytest.raises(NotAPost):
        asked(school, attempt, text)
    thread = asked(school, attempt, "x" * 4000)
    with pytest.raises(NotAPost):
        threads.post(thread, text, by=school.student, now=NOON)


def test_an_empty_answer_is_not_told_what_a_student_is():
    school = School()
    thread = asked(school, school.judged(MIXED))
    with pytest.raises(NotAPost, match="There is nothing in it: write something"):
        threads.answer(thread, " ", by=school.teacher, now=NOON)


def test_a_thread_has_an_end(monkeypatch):
    monkeypatch.setattr(threads, "MOST", 2)
    school = School()
    thread = asked(school, school.judged(MIXED))
    threads.post(thread, "Two.", by=school.student, now=NOON)
    with pytest.raises(NotAPost, match="full"):
        threads.post(thread, "Three.", by=school.student, now=NOON)
    assert thread.posts.count() == 2


def test_only_the_owner_asks():
    """Neither a neighbour, nor the instructor, nor who may do everything else."""
    school = School()
    attempt = school.judged(MIXED)
    for other in (school.enrolled("neighbour"), school.teacher, person("root", is_superuser=True)):
        with pytest.raises(PermissionDenied, match="Only the student"):
            threads.open_thread(attempt, "open", "Why?", by=other, now=NOON)
    Enrolment.objects.filter(student=school.student).delete()
    with pytest.raises(PermissionDenied):
        asked(school, attempt)


@pytest.mark.parametrize("who", ["neighbour", "other teacher", "operator", "left", "deactivated"])
def test_nobody_else_says_anything_and_no_student_closes(who):
    school, other = School(), School("Thursday")
    thread = asked(school, school.judged(MIXED))
    if who == "left":
        Enrolment.objects.filter(student=school.student).delete()
    stranger = {
        "neighbour": lambda: school.enrolled("neighbour"),
        "other teacher": lambda: other.teacher,
        "operator": lambda: person("operator", "Operator"),
        "left": lambda: school.student,
        "deactivated": lambda: school.student,
    }[who]()
    stranger.is_active = who != "deactivated"
    thread = Thread.objects.get(pk=thread.pk)
    for verb in (
        lambda: threads.post(thread, "So.", by=stranger, now=NOON),
        lambda: threads.close(thread, by=stranger, now=NOON),
        lambda: threads.reopen(thread, by=stranger, now=NOON),
        lambda: threads.close(thread, by=school.student, now=NOON),
        lambda: threads.reopen(thread, by=school.student, now=NOON),
    ):
        with pytest.raises(PermissionDenied):
            verb()
    assert (thread.posts.count(), is_open(thread)) == (1, True)
