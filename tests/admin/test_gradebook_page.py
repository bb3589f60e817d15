"""The gradebook's page: for who teaches the class, filtered, each grade leading to its attempt."""

import pytest
from django.urls import reverse

from grading import review
from tests.admin.conftest import client_of, text, words
from tests.grading.school import DAY, DUE, INSTRUCTOR, NOON, PASSED, Said, School, person

pytestmark = pytest.mark.django_db


@pytest.fixture
def page() -> str:
    return reverse("admin:grading_gradebook")


def matrix(html: str) -> str:
    """What the table of grades says."""
    table = html.partition('<div class="results gradebook"')[2].partition("</table>")[0]
    return words(table.partition("<tbody")[2])


def test_each_grade_leads_to_the_attempt_that_counts(page):
    school = School(rules={"late_days": 3, "late_percent": 25})
    attempt = school.judged(now=DUE + DAY / 2)
    html = text(client_of(school.teacher), page)
    assert reverse("admin:grading_attempt", args=[attempt.pk]) in html
    assert "5 of 8" in words(html)
    assert "−1 for 1 day late" in words(html)
    assert "not released" in matrix(html)
    review.release(school.assignment, by=school.teacher, now=NOON)
    assert "not released" not in matrix(text(client_of(school.teacher), page))


def test_it_is_narrowed_by_class_student_exercise_and_state(page):
    school, other = School(), School("Thursday")
    other.of.instructors.add(school.teacher)
    open_ = school.enrolled("open")
    school.judged()
    school.judged({"essay": Said(INSTRUCTOR, 0, 4), "boxes": Said(PASSED, 3, 3)}, student=open_)
    client = client_of(school.teacher)

    def table(**asked: object) -> str:
        given = {name: str(value) for name, value in asked.items()}
        return matrix(text(client, page, **given))

    assert "student-Thursday" in table()  # the first class by name
    both = table(**{"class": school.of.pk})
    assert "student-Wednesday" in both
    assert "open" in both
    assert "student-Thursday" not in both
    assert "student-Wednesday" not in table(**{"class": school.of.pk, "student": "OPE"})
    narrowed = table(**{"class": school.of.pk, "state": "incomplete"})
    assert "student-Wednesday" not in narrowed
    assert "3 of 7" in narrowed
    assert "of 8" not in table(**{"class": school.of.pk, "exercise": "slot"})
    assert "Nobody’s work is like that" in words(text(client, page, state="late"))


def test_another_s_class_is_not_there_and_nothing_of_it_is_told(page):
    school, other = School(), School("Thursday")
    client = client_of(other.teacher)
    for number in (str(school.of.pk), "9" * 30, "x", "²", "-1"):
        assert client.get(page, {"class": number}).status_code == 404
    assert "student-Wednesday" not in text(client, page)
    assert client_of(school.student).get(page).status_code == 403
    assert "You teach no class" in text(client_of(person("new", "Instructor")), page)


def test_names_are_text(page):
    school = School()
    school.enrolled("<script>alert(1)</script>")
    assert "<script>alert(1)" not in text(client_of(school.teacher), page)
