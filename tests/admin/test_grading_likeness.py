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
from tests.grading.school import DUE, NOON, OPENS, School

pytestmark = pytest.mark.django_db
PAGE = "admin:grading_likeness"
FIELD = "settle.statement"


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


def pair(client: Client, finer: Assignment, one: object, other: object, field: str = FIELD) -> HttpResponse:
    return client.get(reverse(PAGE), {"assignment": finer.pk, "one": one, "other": other, "field": field})


def test_alike_programs_are_a_hint_and_the_page_says_so(teacher, school, finer):
    one, other = two(school, finer)
    assert "The finer key, Wednesday" in words(text(teacher, reverse(PAGE)))
    page = text(teacher, reverse(PAGE), assignment=str(finer.pk))
    assert "A hint, and no verdict" in words(page)
    assert "student-Wednesday and another" in words(page)
    assert f"one={one.pk}&amp;other={other.pk}&amp;field={FIELD}" in page
    assert "100 %" in words(page)


def test_both_programs_stand_side_by_side_as_text(school, finer):
    one, other = two(school, finer, " -- <script>alert(1)</script> & more")
    page = pair(client_of(school.teacher), finer, one.pk, other.pk).content.decode()
    assert page.count("<pre ") == 2
    assert "&lt;script&gt;alert(1)&lt;/script&gt; &amp; more" in page
    assert "<script>alert(1)" not in page


def test_when_they_were_received_is_told_in_the_class_s_zone(school, finer):
    school.of.zone = "Pacific/Auckland"
    school.of.save()
    one, other = two(school, finer)
    page = pair(client_of(school.teacher), finer, one.pk, other.pk).content.decode()
    assert page.count("received Wed 11 Mar 2026, 01:00:00 (Pacific/Auckland)") == 2


def test_where_nothing_is_alike_or_no_program_is_asked_for_it_is_said(school, finer):
    page = words(text(client_of(school.teacher), reverse(PAGE), assignment=str(finer.pk)))
    assert "No two programs have 50 per cent or more in common" in page
    school.hand_in()
    page = words(text(client_of(school.teacher), reverse(PAGE), assignment=str(school.assignment.pk)))
    assert "this exercise asks for no program" in page


@pytest.mark.parametrize("who", OUTSIDERS)
def test_nobody_else_reads_a_hint_or_a_program(who, school, finer):
    attempts, client = two(school, finer), outsider(who, school, School("Thursday"))
    assert client.get(reverse(PAGE), {"assignment": finer.pk}).status_code in (403, 404)
    assert pair(client, finer, *(one.pk for one in attempts)).status_code in (403, 404)
    assert "The finer key, Wednesday" not in client.get(reverse(PAGE)).content.decode()
    assert client.post(reverse(PAGE)).status_code == 403


def test_programs_of_elsewhere_and_of_no_such_part_are_not_there(teacher, school, finer):
    one, other = two(school, finer)
    outside = School("Thursday").judged()
    assert pair(teacher, finer, one.pk, outside.pk).status_code == 404
    assert pair(teacher, school.assignment, one.pk, other.pk).status_code == 404
    for field in ("", "settle", "solved", "settle.statement\x00x"):
        assert pair(teacher, finer, one.pk, other.pk, field).status_code in (400, 404), field
    for number in ("x", "-1", "9" * 30, "²", "0"):
        assert pair(teacher, finer, one.pk, number).status_code == 404
        assert teacher.get(reverse(PAGE), {"assignment": number}).status_code == 404
