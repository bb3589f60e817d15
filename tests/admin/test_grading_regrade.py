"""Regrades in the admin: begun with a reason, looked at, applied once or dropped, by who teaches the class."""

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from grading import regrade, review
from grading.models import Attempt, Judging, Regrade
from tests.admin.conftest import answer, client_of, text, words
from tests.admin.desk import OUTSIDERS, outsider
from tests.grading.anew import ANEW, LATER, begun, judged_anew, points
from tests.grading.school import DAY, NOON, WELL, School, judge

pytestmark = pytest.mark.django_db
PAGE = "admin:grading_regrades"


def said(client: Client, **form: object) -> str:
    return answer(client, reverse(PAGE), **form)


def page_of(client: Client, one: Regrade) -> str:
    return words(text(client, reverse(PAGE), regrade=str(one.pk)))


@pytest.mark.parametrize("kind", ["attempt", "assignment", "class"])
def test_what_is_chosen_is_asked_for_again_with_its_reason(kind, teacher, school):
    first, more = school.judged(), school.judged(now=NOON + DAY / 2, student=school.enrolled("another"))
    School("Thursday").judged()
    key = {"attempt": first.pk, "assignment": school.assignment.pk, "class": school.of.pk}[kind]
    page = said(teacher, what=f"{kind}:{key}", why="A check was wrong.")
    begun = Regrade.objects.get()
    asked = set(begun.judgings.values_list("attempt", flat=True))
    assert asked == ({first.pk} if kind == "attempt" else {first.pk, more.pk})
    assert f"{len(asked)} still to be judged" in page
    assert "A check was wrong." in words(text(teacher, reverse(PAGE)))
    assert 'name="apply"' not in text(teacher, reverse(PAGE), regrade=str(begun.pk))


def test_an_attempt_s_own_page_can_point_here(teacher, school):
    attempt = school.judged()
    page = text(teacher, reverse(PAGE), attempt=str(attempt.pk))
    assert f'<option value="attempt:{attempt.pk}" selected>student-Wednesday, attempt 1' in page


def test_what_would_change_is_shown_before_it_changes_and_then_counts(teacher, school):
    attempt = school.judged()
    review.override(attempt, "friday", 1, "Not quite.", by=school.teacher, now=NOON)
    made = regrade.begin([attempt], "the lock", "Wrong.", by=school.teacher, now=LATER)
    assert "Nothing so far." in page_of(teacher, made)
    judge(attempt, {**ANEW, "friday": ANEW["boxes"]}, LATER, made)
    page = page_of(teacher, made)
    assert "3 checks; 2 with fewer points than before; 1 where a person’s points stand" in page
    assert "3 of 3, passed 2 of 3, failed fewer points" in page
    assert "a person’s 1 stands the machine says otherwise than then" in page
    assert points(attempt).total == 3 + 0 + 1
    assert "Applied: 1 attempt counts anew." in said(teacher, apply=made.pk)
    assert points(attempt).total == 2 + 2 + 1
    page = page_of(teacher, made)
    assert "What it changed" in page
    assert "boxes 3 of 3, passed 2 of 3, failed" in page


def test_applied_without_a_change_it_is_said_once_that_nothing_changed(teacher, school):
    made = judged_anew(school, school.judged(), WELL)
    page = said(teacher, apply=made.pk)
    assert "Applied: it changed nothing." in page
    assert "anew" not in page


def test_what_counts_anew_is_what_changed(teacher, school):
    attempts = [school.judged(), school.judged(student=school.enrolled("another"))]
    made = begun(school, *attempts)
    judge(attempts[0], WELL, LATER, made)
    judge(attempts[1], ANEW, LATER, made)
    assert "Applied: 1 attempt counts anew." in said(teacher, apply=made.pk)


def test_its_times_are_in_the_class_s_zone_and_name_it():
    school = School(zone="Pacific/Auckland")
    teacher, zone = client_of(school.teacher), "(Pacific/Auckland)"
    applied, dropped = (judged_anew(school, school.judged(now=NOON + n * DAY / 24)) for n in range(2))
    begun = "Begun Thu 12 Mar 2026, 01:00"
    assert f"{begun} {zone}" in page_of(teacher, applied)
    regrade.apply(applied, by=school.teacher, now=LATER + DAY)
    regrade.drop(dropped, by=school.teacher, now=LATER + 2 * DAY)
    assert f"Applied Fri 13 Mar 2026, 01:00 {zone} by" in page_of(teacher, applied)
    assert f"Dropped Sat 14 Mar 2026, 01:00 {zone};" in page_of(teacher, dropped)
    listed = words(text(teacher, reverse(PAGE)))
    for told in ("Thu 12 Mar 2026, 01:00", "applied Fri 13 Mar 2026, 01:00", "dropped Sat 14 Mar 2026, 01:00"):
        assert f"{told} {zone}" in listed


