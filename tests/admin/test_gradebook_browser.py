"""The gradebook in a browser: nothing that the policy forbids or that scrolls sideways, and a picture that loads."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.apps import apps
from django.db import connections
from django.test import Client, override_settings
from django.urls import reverse
from playwright.sync_api import Page, sync_playwright
from pytest_django.live_server_helper import LiveServer
from pytest_django.plugin import DjangoDbBlocker

from grading import review
from marlow import roles
from tests.admin.conftest import committed
from tests.admin.test_browser import CHROMIUM, OPTIONS, PHONE, WIDE, Complaints
from tests.grading.school import DAY, DUE, FAILED, INSTRUCTOR, NOON, PASSED, WELL, Said, School
from tests.grading.test_corrections import edited, exported

pytestmark = [
    pytest.mark.browser,
    pytest.mark.django_db(databases=["default", "journal"]),
    pytest.mark.xdist_group("browser"),
    pytest.mark.skipif(not CHROMIUM, reason="no Chromium: on Debian, apt-get install chromium"),
]


@pytest.fixture(scope="module")
def school(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[School]:
    """A class in which everything happens that a gradebook can show; committed, then the tables are emptied."""
    with django_db_blocker.unblock(), committed():
        roles.apply(apps)  # another module may have emptied the tables
        made = School(rules={"late_days": 3, "late_percent": 25})
        review.override(made.judged(), "refused", 1, "Half right.", by=made.teacher, now=NOON)
        made.judged(WELL, now=DUE + DAY / 2, student=made.enrolled("anna.lindqvist"))
        made.judged({"boxes": Said(PASSED, 3, 3), "essay": Said(INSTRUCTOR, 0, 5)}, student=made.enrolled("bo"))
        made.judged({"boxes": Said(FAILED, 0, 3), "friday": Said(PASSED, 5, 5)}, student=made.enrolled("chidi"))
        made.hand_in(student=made.enrolled("waits"))
        made.enrolled("idle")
        yield made


@pytest.fixture(scope="module")
def house(school: School) -> Iterator[str]:
    server = LiveServer("localhost")
    with override_settings(ALLOWED_HOSTS=["localhost"], SECURE_SSL_REDIRECT=False, SESSION_COOKIE_SECURE=False):
        yield server.url
    server.stop()


@pytest.fixture(scope="module")
def come(house: str, school: School, django_db_blocker: DjangoDbBlocker) -> Iterator:
    """A page on which the class's instructor is logged in, and what the browser had to say against it."""
    with django_db_blocker.unblock(), pytest.MonkeyPatch.context() as patch, sync_playwright() as playwright:
        patch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "true")  # Playwright's loop runs in this thread
        client = Client()
        client.force_login(school.teacher)
        badge = {"name": "sessionid", "value": client.cookies["sessionid"].value, "url": house}
        chromium = playwright.chromium.launch(executable_path=str(Path(CHROMIUM)), args=OPTIONS)

        def open_page(scheme: str, viewport: dict) -> tuple[Page, Complaints]:
            context = chromium.new_context(base_url=house, color_scheme=scheme, viewport=viewport)
            context.add_cookies([badge])
            page = context.new_page()
            return page, Complaints().of(page)

        yield open_page
        chromium.close()
        connections.close_all()


@pytest.mark.parametrize(("scheme", "viewport"), [("light", WIDE), ("dark", WIDE), ("dark", PHONE)])
def test_nothing_is_complained_about_or_scrolls_sideways(come, school, scheme, viewport, tmp_path):
    page, complaints = come(scheme, viewport)
    page.goto(reverse("admin:grading_gradebook"))
    _look(page, complaints, viewport, f"book-{scheme}-{viewport['width']}")
    assert page.evaluate("document.querySelector('.spread img').naturalWidth") > 0
    page.goto(reverse("admin:grading_gradebook_import", args=[school.of.pk]))
    file = edited(exported(school), person="2", reason="On second thoughts, all of it is right.")
    file = edited(file, check="boxes", person="17", reason="So.")
    (tmp_path / "book.csv").write_bytes(file)
    page.set_input_files("#file", tmp_path / "book.csv")
    page.click("input[value='Show what it changes']")
    assert "to write" in page.inner_text(".verdict")
    _look(page, complaints, viewport, f"import-{scheme}-{viewport['width']}")
    page.context.close()


def _look(page: Page, complaints: Complaints, viewport: dict, name: str) -> None:
    assert complaints == [], name
    assert page.evaluate("document.documentElement.scrollWidth") <= viewport["width"], name
    if os.environ.get("SHOTS"):
        page.screenshot(path=f"{os.environ['SHOTS']}/{name}.png", full_page=True)


def test_the_picture_s_ink_follows_the_page_s_own_switch(come):
    """Whatever the system prefers: the page may be dark while the system is light."""
    page, _ = come("light", WIDE)
    page.goto(reverse("admin:grading_gradebook"))
    picture = page.locator(".spread img")
    page.evaluate("document.querySelector('.spread img').style.background = '#808080'")  # the same ground for both
    seen = {}
    for theme in ("light", "dark"):
        page.evaluate("theme => { document.documentElement.dataset.theme = theme }", theme)
        seen[theme] = picture.screenshot()
    page.context.close()
    assert seen["light"] != seen["dark"]
