"""Likeness of programs in the admin: a hint for who teaches the class, both programs side by side, as text."""

import copy
from typing import Any

import pytest
from django.http import HttpResponse
from django.test import Client
from django.urls import reverse

from exercises.handed.exercise import exercise
from grading.handin import hand_in
from grading.models import Assignment, Attempt
from tests.admin.conftest import client_of, text, words
from tests.admin.desk import OUTSIDERS, outsider
from tests.grading.school import DUE, NOON, OPENS, School, both

pytestmark = pytest.mark.django_db
PAGE = "admin:grading_likeness"
FIELD = "settle.statement"
WEDNESDAY_S = ("to Wednesday", ", Wednesday", "(Wednesday)", "another", "update ")


@pytest.fixture
def finer(school: School) -> Assignment:
    """The finer key, which asks for SQL."""
    return Assignment.objects.create(of=school.of, exercise="slot", opens_at=OPENS, due_at=DUE)


def sql(more: str = "") -> dict[str, Any]:
    """A right answer, with something more in its first statement."""
    answers = copy.deepcopy(next(one for one in exercise("slot").known() if one.kind == "right").answers)
    answers["settle"][0]["statement"] += more
    return answers


def two(school: School, finer: Assignment, more: str = "") -> tuple[Attempt, Attempt]:
    one, other = school.student, school.enrolled("another")
    return (
        hand_in(one, finer, sql(), now=NOON, through="form"),
        hand_in(other, finer, sql(more), now=NOON, through="form"),
    )


def pair(client: Client, one: object, other: object, field: str = FIELD, exercise: str = "slot") -> HttpResponse:
    return client.get(reverse(PAGE), {"exercise": exercise, "one": one, "other": other, "field": field})


def test_alike_programs_are_a_hint_and_the_page_says_so(teacher, school, finer):
    one, other = two(school, finer)
    assert "The finer key , given to Wednesday" in words(text(teacher, reverse(PAGE)))
    page = text(teacher, reverse(PAGE), exercise="slot")
    assert "A hint, and no verdict" in words(page)
    assert "student-Wednesday (Wednesday) and another (Wednesday)" in words(page)
    assert f"one={one.pk}&amp;other={other.pk}&amp;field={FIELD}" in page
    assert "100 %" in words(page)


def test_both_programs_stand_side_by_side_as_text(school, finer):
    one, other = two(school, finer, " -- <script>alert(1)</script> & more")
    page = pair(client_of(school.teacher), one.pk, other.pk).content.decode()
    assert page.count("<pre ") == 2
    assert "&lt;script&gt;alert(1)&lt;/script&gt; &amp; more" in page
    assert "<script>alert(1)" not in page


def test_when_they_were_received_is_told_in_the_class_s_zone(school, finer):
    school.of.zone = "Pacific/Auckland"
    school.of.save()
    one, other = two(school, finer)
    page = pair(client_of(school.teacher), one.pk, other.pk).content.decode()
    assert page.count("received Wed 11 Mar 2026, 01:00:00 (Pacific/Auckland)") == 2


def test_where_nothing_is_alike_or_no_program_is_asked_for_it_is_said(school, finer):
    page = words(text(client_of(school.teacher), reverse(PAGE), exercise="slot"))
    assert "No two programs have 50 per cent or more in common" in page
    school.hand_in()
    page = words(text(client_of(school.teacher), reverse(PAGE), exercise="advisory"))
    assert "this exercise asks for no program" in page


@pytest.mark.parametrize("who", OUTSIDERS)
def test_nobody_else_reads_a_hint_or_a_program(who, school, finer):
    attempts, client = two(school, finer), outsider(who, school, School("Thursday"))
    assert client.get(reverse(PAGE), {"exercise": "slot"}).status_code in (403, 404)
    assert pair(client, *(one.pk for one in attempts)).status_code in (403, 404)
    assert "The finer key" not in client.get(reverse(PAGE)).content.decode()
    assert client.post(reverse(PAGE)).status_code == 403


def test_programs_of_elsewhere_and_of_no_such_part_are_not_there(teacher, school, finer):
    one, other = two(school, finer)
    outside = School("Thursday").judged()
    assert pair(teacher, one.pk, outside.pk).status_code == 404
    assert pair(teacher, one.pk, other.pk, exercise="advisory").status_code == 404
    for field in ("", "settle", "solved", "settle.statement\x00x"):
        assert pair(teacher, one.pk, other.pk, field).status_code in (400, 404), field
    for number in ("x", "-1", "9" * 30, "²", "0"):
        assert pair(teacher, one.pk, number).status_code == 404
    for slug in ("own-lock", "x", "../slot", "slot x"):
        assert teacher.get(reverse(PAGE), {"exercise": slug}).status_code == 404, slug


def thursday() -> tuple[School, Attempt]:
    """Another class, to which the finer key is given too."""
    other = School("Thursday", rules={"exercise": "slot"})
    return other, hand_in(other.student, other.assignment, sql(), now=NOON, through="form")


def test_programs_of_two_classes_are_told_to_who_teaches_both(teacher, school, finer):
    one, _ = two(school, finer)
    other, across = thursday()
    other.of.instructors.add(school.teacher)
    assert "The finer key , given to Thursday, Wednesday" in words(text(teacher, reverse(PAGE)))
    page = text(teacher, reverse(PAGE), exercise="slot")
    assert "student-Wednesday (Wednesday) and student-Thursday (Thursday)" in words(page)
    assert f"one={one.pk}&amp;other={across.pk}&amp;field={FIELD}" in page
    sides = words(pair(teacher, one.pk, across.pk).content.decode())
    assert "student-Wednesday, attempt 1 , Wednesday" in sides
    assert "student-Thursday, attempt 1 , Thursday" in sides


@pytest.mark.parametrize("who", OUTSIDERS)
def test_nothing_of_this_class_is_seen_beside_another_s_that_one_teaches(who, school, finer):
    """The exercise is given to both; who teaches the other one may be a student of this one."""
    one, third = two(school, finer)
    other, across = thursday()
    client = outsider(who, school, other)
    pages = [client.get(reverse(PAGE)), client.get(reverse(PAGE), {"exercise": "slot"})]
    pages += [pair(client, *chosen) for chosen in ((one.pk, across.pk), (across.pk, one.pk), (one.pk, third.pk))]
    assert {response.status_code for response in pages[2:]} <= {403, 404}
    for response in pages:
        told = words(response.content.decode())
        assert not [said for said in WEDNESDAY_S if said in told]


def test_one_s_own_program_is_not_set_beside_those_that_one_teaches(school, finer):
    """It is of a class in which they are a student."""
    other, across = thursday()
    teacher = both(school, other)
    own = hand_in(teacher, finer, sql(), now=NOON, through="form")
    assert "No two programs" in text(client_of(teacher), reverse(PAGE), exercise="slot")
    assert pair(client_of(teacher), own.pk, across.pk).status_code == 404