def test_applied_twice_changes_once(teacher, school):
    attempt = school.judged()
    made = judged_anew(school, attempt)
    said(teacher, apply=made.pk)
    changes = attempt.changes.count()
    assert "It has been applied already: nothing was done." in said(teacher, apply=made.pk)
    assert attempt.changes.count() == changes


def test_what_is_dropped_counts_for_nothing_and_is_not_applied(teacher, school):
    attempt = school.judged()
    made, before = judged_anew(school, attempt), points(attempt)
    assert "counts for nothing" in said(teacher, drop=made.pk)
    assert "This regrade was dropped: begin another." in said(teacher, apply=made.pk)
    assert points(attempt) == before
    assert "dropped" in words(text(teacher, reverse(PAGE)))


def test_it_is_not_applied_before_it_is_judged(teacher, school):
    attempt = school.judged()
    made = regrade.begin([attempt], "the lock", "Wrong.", by=school.teacher, now=LATER)
    assert "1 of it are still to be judged" in said(teacher, apply=made.pk)
    made.refresh_from_db()
    assert made.applied_at is None


def test_without_a_reason_nothing_begins_and_the_choice_is_kept(teacher, school):
    attempt = school.judged()
    response = teacher.post(reverse(PAGE), {"what": f"attempt:{attempt.pk}", "why": "  "})
    page = response.content.decode()
    assert "Say why: the history will show it." in page
    assert f'<option value="attempt:{attempt.pk}" selected>' in page
    assert not Regrade.objects.exists()


def test_where_nothing_was_handed_in_nothing_begins(teacher, school):
    assert "Nothing of it has been handed in" in said(teacher, what=f"class:{school.of.pk}", why="Wrong.")
    assert not Regrade.objects.exists()


@pytest.mark.parametrize("who", OUTSIDERS)
def test_nobody_else_begins_applies_or_drops_or_reads_one(who, school):
    attempt = school.judged()
    made = judged_anew(school, attempt)
    client, judgings = outsider(who, school, School("Thursday")), Judging.objects.count()
    scopes = (f"attempt:{attempt.pk}", f"assignment:{school.assignment.pk}", f"class:{school.of.pk}")
    forms = [{"what": one, "why": "Mine."} for one in scopes]
    for form in ({"apply": made.pk}, {"drop": made.pk}, *forms):
        assert client.post(reverse(PAGE), form).status_code in (403, 404), form
    for asked in ({"regrade": made.pk}, {"attempt": attempt.pk}):
        assert client.get(reverse(PAGE), asked).status_code in (403, 404)
    assert ">the advisory lock<" not in client.get(reverse(PAGE)).content.decode()
    made.refresh_from_db()
    assert (made.applied_at, made.dropped_at) == (None, None)
    assert (Regrade.objects.count(), Judging.objects.count()) == (1, judgings)
    assert ">the advisory lock<" in text(client_of(school.teacher), reverse(PAGE))


def test_it_is_not_done_without_the_form_s_own_key(school):
    attempt = school.judged()
    client = client_of(school.teacher, enforce_csrf_checks=True)
    form = {"what": f"attempt:{attempt.pk}", "why": "Wrong."}
    assert client.post(reverse(PAGE), form).status_code == 403
    assert not Regrade.objects.exists()


@pytest.mark.parametrize("number", ["x", "-1", "9" * 30, "²", "0"])
def test_what_is_no_number_of_theirs_is_not_there(number, teacher):
    for form in ({"apply": number}, {"drop": number}, {"what": f"attempt:{number}", "why": "Wrong."}):
        assert teacher.post(reverse(PAGE), form).status_code == 404
    for what in (f"class:{number}", f"assignment:{number}", number):
        assert teacher.post(reverse(PAGE), {"what": what, "why": "Wrong."}).status_code == 403
    assert Attempt.objects.count() == 0


def test_a_reason_is_text_and_nothing_else(teacher, school):
    attempt = school.judged()
    made = regrade.begin([attempt], "one", "<script>alert(1)</script>", by=school.teacher, now=LATER)
    assert "<script>alert(1)" not in text(teacher, reverse(PAGE)) + text(teacher, reverse(PAGE), regrade=str(made.pk))


def test_the_list_costs_the_same_however_much_is_in_it(teacher, school, django_assert_num_queries):
    judged_anew(school, school.judged())
    with CaptureQueriesContext(connection) as few:
        text(teacher, reverse(PAGE))
    for name in ("Monday", "Tuesday"):
        more = School(name)
        judged_anew(more, more.judged())
        more.of.instructors.add(school.teacher)
    with django_assert_num_queries(len(few)):
        assert "Tuesday: everything" in words(text(teacher, reverse(PAGE)))
