"""The admin site: the stock one, in our dress, with pages of our own among its lists."""

from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.http import HttpRequest
from django.template.response import TemplateResponse
from django.urls import URLPattern, URLResolver, path

if TYPE_CHECKING:
    from shop.admin.page import Page


def own_pages() -> list["Page"]:
    """The rooms' own pages. Imported late: the site exists before any model does."""
    from exercises.admin import locks
    from grading.admin import attempt, evidence, gradebook, likeness, queue, regrade, release, tokens
    from grading.admin import exercises as given
    from shop.admin import shelf
    from sweeper.admin import evening

    students = [*given.PAGES, *attempt.PAGES, *evidence.PAGES, *tokens.PAGES]
    teachers = [*gradebook.PAGES, *queue.PAGES, *release.PAGES, *regrade.PAGES, *likeness.PAGES]
    return [*shelf.PAGES, *evening.PAGES, *locks.PAGES, *students, *teachers]


class MarlowAdminSite(admin.AdminSite):
    site_header = "Marlow Books"
    site_title = "Marlow Books"
    index_title = "The shop, its boxes and its shelf"
    site_url = None
    enable_nav_sidebar = True

    def own_pages(self) -> list["Page"]:
        return own_pages()

    def get_urls(self) -> list[URLResolver | URLPattern]:
        ours = [path(page.route, self.admin_view(page), name=page.name) for page in own_pages()]
        return [*ours, *super().get_urls()]

    def each_context(self, request: HttpRequest) -> dict[str, Any]:
        """With the own pages this person may open, for the navigation."""
        pages = [page for page in own_pages() if "<" not in page.route and page.open_to(request)]
        return {**super().each_context(request), "own_pages": pages}

    def index(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> TemplateResponse:
        """A welcome: what the shop looks like just now, and where to look first."""
        from marlow.welcome import welcome

        return super().index(request, {**welcome(request), **(extra_context or {})})
