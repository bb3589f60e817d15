"""Releases: one assignment's or all of a class, by who teaches it; what is incomplete is said before it is shown."""

import pytest
from django.contrib.auth.models import Group, Permission
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from grading import review, sight, threads
from grading.models import Assignment, Release
from tests.admin.conftest import answer, client_of, text, words
from tests.admin.desk import OUTSIDERS, outsider
from tests.grading.school import DAY, DUE, INSTRUCTOR, MINUTE, NOON, OPENS, Said, School, person

pytestmark = pytest.mark.django_db
PAGE = "admin:grading_releases"


def said(client: Client, **form: object) -> str:
    return answer(client, reverse(PAGE), **form)


def second(school: School) -> Assignment:
    return Assignment.objects.create(of=school.of, exercise="slot", opens_at=OPENS, due_at=DUE)


def test_grades_are_shown_and_hidden_again(teacher, school):
    school.judged()
    assert "1 of 1" in words(text(teacher, reverse(PAGE)))
    assert "see its grades now" in said(teacher, release=school.assignment.pk)
    assert sight.released(school.assignment)
    assert "by teacher-Wednesday" in words(text(teacher, reverse(PAGE)))
    assert "hidden again" in said(teacher, take_back=school.assignment.pk)
    assert not sight.released(school.assignment)
    assert Release.objects.count() == 1


def test_who_took_a_release_back_and_when_is_told_until_the_next_one():
    school = School(zone="Pacific/Auckland")
    teacher, other = client_of(school.teacher), person("a-colleague", "Instructor")
    school.of.instructors.add(other)
    for by, at in ((other, NOON), (school.teacher, NOON + DAY)):
        review.release(school.assignment, by=school.teacher, now=at)
        review.take_back(school.assignment, by=by, now=at + MINUTE)
    page = words(text(teacher, reverse(PAGE)))
    assert "taken back Thu 12 Mar 2026, 01:01 (Pacific/Auckland) by teacher-Wednesday" in page
    assert "a-colleague" not in page
    review.release(school.assignment, by=other, now=NOON + 2 * DAY)
    page = words(text(teacher, reverse(PAGE)))
    assert "since Fri 13 Mar 2026, 01:00 (Pacific/Auckland) by a-colleague" in page
    assert "(Pacific/Auckland) by teacher-Wednesday" not in page


def test_incomplete_grades_are_said_before_they_are_shown(teacher, school):
    school.judged({"boxes": Said(INSTRUCTOR, 0, 3)})
    school.judged(student=school.enrolled("another"))
    school.hand_in(NOON, school.enrolled("a-third"))
    page = said(teacher, release=school.assignment.pk)
    assert "2 grades are incomplete" in page
    assert not sight.released(school.assignment)
    assert "see its grades now" in said(teacher, release=school.assignment.pk, sure="yes")
    assert sight.released(school.assignment)


def test_second_looks_that_are_open_are_said_before_grades_are_shown(teacher, school):
    threads.open_thread(school.judged(), "refused", "Why?", by=school.student, now=NOON)
    assert "1 second look open" in words(text(teacher, reverse(PAGE)))
    for form in ({"release": school.assignment.pk}, {"all": school.of.pk}):
        page = said(teacher, **form)
        assert ("1 second look is open" in page, "incomplete In" in page) == (True, False)
        assert not sight.released(school.assignment)
    school.judged({"boxes": Said(INSTRUCTOR, 0, 3)}, student=school.enrolled("another"))
    assert "1 grade is incomplete, 1 second look is open" in said(teacher, release=school.assignment.pk)
    said(teacher, release=school.assignment.pk, sure="yes")
    assert sight.released(school.assignment)


def test_all_of_a_class_is_shown_at_once_after_one_question(teacher, school):
    more, other = second(school), School("Thursday")
    school.hand_in()
    assert "1 grade is incomplete" in said(teacher, all=school.of.pk)
    assert not Release.objects.exists()
    assert "the grades of 2 assignments are shown now" in said(teacher, all=school.of.pk, sure="yes")
    assert all(sight.released(one) for one in (school.assignment, more))
    assert not sight.released(other.assignment)


def test_released_twice_is_released_once(teacher, school):
    for _ in range(2):
        said(teacher, release=school.assignment.pk)
    assert Release.objects.count() == 1


@pytest.mark.parametrize("who", OUTSIDERS)
def test_nobody_else_shows_or_hides_anything(who, school, teacher):
    client = outsider(who, school, School("Thursday"))
    for form in ({"release": school.assignment.pk}, {"all": school.of.pk}):
        assert client.post(reverse(PAGE), {**form, "sure": "yes"}).status_code in (403, 404)
    assert not Release.objects.exists()
    said(teacher, release=school.assignment.pk)
    assert client.post(reverse(PAGE), {"take_back": school.assignment.pk}).status_code in (403, 404)
    assert sight.released(school.assignment)
    assert "Wednesday" not in client.get(reverse(PAGE)).content.decode().replace("student-Wednesday", "")


def test_who_may_only_look_makes_none(school, teacher):
    looks = Group.objects.create(name="looks")
    looks.permissions.add(Permission.objects.get(codename="view_release"))
    school.teacher.groups.set([looks])
    assert 'name="release"' not in text(teacher, reverse(PAGE))
    assert teacher.post(reverse(PAGE), {"release": school.assignment.pk}).status_code == 403
    assert not Release.objects.exists()


def test_it_is_not_done_without_the_form_s_own_key(school):
    client = client_of(school.teacher, enforce_csrf_checks=True)
    assert client.post(reverse(PAGE), {"release": school.assignment.pk}).status_code == 403
    assert not Release.objects.exists()


@pytest.mark.parametrize("number", ["x", "-1", "9" * 30, "²", "0"])
def test_what_is_no_number_of_theirs_is_not_there(number, teacher):
    for name in ("release", "all", "take_back"):
        assert teacher.post(reverse(PAGE), {name: number}).status_code == 404


def test_the_page_costs_the_same_however_much_was_handed_in(teacher, school, django_assert_num_queries):
    school.judged()
    with CaptureQueriesContext(connection) as few:
        text(teacher, reverse(PAGE))
    second(school)
    for number in range(3):
        school.judged(student=school.enrolled(f"s{number}"))
    with django_assert_num_queries(len(few)):
        assert "4 of 4" in words(text(teacher, reverse(PAGE)))
