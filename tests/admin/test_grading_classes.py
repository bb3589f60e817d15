"""Classes, what is given to them and extensions in the admin: each role with requests made by hand, inside its class
and outside it.
"""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from grading.models import Assignment, Class, Enrolment, Extension
from tests.admin.conftest import PEOPLE, account, client_of, text, words
from tests.admin.desk import outsider
from tests.grading.school import DUE, NOON, OPENS, School, person

pytestmark = pytest.mark.django_db
ROWS = (Class, Assignment, Enrolment, Extension)


@pytest.fixture
def other(school: School) -> School:
    """A class that the school's teacher does not teach."""
    return School("Thursday")


def to(model: str, page: str = "changelist", *args: object) -> str:
    return reverse(f"admin:grading_{model}_{page}", args=args)


def everything() -> list[Any]:
    return [list(model._default_manager.order_by("pk").values_list()) for model in ROWS]


def given(of_class: Class, **more: Any) -> dict[str, Any]:
    """A form of an assignment as it is posted."""
    return {
        **{"of": of_class.pk, "exercise": "slot", "opens_at_0": "2026-03-02", "opens_at_1": "09:00"},
        **{"due_at_0": "2026-03-13", "due_at_1": "17:00", "late_days": 2, "late_percent": 10, "attempts": ""},
        **{"cooldown": 0, "counts": "best", "checks_before_due": "on"},
        **more,
    }


def classed(of: Class, enrol: str = "", **more: Any) -> dict[str, Any]:
    """A form of a class, with students to be enrolled."""
    there = list(of.enrolments.all())
    rows: dict[str, Any] = {f"enrolments-{place}-id": one.pk for place, one in enumerate(there)}
    rows |= {f"enrolments-{place}-of": of.pk for place in range(len(there))}
    totals = {"enrolments-TOTAL_FORMS": len(there), "enrolments-INITIAL_FORMS": len(there)}
    return {"name": of.name, "zone": of.zone, "enrol": enrol, **totals, **rows, **more}


def more_time(chosen: Assignment, name: str, **more: Any) -> dict[str, Any]:
    return {"assignment": chosen.pk, "student": name, "days": 3, "attempts": 1, "why": "Ill.", **more}


def extended(school: School, student: User | None = None) -> Extension:
    keys = {"assignment": school.assignment, "student": student or school.student, "given_by": school.teacher}
    return Extension.objects.create(**keys, days=1, attempts=0, why="Ill.", at=NOON)


def problem(response: Any) -> str:
    assert response.status_code == 200
    return words(response.content.decode())


@pytest.mark.parametrize("who", [*PEOPLE, "its student", "another's teacher", "of both"])
def test_nobody_outside_a_class_changes_anything_of_it(who, school, other):
    client = outsider(who, school, other)
    extension, before = extended(school), everything()
    enrolment = school.of.enrolments.get(student=school.student)
    posts = [
        (to("class", "add"), classed(school.of, name="Mine", zone="UTC")),
        (to("class", "change", school.of.pk), classed(school.of, name="Mine")),
        (to("class", "change", school.of.pk), classed(school.of, **{"enrolments-0-DELETE": "on"})),
        (to("class", "change", school.of.pk), classed(school.of, "student-Thursday")),
        (to("class", "delete", school.of.pk), {"post": "yes"}),
        (to("assignment", "add"), given(school.of)),
        (to("assignment", "change", school.assignment.pk), given(school.of, late_days=9)),
        (to("assignment", "delete", school.assignment.pk), {"post": "yes"}),
        (to("extension", "add"), more_time(school.assignment, school.student.username)),
        (to("extension", "change", extension.pk), more_time(school.assignment, school.student.username)),
        (to("extension", "delete", extension.pk), {"post": "yes"}),
    ]
    for model, row in (("class", school.of), ("assignment", school.assignment), ("extension", extension)):
        deleted = {"action": "delete_selected", "_selected_action": [row.pk], "post": "yes", "index": "0"}
        posts.append((to(model), deleted))
    for address, form in posts:
        client.post(address, form)
        assert everything() == before, (address, form)
    assert enrolment in school.of.enrolments.all()


def deleted(client: Client, model: str, row: Any) -> list[str]:
    """What a person reads who asks for it on the row's page, and on the list."""
    chosen = {"action": "delete_selected", "_selected_action": [row.pk], "post": "yes", "index": "0"}
    alone = client.post(to(model, "delete", row.pk), {"post": "yes"})
    return [words(response.content.decode()) for response in (alone, client.post(to(model), chosen, follow=True))]


