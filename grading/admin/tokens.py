"""Tokens for programs: one's own, made and revoked; for a superuser everybody's, to be revoked. A new one is shown in
answer to its making, never again.
"""

from typing import Any

from django.conf import settings
from django.contrib import messages
from django.db.models import F
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.cache import add_never_cache_headers

from grading import tokens
from grading.admin.chosen import chosen
from marlow.clock import real_now
from shop.admin.page import Page, render


def tokens_view(request: HttpRequest) -> HttpResponse:
    if request.method != "POST":
        return _page(request)
    if "revoke" in request.POST:
        return _revoked(request, request.POST["revoke"])
    return _made(request, request.POST.get("name", ""))


def _page(request: HttpRequest, **more: Any) -> HttpResponse:
    """With what is secret in it, so nothing on the way keeps it."""
    mine = tokens.own(request.user).order_by(F("revoked_at").desc(nulls_first=True), "-made_at")
    others = tokens.others(request.user).order_by("owner__username", "-made_at")
    answer = render(
        request,
        "admin/grading/tokens.html",
        PAGE.title,
        tokens=mine,
        others=others,
        zone=settings.TIME_ZONE,
        **more,
    )
    add_never_cache_headers(answer)
    return answer


def _made(request: HttpRequest, name: str) -> HttpResponse:
    try:
        token, secret = tokens.make(request.user, name, now=real_now())
    except tokens.NotAToken as wrong:
        return _page(request, problem=str(wrong), name=name)
    return _page(request, made=token, secret=secret)


def _revoked(request: HttpRequest, number: str) -> HttpResponse:
    """Raises Http404 for what is not theirs to revoke, whether it is there or not."""
    token = chosen(tokens.own(request.user) | tokens.others(request.user), number)
    if tokens.revoke(token, by=request.user, now=real_now()):
        whose = "" if token.owner_id == request.user.pk else f" of {token.owner}"
        messages.success(request, f"The token {token.name}{whose} opens nothing any more.")
    return redirect(f"admin:{PAGE.name}")


PAGE = Page(
    "grading/tokens/",
    "grading_tokens",
    "Tokens for programs",
    ("grading.view_attempt",),
    tokens_view,
    ("GET", "HEAD", "POST"),
)
PAGES = [PAGE]
