"""A program with somebody's token, and a class whose assignment is open on the real clock, on which it lives."""

import json
from datetime import timedelta
from typing import Any

from django.contrib.auth.models import User
from django.test import Client

from grading import tokens
from marlow.clock import real_now
from tests.grading.school import RIGHT, School

WEEK = timedelta(days=7)


def school(name: str = "Wednesday", **rules: Any) -> School:
    """Open just now, for the interface lives on the real clock."""
    now = real_now()
    return School(name, {"opens_at": now - WEEK, "due_at": now + WEEK, **rules})


class Caller:
    """A program with this person's token."""

    def __init__(self, owner: User) -> None:
        _, self.secret = tokens.make(owner, "test", now=real_now())
        self.client = Client(enforce_csrf_checks=True, headers={"authorization": f"Bearer {self.secret}"})

    def get(self, address: str, status: int = 200, **asked: Any) -> Any:
        return told(self.client.get(f"/api/{address}", asked), status)

    def post(
        self, address: str, body: Any = None, status: int = 201, kind: str = "application/json", **headers: str
    ) -> Any:
        raw = body if isinstance(body, str | bytes) else json.dumps(body)
        return told(self.client.post(f"/api/{address}", raw, content_type=kind, headers=headers), status)


def told(response: Any, status: int) -> Any:
    assert response.status_code == status, response.content
    assert response["Content-Type"].startswith("application/json")
    found = response.json()
    if status >= 400:
        assert set(found) <= {"code", "detail", "problems"}
        assert "Traceback" not in response.content.decode()
        assert found["detail"].endswith(".")
    return found


def handed(one: School, body: Any = None, status: int = 201) -> Any:
    return Caller(one.student).post(f"assignments/{one.assignment.pk}/attempts", body or {"answers": RIGHT}, status)