def test_an_extension_is_deleted_by_nobody(school):
    """It would be gone from the history, and the attempts would be charged as if it were there."""
    root, extension = client_of(person("root", is_superuser=True)), extended(school)
    deleted(root, "extension", extension)
    assert Extension.objects.get() == extension
    assert "Delete" not in text(root, to("extension", "change", extension.pk))
    assert "delete_selected" not in text(root, to("extension"))


def test_what_has_work_in_it_is_not_deleted_and_the_page_says_what_is_in_the_way(school):
    school.hand_in()
    root, before = client_of(person("root", is_superuser=True)), everything()
    for model, row, inside in (
        ("class", school.of, "Assignment: advisory, Wednesday"),
        ("class", school.of, "Enrolment: student-Wednesday in Wednesday"),
        ("assignment", school.assignment, "Submission: student-Wednesday: advisory, Wednesday"),
    ):
        for page in deleted(root, model, row):
            assert "would require deleting the following protected related objects" in page, model
            assert inside in page
    assert everything() == before


def test_what_is_given_and_has_no_work_in_it_yet_can_be_taken_back_by_a_superuser(school):
    root = client_of(person("root", is_superuser=True))
    deleted(root, "assignment", school.assignment)
    assert not Assignment.objects.exists()


@pytest.mark.parametrize("who", [*PEOPLE, "its student", "another's teacher", "of both"])
def test_who_is_in_a_class_is_read_by_who_teaches_it(who, school, other):
    classmate = school.enrolled("a-classmate")
    client, extension = outsider(who, school, other), extended(school, classmate)
    for address in (
        *(to("class"), to("class", "change", school.of.pk), to("class", "history", school.of.pk)),
        *(to("extension"), to("extension", "change", extension.pk), to("extension", "history", extension.pk)),
        *(to("extension", "add"), to("assignment", "add")),
    ):
        page = client.get(address, follow=True).content.decode()
        assert "a-classmate" not in page, address
        assert "teacher-Wednesday" not in page, address
    assert "a-classmate" in text(client_of(school.teacher), to("class", "change", school.of.pk))
    assert "a-classmate" in text(client_of(school.teacher), to("extension"))


def test_an_instructor_reads_and_changes_the_classes_they_teach(teacher, school, other):
    page = text(teacher, to("class"))
    assert "Wednesday" in page
    assert "Thursday" not in page
    page = text(teacher, to("class", "change", school.of.pk))
    assert "student-Wednesday" in page
    assert 'name="instructors"' not in page
    form = classed(school.of, "student-Thursday", zone="Europe/Paris", instructors=[other.teacher.pk])
    assert teacher.post(to("class", "change", school.of.pk), form).status_code == 302
    school.of.refresh_from_db()
    assert school.of.zone == "Europe/Paris"
    assert set(school.of.students.all()) == {school.student, other.student}
    assert list(school.of.instructors.all()) == [school.teacher]


def test_who_is_taken_out_keeps_their_work(teacher, school):
    attempt = school.judged()
    form = classed(school.of, **{"enrolments-0-DELETE": "on"})
    assert teacher.post(to("class", "change", school.of.pk), form).status_code == 302
    assert not school.of.enrolments.exists()
    assert attempt.submission.made.get() == attempt


@pytest.mark.parametrize("name", ["nobody", "left", "student-Thursday, nobody", "1", "=1+1"])
def test_who_cannot_be_enrolled_is_told_of_at_the_field(name, teacher, school, other):
    person("left", is_active=False)
    before = everything()
    response = teacher.post(to("class", "change", school.of.pk), classed(school.of, name))
    assert f"There is no active account of these user names: {name.split()[-1]}." in problem(response)
    assert everything() == before


def test_a_list_is_enrolled_once_however_often_it_is_pasted(teacher, school, other):
    pasted = "student-Thursday,\r\n student-Wednesday\tstudent-Thursday;\r\n\r\n"
    for _ in range(2):
        assert teacher.post(to("class", "change", school.of.pk), classed(school.of, pasted)).status_code == 302
    assert set(school.of.students.all()) == {school.student, other.student}
    assert school.of.enrolments.count() == 2


