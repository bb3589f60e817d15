"""Each role at the pages of hand-ins, by requests made by hand: what is not theirs is not there, and stays so."""

from typing import Any

import pytest
from django.contrib.auth.models import Permission

from grading import threads
from grading.models import Attempt, GradeChange, Judging, Thread, ThreadPost
from marlow.clock import real_now
from tests.admin.conftest import client_of, text, words
from tests.admin.desk import hands_in, sent, to
from tests.grading.school import DAY, RIGHT, School, person

pytestmark = pytest.mark.django_db


@pytest.fixture
def now() -> Any:
    return real_now()


@pytest.fixture
def school(now: Any) -> School:
    """Open since yesterday, due in a week: the pages live on the real clock."""
    return School(rules={"opens_at": now - DAY, "due_at": now + 7 * DAY})


def strangers(now: Any) -> dict[str, Any]:
    """Staff of every kind to whom this class's work is not there."""
    other = School("Thursday", rules={"opens_at": now - DAY, "due_at": now + DAY})
    return {
        "a student of another class": other.student,
        "an instructor of another class": other.teacher,
        "a student of none": person("nobody"),
    }


DEEDS: list[dict[str, str]] = [
    {"do": "override", "check": "refused", "points": "2", "reason": "mine"},
    {"do": "withdraw", "check": "refused", "reason": "mine"},
    {"do": "comment", "text": "mine"},
    {"do": "again"},
    {"do": "ask", "check": "friday", "text": "mine"},
    {"do": "post", "check": "refused", "text": "mine"},
    {"do": "answer", "check": "refused", "text": "mine"},
    {"do": "close", "check": "refused"},
    {"do": "reopen", "check": "refused"},
]


def written() -> list[Any]:
    models = (Attempt, GradeChange, Judging, Thread, ThreadPost)
    return [list(model._default_manager.order_by("pk").values_list()) for model in models]


def test_the_work_of_a_class_is_not_there_for_anybody_outside_it(school, now):
    attempt = school.judged(now=now)
    threads.open_thread(attempt, "refused", "Why?", by=school.student, now=now)
    pages = [to("assignment", school.assignment.pk), to("attempt", attempt.pk), to("evidence", attempt.pk, "boxes")]
    outside = strangers(now)
    before = written()
    for who, user in outside.items():
        client = client_of(user)
        for page in pages:
            assert client.get(page).status_code == 404, (who, page)
        for deed in DEEDS:
            assert client.post(pages[1], deed).status_code == 404, (who, deed)
        assert client.post(pages[0], {**sent(**RIGHT), "do": "hand in"}).status_code == 404, who
        assert f"/{attempt.pk}/" not in text(client, to("exercises"))
    assert written() == before


def test_a_classmate_sees_the_exercise_and_nothing_of_another_s_work(school, now):
    attempt = school.judged(now=now)
    classmate = client_of(school.enrolled("classmate"))
    page = text(classmate, to("assignment", school.assignment.pk))
    assert to("attempt", attempt.pk) not in page
    assert school.student.username not in page
    for page in (to("attempt", attempt.pk), to("evidence", attempt.pk, "boxes")):
        assert classmate.get(page).status_code == 404
    before = written()
    for deed in DEEDS:
        assert classmate.post(to("attempt", attempt.pk), deed).status_code == 404, deed
    assert written() == before


def test_a_student_does_nothing_of_an_instructor_s_on_their_own_attempt(school, now):
    attempt = school.judged(now=now)
    threads.open_thread(attempt, "refused", "Why?", by=school.student, now=now)
    client, before = client_of(school.student), written()
    for deed in DEEDS:
        if deed["do"] in ("ask", "post"):
            continue
        assert client.post(to("attempt", attempt.pk), deed).status_code == 403, deed
    assert written() == before
    page = text(client, to("attempt", attempt.pk))
    assert "Give these points" not in page
    assert "Answer and close" not in page


def test_who_may_only_look_does_nothing_even_in_a_class_of_their_own(school, now):
    attempt, names = school.judged(now=now), ("view_assignment", "view_attempt")
    threads.open_thread(attempt, "refused", "Why?", by=school.student, now=now)
    for user in (school.student, school.teacher):
        user.groups.clear()
        user.user_permissions.set(Permission.objects.filter(codename__in=names))
    before = written()
    for user in (school.student, school.teacher):
        client = client_of(user)
        assert client.get(to("attempt", attempt.pk)).status_code == 200
        for deed in DEEDS:
            assert client.post(to("attempt", attempt.pk), deed).status_code == 403, deed
        assert hands_in(client, school).status_code == 403
        assert "Hand in</button>" not in text(client, to("assignment", school.assignment.pk))
    assert written() == before


def test_an_instructor_reads_all_of_the_class_and_hands_in_nothing(school, now):
    attempt = school.judged(now=now)
    client = client_of(school.teacher)
    page = text(client, to("assignment", school.assignment.pk))
    assert school.student.username in page
    assert to("attempt", attempt.pk) in page
    assert "6 of 8" in words(page)
    said = {**sent(**RIGHT), "do": "hand in"}
    assert client.post(to("assignment", school.assignment.pk), said).status_code == 403
    assert client.post(to("attempt", attempt.pk), {"do": "ask", "check": "boxes", "text": "x"}).status_code == 403
    assert Attempt.objects.count() == 1


def test_a_student_who_has_left_the_class_finds_nothing(school, now):
    attempt, client = school.judged(now=now), client_of(school.student)
    school.of.enrolments.all().delete()
    assert client.get(to("attempt", attempt.pk)).status_code == 404
    assert client.get(to("assignment", school.assignment.pk)).status_code == 404
