"""People who come to the admin, and the Wednesday they come to see."""

from collections.abc import Callable

import pytest
from django.apps import apps
from django.contrib.auth.models import Group, User
from django.test import Client

from marlow import roles
from tests import evening

# Everybody who may turn up, and what they may do by the table. None: whoever is not staff is asked to log in.
PEOPLE: dict[str, list[str] | None] = {
    **roles.ROLES,
    "staff without a group": [],
    "student without staff status": None,
    "anonymous": None,
}


@pytest.fixture(autouse=True)
def _plain(settings):
    """Pages over plain HTTP; passwords that take no time to hash."""
    settings.SECURE_SSL_REDIRECT = False
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]


def account(person: str) -> User:
    roles.apply(apps)
    user = User.objects.create_user(person.replace(" ", "-"), password="a long enough word")
    user.is_staff = person != "student without staff status"
    user.save()
    group = {"student without staff status": "Student"}.get(person, person)
    user.groups.set(Group.objects.filter(name=group))
    return user


@pytest.fixture
def come(db: None) -> Callable[[str], Client]:
    """A client that has logged in as this person."""

    def client_of(person: str) -> Client:
        client = Client()
        if person != "anonymous":
            client.force_login(account(person))
        return client

    return client_of


@pytest.fixture
def wednesday(db: None) -> evening.Wednesday:
    return evening.play(lost=True)