def test_a_hand_made_row_enrols_nobody(teacher, school, other):
    row = {"enrolments-1-student": other.student.pk, "enrolments-1-of": school.of.pk, "enrolments-TOTAL_FORMS": 2}
    teacher.post(to("class", "change", school.of.pk), {**classed(school.of), **row})
    assert list(school.of.students.all()) == [school.student]


def test_a_superuser_makes_a_class_and_says_who_teaches_it(admin_client, school):
    form = {"name": "Friday", "zone": "Europe/London", "instructors": [school.teacher.pk]}
    counts = {"enrolments-TOTAL_FORMS": 0, "enrolments-INITIAL_FORMS": 0}
    assert admin_client.post(to("class", "add"), {**form, **counts}).status_code == 302
    assert list(Class.objects.get(name="Friday").instructors.all()) == [school.teacher]
    response = admin_client.post(to("class", "add"), {**form, **counts, "name": "Sunday", "zone": "Mars/Base"})
    assert "is no time zone" in problem(response)


@pytest.mark.parametrize("who", ["student-Wednesday", "teacher-Wednesday", "Operator"])
def test_accounts_are_listed_to_nobody_who_may_not_see_them(who, school):
    user = User.objects.filter(username=who).first() or account(who)
    asked = {"app_label": "grading", "model_name": "class", "field_name": "instructors", "term": "a"}
    assert client_of(user).get(reverse("admin:autocomplete"), asked).status_code == 403


def test_deadlines_are_typed_and_shown_in_the_zone_of_the_class(school):
    school.of.zone = "Pacific/Auckland"
    school.of.save()
    teacher = client_of(school.teacher)
    assert teacher.post(to("assignment", "add"), given(school.of)).status_code == 302
    made = Assignment.objects.get(exercise="slot")
    assert made.due_at == datetime(2026, 3, 13, 4, 0, tzinfo=UTC)
    page = text(teacher, to("assignment", "change", made.pk))
    assert 'value="13/03/2026"' in page
    assert 'value="17:00:00"' in page
    assert "in Pacific/Auckland" in page
    assert "17:00 (Pacific/Auckland)" in words(text(teacher, to("assignment")))
    again = given(school.of, late_days=3)
    assert teacher.post(to("assignment", "change", made.pk), again).status_code == 302
    made.refresh_from_db()
    assert (made.due_at, made.late_days) == (datetime(2026, 3, 13, 4, 0, tzinfo=UTC), 3)


def test_an_hour_that_the_clocks_leave_out_is_no_deadline(teacher, school):
    form = given(school.of, due_at_0="2026-03-29", due_at_1="01:30")
    assert "couldn’t be interpreted in time zone Europe/London" in problem(
        teacher.post(to("assignment", "add"), form)
    )


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"exercise": "advisory"}, "already exists"),
        ({"exercise": "nothing"}, "Select a valid choice"),
        ({"due_at_0": "2026-03-01"}, "The deadline is not after the opening"),
        ({"due_at_0": "9999-12-31"}, "Choose a year from 2000 to"),
        ({"late_percent": 101}, "less than or equal to 100"),
        ({"late_days": 400}, "Give 366 days at the most"),
        ({"attempts": 0}, "greater than or equal to 1"),
        ({"of": "x"}, "Select a valid choice"),
        ({"of": "9" * 30}, "Select a valid choice"),
        ({"due_at_0": "soon"}, "Enter a valid date"),
    ],
)
def test_what_makes_no_sense_is_a_sentence_and_gives_nothing(wrong, told, teacher, school):
    response = teacher.post(to("assignment", "add"), given(school.of, **wrong))
    assert told in problem(response)
    assert Assignment.objects.count() == 1


def test_nothing_is_given_to_a_class_that_somebody_else_teaches(teacher, school, other):
    assert "Select a valid choice" in problem(teacher.post(to("assignment", "add"), given(other.of)))
    assert "Thursday" not in text(teacher, to("assignment", "add"))
    assert "Thursday" not in text(teacher, to("assignment"))
    assert not Assignment.objects.filter(exercise="slot").exists()


def test_an_assignment_stays_with_its_class_and_its_exercise(teacher, school):
    second = Class.objects.create(name="Saturday")
    second.instructors.add(school.teacher)
    assert teacher.post(to("assignment", "change", school.assignment.pk), given(second)).status_code == 302
    school.assignment.refresh_from_db()
    assert (school.assignment.of, school.assignment.exercise) == (school.of, "advisory")
    assert school.assignment.late_days == 2


