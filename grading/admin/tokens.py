"""Tokens for programs: one's own, made and revoked. A new one is shown in answer to its making, never again."""

from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db.models import F
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.cache import add_never_cache_headers

from grading import tokens
from marlow.clock import real_now
from shop.admin.page import Page, render

BIGGEST = 2**63 - 1  # what a key of the database holds


def tokens_view(request: HttpRequest) -> HttpResponse:
    if request.method != "POST":
        return _page(request)
    if "revoke" in request.POST:
        return _revoked(request, request.POST["revoke"])
    return _made(request, request.POST.get("name", ""))


def _page(request: HttpRequest, **more: Any) -> HttpResponse:
    """With what is secret in it, so nothing on the way keeps it."""
    mine = tokens.own(request.user).order_by(F("revoked_at").desc(nulls_first=True), "-made_at")
    answer = render(request, "admin/grading/tokens.html", PAGE.title, tokens=mine, **more)
    add_never_cache_headers(answer)
    return answer


def _made(request: HttpRequest, name: str) -> HttpResponse:
    try:
        token, secret = tokens.make(request.user, name, now=real_now())
    except tokens.NotAToken as wrong:
        return _page(request, problem=str(wrong), name=name)
    return _page(request, made=token, secret=secret)


def _revoked(request: HttpRequest, number: str) -> HttpResponse:
    """Raises PermissionDenied for what is not one's own, whether it is there or not."""
    known = number.isascii() and number.isdecimal() and int(number[:20]) <= BIGGEST
    token = tokens.own(request.user).filter(pk=int(number)).first() if known else None
    if token is None:
        raise PermissionDenied("This token is not yours.")
    if tokens.revoke(token, by=request.user, now=real_now()):
        messages.success(request, f"The token {token.name} opens nothing any more.")
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
