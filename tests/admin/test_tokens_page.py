"""Tokens for programs: everybody makes and revokes their own, and reads a new one once."""

import re

import pytest
from django.test import Client
from django.urls import reverse

from grading import tokens
from grading.models import ApiToken
from marlow.clock import real_now
from tests.admin.conftest import account, answer, client_of, text, words

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
        assert other.post(page, {"revoke": number}).status_code == 403
    assert tokens.owner_of(secret, real_now()) is not None


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