def test_a_student_reads_what_is_given_to_their_class_and_no_other_s(school, other):
    student = client_of(school.student)
    assert "Wednesday" in text(student, to("assignment"))
    assert "Thursday" not in text(student, to("assignment"))
    assert 'name="_save"' not in text(student, to("assignment", "change", school.assignment.pk))
    assert student.get(to("assignment", "change", other.assignment.pk)).status_code == 302


def test_who_only_reads_an_assignment_reads_its_zone_and_is_led_to_no_page_that_is_closed(teacher):
    school = School("Friday", zone="Pacific/Auckland")
    address, door = to("assignment", "change", school.assignment.pk), to("class", "change", school.of.pk)
    page = text(client_of(school.student), address)
    assert "Class: Friday" in words(page)
    assert f'href="{door}"' not in page
    for moment in ("Mon 2 Mar 2026, 22:00 (Pacific/Auckland)", "Sat 14 Mar 2026, 06:00 (Pacific/Auckland)"):
        assert moment in words(page)
    page = text(client_of(school.teacher), address)
    assert f'href="{door}"' in page
    assert 'name="due_at_0"' in page


def test_an_extension_is_given_and_given_anew_in_one_s_own_name(teacher, school, other):
    form = more_time(school.assignment, school.student.username, given_by=other.teacher.pk, at="2020-01-01")
    assert teacher.post(to("extension", "add"), form).status_code == 302
    told = "student-Wednesday, advisory, Wednesday: 3 days and 1 attempt more"
    assert told in words(text(teacher, to("extension")))
    made = Extension.objects.get()
    assert (made.days, made.attempts, made.given_by) == (3, 1, school.teacher)
    assert made.at > DUE - timedelta(days=365)
    anew = more_time(other.assignment, other.student.username, days=5)
    assert teacher.post(to("extension", "change", made.pk), anew).status_code == 302
    made.refresh_from_db()
    assert (made.days, made.student, made.assignment) == (5, school.student, school.assignment)


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"student": "student-Thursday"}, "is not in Wednesday: enrol them first."),
        ({"student": "nobody"}, "There is no active account of this user name."),
        ({"days": 400}, "Give from 0 to 366 days."),
        ({"attempts": 2000}, "Give from 0 to 1000 attempts."),
        ({"why": "  "}, "This field is required"),
        ({"assignment": "0"}, "Select a valid choice"),
    ],
)
def test_an_extension_that_makes_no_sense_is_a_sentence_at_its_field(wrong, told, teacher, school, other):
    response = teacher.post(to("extension", "add"), more_time(school.assignment, school.student.username, **wrong))
    assert told in problem(response)
    (name,) = wrong
    assert list(response.context["adminform"].form.errors) == [name]
    assert not Extension.objects.exists()


def test_who_has_left_the_class_is_told_of_above_the_form_that_can_not_change_them(teacher, school):
    made = extended(school)
    school.of.enrolments.all().delete()
    form = more_time(school.assignment, school.student.username, days=400)
    response = teacher.post(to("extension", "change", made.pk), form)
    assert list(response.context["adminform"].form.errors) == ["days", "__all__"]
    assert "is not in Wednesday: enrol them first." in problem(response)


def test_no_extension_is_given_in_a_class_that_somebody_else_teaches(teacher, school, other):
    form = more_time(other.assignment, other.student.username)
    assert "Select a valid choice" in problem(teacher.post(to("extension", "add"), form))
    assert not Extension.objects.exists()


def test_it_is_not_done_without_the_form_s_own_key(school):
    client = client_of(school.teacher, enforce_csrf_checks=True)
    assert client.post(to("assignment", "add"), given(school.of)).status_code == 403
    assert not Assignment.objects.filter(exercise="slot").exists()


def test_lists_cost_the_same_however_many_rows_they_have(teacher, school, django_assert_num_queries):
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    addresses = (to("assignment"), to("class"), to("extension"))
    extended(school)
    with CaptureQueriesContext(connection) as few:
        for address in addresses:
            text(teacher, address)
    for name in ("Monday", "Tuesday", "Sunday"):
        more = School(name)
        more.of.instructors.add(school.teacher)
        extended(more)
    with django_assert_num_queries(len(few)):
        for address in addresses:
            text(teacher, address)


def test_opens_is_as_it_was_when_nothing_is_typed_anew(teacher, school):
    page = text(teacher, to("assignment", "change", school.assignment.pk))
    assert 'value="09:00:00"' in page
    assert Assignment.objects.get().opens_at == OPENS
