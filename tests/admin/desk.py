"""Coming to the pages of hand-ins: as somebody, with a form that is filled in."""

from typing import Any

from django.test import Client
from django.urls import reverse

from tests.admin.conftest import account, client_of
from tests.grading.school import RIGHT, School, both

# Who does not teach the school's class: by role, or by what they are to it and to another class.
OUTSIDERS = ["Operator", "Instructor", "Student", "its student", "another's teacher", "of both"]


def outsider(who: str, school: School, other: School) -> Client:
    if who == "anonymous":
        return Client()
    own = {"its student": school.student, "another's teacher": other.teacher}
    return client_of(both(school, other) if who == "of both" else own.get(who) or account(who))


def to(name: str, *args: object) -> str:
    return reverse(f"admin:grading_{name}", args=args)


def sent(**answers: Any) -> dict[str, str]:
    return {f"answers.{name}": str(value) for name, value in answers.items() if value is not None}


def handed_in(school: School, **changed: Any) -> Any:
    return hands_in(client_of(school.student), school, **changed)


def hands_in(client: Client, school: School, **changed: Any) -> Any:
    return client.post(to("assignment", school.assignment.pk), {**sent(**RIGHT), "do": "hand in", **changed})
