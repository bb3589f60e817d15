"""Coming to the pages of hand-ins: as somebody, with a form that is filled in."""

from typing import Any

from django.test import Client
from django.urls import reverse

from tests.grading.school import RIGHT, School


def client_of(user: Any) -> Client:
    client = Client()
    client.force_login(user)
    return client


def to(name: str, *args: object) -> str:
    return reverse(f"admin:grading_{name}", args=args)


def sent(**answers: Any) -> dict[str, str]:
    return {f"answers.{name}": str(value) for name, value in answers.items() if value is not None}


def handed_in(school: School, **changed: Any) -> Any:
    return hands_in(client_of(school.student), school, **changed)


def hands_in(client: Client, school: School, **changed: Any) -> Any:
    return client.post(to("assignment", school.assignment.pk), {**sent(**RIGHT), "do": "hand in", **changed})
