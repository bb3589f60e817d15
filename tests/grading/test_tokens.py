"""Tokens for programs: told once, kept as a digest, of use to their owner alone and only while both stand."""

from datetime import UTC, datetime, timedelta

import pytest
from django.contrib.auth.models import User

from grading import tokens
from grading.models import ApiToken
from grading.sight import NotYours
from tests.grading.school import person

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 3, 10, 12, 0, tzinfo=UTC)
LATER = timedelta(seconds=90)


@pytest.fixture
def owner() -> User:
    return person("owner")


def test_a_token_is_told_once_and_only_its_digest_is_kept(owner):
    token, secret = tokens.make(owner, "  my laptop ", now=NOW)
    assert secret.startswith("marlow_")
    assert len(secret) > 40
    assert token.name == "my laptop"
    kept = ApiToken.objects.filter(pk=token.pk).values().get()
    assert secret not in str(kept)
    assert secret.removeprefix("marlow_") not in str(kept)
    assert kept["sha256"] == tokens.digest(secret)


def test_two_of_one_name_are_two(owner):
    (one, first), (other, second) = (tokens.make(owner, "laptop", now=NOW) for _ in range(2))
    assert first != second
    tokens.revoke(one, by=owner, now=NOW)
    assert tokens.owner_of(first, NOW) is None
    assert tokens.owner_of(second, NOW) == owner
    assert other.stands


def test_its_use_is_seen_to_the_minute(owner):
    token, secret = tokens.make(owner, "laptop", now=NOW)
    for at, seen in ((NOW, NOW), (NOW + timedelta(seconds=30), NOW), (NOW + LATER, NOW + LATER)):
        assert tokens.owner_of(secret, at) == owner
        token.refresh_from_db()
        assert token.used_at == seen


def test_what_is_no_token_opens_nothing_and_is_no_use_of_one(owner):
    token, secret = tokens.make(owner, "laptop", now=NOW)
    for guess in ("", "marlow_", secret[:-1], secret + " x", secret.upper(), token.sha256, "ü\ud800\x00"):
        assert tokens.owner_of(guess, NOW) is None
    token.refresh_from_db()
    assert token.used_at is None


def test_a_token_of_somebody_who_may_not_come_in_does_nothing_until_they_may_again(owner):
    _, secret = tokens.make(owner, "laptop", now=NOW)
    for field in ("is_active", "is_staff"):
        User.objects.filter(pk=owner.pk).update(**{field: False})
        assert tokens.owner_of(secret, NOW) is None
        User.objects.filter(pk=owner.pk).update(**{field: True})
        assert tokens.owner_of(secret, NOW) == owner


def test_only_its_owner_and_a_superuser_revoke_it_and_once_is_for_good(owner):
    token, secret = tokens.make(owner, "laptop", now=NOW)
    stranger = person("stranger", "Instructor")
    with pytest.raises(NotYours, match="somebody else’s"):
        tokens.revoke(token, by=stranger, now=NOW)
    assert tokens.owner_of(secret, NOW) == owner
    assert tokens.revoke(token, by=person("root", is_superuser=True), now=NOW)
    assert not tokens.revoke(token, by=owner, now=NOW + LATER)
    token.refresh_from_db()
    assert token.revoked_at == NOW
    assert tokens.owner_of(secret, NOW + LATER) is None


def test_a_revoked_token_opens_nothing_by_whichever_clock(owner):
    """Revoked on a box whose clock is ahead of the one that is asked."""
    token, secret = tokens.make(owner, "laptop", now=NOW)
    tokens.revoke(token, by=owner, now=NOW + LATER)
    assert tokens.owner_of(secret, NOW) is None


def test_everybody_sees_their_own_alone_and_a_superuser_what_stands_of_the_others(owner):
    token, _ = tokens.make(owner, "laptop", now=NOW)
    root = person("root", is_superuser=True)
    tokens.make(root, "mine", now=NOW)
    assert list(tokens.own(owner)) == [token]
    assert (list(tokens.others(root)), list(tokens.others(owner))) == ([token], [])
    tokens.revoke(token, by=owner, now=NOW)
    assert list(tokens.others(root)) == []
    owner.is_active = root.is_active = False
    assert list(tokens.own(owner)) == list(tokens.own(root)) == list(tokens.others(root)) == []


@pytest.mark.parametrize("name", ["", " \x00 ", "x" * 61])
def test_a_token_without_a_sensible_name_is_not_made(owner, name):
    with pytest.raises(tokens.NotAToken, match="60 characters"):
        tokens.make(owner, name, now=NOW)
    assert not ApiToken.objects.exists()


def test_twenty_stand_at_the_most_and_a_revoked_one_makes_room(owner):
    made = [tokens.make(owner, f"laptop {number}", now=NOW)[0] for number in range(tokens.MOST)]
    with pytest.raises(tokens.NotAToken, match="revoke one"):
        tokens.make(owner, "one more", now=NOW)
    tokens.revoke(made[0], by=owner, now=NOW)
    assert tokens.make(owner, "one more", now=NOW)


def test_nobody_who_may_not_come_in_makes_one():
    with pytest.raises(NotYours):
        tokens.make(User.objects.create(username="outside"), "laptop", now=NOW)
