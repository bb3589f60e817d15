"""People who come to the admin, and the Wednesday they come to see."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.apps import apps
from django.contrib.auth.models import Group, User
from django.core.management import call_command
from django.db import connection, transaction
from django.test import Client, override_settings
from playwright.sync_api import Browser, Page
from pytest_django.plugin import DjangoDbBlocker

from marlow import roles
from tests import evening
from tests.admin.chromium import PASSWORD, Complaints, Window, launched
from tests.grading.school import School

# Everybody who may turn up, and what they may do by the table. None: whoever is not staff is asked to log in.
PEOPLE: dict[str, list[str] | None] = {
    **roles.ROLES,
    "staff without a group": [],
    "student without staff status": None,
    "anonymous": None,
}


@pytest.fixture(autouse=True, scope="package")
def _plain() -> Iterator[None]:
    """Pages over plain HTTP; passwords that take no time to hash."""
    quick = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    with override_settings(SECURE_SSL_REDIRECT=False, PASSWORD_HASHERS=quick):
        yield


def client_of(user: User, **how: Any) -> Client:
    client = Client(**how)
    client.force_login(user)
    return client


def account(person: str) -> User:
    roles.apply(apps)
    user = User.objects.create_user(person.replace(" ", "-"), password=PASSWORD)
    user.is_staff = person != "student without staff status"
    user.save()
    group = {"student without staff status": "Student"}.get(person, person)
    user.groups.set(Group.objects.filter(name=group))
    return user


@contextmanager
def committed() -> Iterator[None]:
    """What is written here is committed, and gone afterwards; the rows that were there before are there again, under
    the numbers that they had, for tests with real commits bring the migrations' rows back by number. The sequences go
    on counting: begun again at one, they would hand out those rows' numbers a second time.
    """
    before = connection.creation.serialize_db_to_string()
    yield
    call_command("flush", interactive=False, verbosity=0, inhibit_post_migrate=True, reset_sequences=False)
    connection.creation.deserialize_db_from_string(before)


@pytest.fixture
def come(db: None) -> Callable[[str], Client]:
    """A client that has logged in as this person."""

    return lambda person: Client() if person == "anonymous" else client_of(account(person))


@pytest.fixture
def student(come: Callable[[str], Client]) -> Client:
    return come("Student")


@pytest.fixture
def school() -> School:
    return School()


@pytest.fixture
def teacher(school: School) -> Client:
    return client_of(school.teacher)


@pytest.fixture(scope="module")
def wednesday(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[evening.Wednesday]:
    """Played once a module. What a test does to it is taken back after the test, and all of it after the last one."""
    with django_db_blocker.unblock(), transaction.atomic():
        yield evening.play(lost=True)
        transaction.set_rollback(True)


@pytest.fixture(scope="module")
def browser(house: str) -> Iterator[Browser]:
    """Each module says what its `house` shows. Closed before the server is, so that no line to it is left open."""
    with launched() as chromium:
        yield chromium


@pytest.fixture
def window(browser: Browser, house: str) -> Iterator[Window]:
    """Opens an empty page; closes it after the test."""
    contexts = []

    def open_page(**how: Any) -> tuple[Page, Complaints]:
        contexts.append(browser.new_context(base_url=house, **how))
        page = contexts[-1].new_page()
        return page, Complaints().of(page)

    yield open_page
    for context in contexts:
        context.close()


def text(client: Client, address: str, **asked: str) -> str:
    response = client.get(address, asked)
    assert response.status_code == 200, address
    return response.content.decode()


def answer(client: Client, address: str, **form: object) -> str:
    """What a person reads after sending this form."""
    response = client.post(address, form, follow=True)
    assert response.status_code == 200, address
    return words(response.content.decode())


def words(page: str) -> str:
    """What a person reads: no tags, single spaces."""
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", page))
