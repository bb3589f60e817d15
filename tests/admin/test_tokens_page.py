"""Tokens for programs: everybody makes and revokes their own, and reads a new one once."""

import re
from datetime import UTC, datetime

import pytest
from django.test import Client
from django.urls import reverse

from grading import tokens
from grading.models import ApiToken
from marlow.clock import real_now
from tests.admin.conftest import account, answer, client_of, text, words
from tests.grading.school import person

pytestmark = pytest.mark.django_db


@pytest.fixture
def page() -> str:
    return reverse("admin:grading_tokens")


def made(client: Client, page: str, name: str = "my laptop") -> str:
    """What the page tells of a new one."""
    response = client.post(page, {"name": name})
    assert response.status_code == 200
    assert "no-store" in response["Cache-Control"]
    (secret,) = re.findall(r'<code id="secret">([^<]+)</code>', response.content.decode())
    return str(secret)


def test_a_token_is_shown_once_and_opens_the_interface(student, page):
    secret = made(student, page)
    assert secret not in text(student, page)
    assert "my laptop" in words(text(student, page))
    response = Client().get("/api/assignments", headers={"authorization": f"Bearer {secret}"})
    assert (response.status_code, response.json()) == (200, [])
    assert "never" not in words(text(student, page))


def test_a_revoked_token_is_told_so_and_opens_nothing(student, page):
    secret = made(student, page)
    token = ApiToken.objects.get()
    told = answer(student, page, revoke=token.pk)
    assert "The token my laptop opens nothing any more" in told
    assert "Revoke my laptop" not in told
    made(student, page, "another")
    page_now = words(text(student, page))
    assert page_now.index("another") < page_now.index("my laptop")  # what stands comes first
    assert tokens.owner_of(secret, real_now()) is None


def test_nobody_sees_or_revokes_another_s(come, page):
    student, other = come("Student"), come("Instructor")
    secret = made(student, page, "the student's laptop")
    token = ApiToken.objects.get()
    assert "laptop" not in words(text(other, page))
    for number in (token.pk, token.pk + 1, "x", "-1", "", "9" * 30, "²"):
        assert other.post(page, {"revoke": number}).status_code == 404
    assert tokens.owner_of(secret, real_now()) is not None


def test_a_superuser_sees_what_stands_of_everybody_else_and_revokes_it(student, come, page):
    secret = made(student, page, "a lost laptop")
    revoked, _ = tokens.make(account("Instructor"), "an old one", now=real_now())
    tokens.revoke(revoked, by=revoked.owner, now=real_now())
    token, root = ApiToken.objects.get(name="a lost laptop"), person("root", is_superuser=True)
    client = client_of(root)
    read = text(client, page)
    assert "a lost laptop Student" in words(read)
    assert "an old one" not in read
    assert token.sha256 not in read
    assert "The token a lost laptop of Student opens nothing any more." in answer(client, page, revoke=token.pk)
    assert tokens.owner_of(secret, real_now()) is None
    assert "Tokens of others" not in text(client, page)


def test_its_times_are_in_a_zone_that_is_named(student, page):
    made(student, page)
    ApiToken.objects.update(made_at=datetime(2026, 7, 1, 23, 30, tzinfo=UTC), used_at=None)
    assert "Thu 2 Jul 2026, 00:30 (Europe/London)" in words(text(student, page))


def test_a_token_without_a_name_is_a_sentence_beside_the_field(student, page):
    response = student.post(page, {"name": "x" * 61})
    assert "in 60 characters at the most" in words(response.content.decode())
    assert 'aria-invalid="true"' in response.content.decode()
    assert not ApiToken.objects.exists()


def test_it_is_not_done_without_the_form_s_own_key(page):
    client = client_of(account("Student"), enforce_csrf_checks=True)
    assert client.post(page, {"name": "my laptop"}).status_code == 403
    assert not ApiToken.objects.exists()


def test_a_name_is_text_and_nothing_else(student, page):
    made(student, page, "<script>alert(1)</script>")
    assert "<script>alert(1)" not in text(student, page)
