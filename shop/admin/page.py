"""Pages of our own in the admin: each with the permissions it asks for, for `admin_view` only asks for staff."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from django.contrib import admin
from django.contrib.auth.models import AnonymousUser
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse


@dataclass(frozen=True)
class Page:
    """A view under /admin/, its URL's name (`admin:` before it), and what a person must be allowed to see. `methods`:
    with POST among them where something is done there.
    """

    route: str
    name: str
    title: str
    needs: tuple[str, ...]
    view: Callable[..., HttpResponse]
    methods: tuple[str, ...] = ("GET", "HEAD")
    do_not_call_in_templates: ClassVar[bool] = True

    def __call__(self, request: HttpRequest, **kwargs: Any) -> HttpResponse:
        """The page, for its methods and for those who may. Raises PermissionDenied otherwise."""
        if not self.open_to(request) or request.method not in self.methods:
            raise PermissionDenied
        return self.view(request, **kwargs)

    def open_to(self, request: HttpRequest) -> bool:
        user = request.user
        return not isinstance(user, AnonymousUser) and user.is_staff and user.has_perms(self.needs)


def asked(request: HttpRequest, name: str) -> str:
    """A parameter of the address as text that a database takes: trimmed, without NUL characters."""
    return (request.GET.get(name) or "").replace("\x00", "").strip()


def render(request: HttpRequest, template: str, title: str, **context: Any) -> TemplateResponse:
    """The template in the admin's frame: header, navigation, breadcrumbs."""
    return TemplateResponse(request, template, {**admin.site.each_context(request), "title": title, **context})
