"""The gradebook's files and pictures, with requests made by hand: who gets them, and who may bring one back."""

import pytest
from django.contrib.auth.models import Permission
from django.core import signing
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse

from grading import review
from grading.admin.filing import NEEDS, SALT
from grading.models import ReviewItem
from tests.admin.conftest import answer, client_of, words
from tests.grading.book import edited, exported
from tests.grading.school import NOON, School, person

pytestmark = pytest.mark.django_db


def address(school: School, what: str) -> str:
    return reverse(f"admin:grading_gradebook_{what}", args=[school.of.pk])


def posted(client: Client, school: School, file: bytes):
    return client.post(address(school, "import"), {"file": SimpleUploadedFile("book.csv", file)})


def signed(page) -> str:
    return page.context["signed"]


@pytest.mark.parametrize("what", ["lines", "totals"])
@pytest.mark.parametrize("kind", ["csv", "xlsx"])
def test_each_file_is_there_for_who_teaches_the_class_and_for_nobody_else(what, kind):
    school, other = School(), School("Thursday")
    school.judged()
    asked = {"what": what, "kind": kind}
    answer = client_of(school.teacher).get(address(school, "file"), asked)
    assert answer.status_code == 200
    assert answer["Content-Disposition"] == f'attachment; filename="wednesday-{what}.{kind}"'
    assert "no-store" in answer["Cache-Control"]
    assert client_of(other.teacher).get(address(school, "file"), asked).status_code == 404
    for user in (school.student, person("operator", "Operator")):
        assert client_of(user).get(address(school, "file"), asked).status_code == 403
    assert "/login/" in Client().get(address(school, "file"), asked)["Location"]


@pytest.mark.parametrize("asked", [{}, {"what": "lines", "kind": "html"}, {"what": "answers", "kind": "csv"}])
def test_there_is_no_other_file(asked):
    school = School()
    assert client_of(school.teacher).get(address(school, "file"), asked).status_code == 404


def test_a_file_is_shown_before_it_is_written():
    school = School()
    school.judged()
    client = client_of(school.teacher)
    page = posted(client, school, edited(exported(school), person="1", reason="<b>Half</b> right."))
    assert page.status_code == 200
    assert "1 to write" in words(page.content.decode())
    assert "<b>Half</b>" not in page.content.decode()
    assert not ReviewItem.objects.exists()
    assert "1 correction written" in answer(client, address(school, "import"), corrections=signed(page))
    assert ReviewItem.objects.get().points == 1


def test_conflicts_and_bad_rows_are_shown_with_their_sentences():
    school = School()
    attempt = school.judged()
    file = edited(edited(exported(school), person="1", reason="So."), check="boxes", person="99", reason="So.")
    review.override(attempt, "refused", 2, "All right.", by=school.teacher, now=NOON)
    page = words(posted(client_of(school.teacher), school, file).content.decode())
    assert "1 in conflict, 1 not understood" in page
    assert "All right." in page
    assert "from 0 to 3" in page


@pytest.mark.parametrize("file", [b"", b"no gradebook", b"PK\x03\x04"])
def test_what_is_no_file_of_ours_is_a_sentence_beside_the_field(file):
    school = School()
    page = posted(client_of(school.teacher), school, file)
    assert page.status_code == 422
    assert 'aria-invalid="true"' in page.content.decode()


def test_only_what_was_shown_to_this_very_person_is_written():
    school = School()
    school.judged()
    colleague = person("colleague", "Instructor")
    school.of.instructors.add(colleague)
    seen = signed(posted(client_of(school.teacher), school, edited(exported(school), person="1", reason="So.")))
    forged = signing.dumps(signing.loads(seen, salt=SALT), salt="another", compress=True)
    for user, word in ((colleague, seen), (school.teacher, forged), (school.teacher, seen[:-3]), (colleague, "")):
        answer = client_of(user).post(address(school, "import"), {"corrections": word})
        assert "not what was shown to you" in words(answer.content.decode())
    assert not ReviewItem.objects.exists()


def test_who_stopped_teaching_since_the_look_writes_nothing():
    school = School()
    school.judged()
    client = client_of(school.teacher)
    seen = signed(posted(client, school, edited(exported(school), person="1", reason="So.")))
    school.of.instructors.clear()
    assert client.post(address(school, "import"), {"corrections": seen}).status_code == 404
    own = School("Friday")
    own.of.instructors.add(school.teacher)
    assert client.post(address(own, "import"), {"corrections": seen}).status_code == 403
    assert not ReviewItem.objects.exists()


def test_who_may_only_look_exports_and_imports_nothing():
    school = School()
    school.judged()
    viewer = person("viewer", "Student")
    viewer.user_permissions.set(
        Permission.objects.filter(
            content_type__app_label="grading", codename__in=[n.partition(".")[2] for n in NEEDS]
        )
    )
    school.of.instructors.add(viewer)
    file, client = edited(exported(school), person="1", reason="So."), client_of(viewer)
    assert client.get(address(school, "file"), {"what": "lines", "kind": "csv"}).status_code == 200
    assert client.get(address(school, "import")).status_code == 403
    assert posted(client, school, file).status_code == 403
    assert address(school, "import") not in client.get(reverse("admin:grading_gradebook")).content.decode()


@pytest.mark.parametrize("role", ["another teacher", "student", "operator"])
def test_nobody_else_brings_a_file_back(role):
    school = School()
    school.judged()
    people = {
        "another teacher": lambda: School("Thursday").teacher,
        "student": lambda: school.student,
        "operator": lambda: person("operator", "Operator"),
    }
    client = client_of(people[role]())
    assert posted(client, school, edited(exported(school), person="1", reason="So.")).status_code in (403, 404)
    assert not ReviewItem.objects.exists()


def test_it_is_not_done_without_the_form_s_own_key():
    school = School()
    client = client_of(school.teacher, enforce_csrf_checks=True)
    assert posted(client, school, b"x").status_code == 403


def test_the_picture_is_an_image_of_its_own_that_says_itself_in_words():
    school, other = School(), School("Thursday")
    school.judged()
    client, picture = client_of(school.teacher), reverse("admin:grading_distribution", args=[school.assignment.pk])
    page = client.get(reverse("admin:grading_gradebook")).content.decode()
    assert f'<img src="{picture}" alt="Bars for tenths of the points; of 1 complete grade the most, 1' in page
    assert "<svg" not in page.partition('id="content-main"')[2].partition('id="footer"')[0]
    answer = client.get(picture)
    assert (answer.status_code, answer["Content-Type"]) == (200, "image/svg+xml")
    assert client_of(other.teacher).get(picture).status_code == 404
    assert client_of(school.student).get(picture).status_code == 403
    assert answer.content.startswith(b"<?xml")
