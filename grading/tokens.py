"""Tokens: what a program shows in its owner's place. Only a digest is kept; the token itself is told once.

Arbiters: the owner's row lock, under which the standing tokens are counted; a guarded update that revokes.
"""

import hashlib
import secrets
from datetime import datetime, timedelta
from typing import Any

from django.contrib.auth import get_user_model
from django.db import transaction
from django.db.models import Q, QuerySet

from grading.models import ApiToken
from grading.sight import NotYours

MOST = 20  # standing tokens of one person
PREFIX = "marlow_"  # so that a token left lying about is known for one
USED_EVERY = timedelta(minutes=1)  # `used_at` is as exact as this: a write for each request would be too much


class NotAToken(ValueError):
    """It can't be made like this. Says how it can."""


def make(owner: Any, name: str, *, now: datetime) -> tuple[ApiToken, str]:
    """A new one, and the text that is told this once and can't be found out again. Raises NotYours, NotAToken."""
    if not may(owner):
        raise NotYours("Tokens are for those who may use these pages: ask for your account to be opened.")
    name = name.replace("\x00", "").strip()
    if not 0 < len(name) <= 60:
        raise NotAToken("Name it after what will use it, in 60 characters at the most.")
    secret = PREFIX + secrets.token_urlsafe(32)
    with transaction.atomic():
        get_user_model().objects.select_for_update(no_key=True).get(pk=owner.pk)
        if owner.api_tokens.filter(revoked_at=None).count() >= MOST:
            raise NotAToken(f"You have {MOST} tokens: revoke one that is not used any more.")
        return ApiToken.objects.create(owner=owner, name=name, sha256=digest(secret), made_at=now), secret


def own(viewer: Any) -> QuerySet[ApiToken]:
    return ApiToken.objects.filter(owner=viewer.pk) if viewer.is_active else ApiToken.objects.none()


def others(viewer: Any) -> QuerySet[ApiToken]:
    """Those of everybody else that stand, for a superuser, who may revoke them; nobody else is told of one."""
    if not (viewer.is_active and viewer.is_superuser):
        return ApiToken.objects.none()
    return ApiToken.objects.filter(revoked_at=None).exclude(owner=viewer.pk).select_related("owner")


def revoke(token: ApiToken, *, by: Any, now: datetime) -> bool:
    """It opens nothing from now on. False: it did not before. Raises NotYours."""
    if not by.is_active or (token.owner_id != by.pk and not by.is_superuser):
        raise NotYours("This token is somebody else’s.")
    return bool(ApiToken.objects.filter(pk=token.pk, revoked_at=None).update(revoked_at=now))


def owner_of(secret: str, now: datetime) -> Any | None:
    """Who showed this token; None where it does not stand or its owner may not come in. It is looked up by its
    digest, so that how long it takes says nothing of how much of a guess was right.
    """
    token = ApiToken.objects.select_related("owner").filter(sha256=digest(secret)).first()
    if token is None or not token.stands or not may(token.owner):
        return None
    stale = Q(used_at=None) | Q(used_at__lt=now - USED_EVERY)
    ApiToken.objects.filter(stale, pk=token.pk).update(used_at=now)
    return token.owner


def may(person: Any) -> bool:
    """Whoever may come to the admin's pages may send a program instead."""
    return bool(person.is_active and person.is_staff)


def digest(secret: str) -> str:
    return hashlib.sha256(secret.encode(errors="replace")).hexdigest()
