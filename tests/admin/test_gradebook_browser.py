"""The gradebook in a browser: nothing that the policy forbids or that scrolls sideways, and a picture that loads."""

from collections.abc import Iterator

import pytest
from django.apps import apps
from django.urls import reverse
from playwright.sync_api import Page
from pytest_django.plugin import DjangoDbBlocker

from grading import review
from marlow import roles
from tests.admin.chromium import BROWSER, PHONE, WIDE, Complaints, Window, give_password, log_in, served
from tests.admin.conftest import committed
from tests.grading.book import edited, exported
from tests.grading.school import DAY, DUE, FAILED, INSTRUCTOR, NOON, PASSED, WELL, Said, School

pytestmark = [*BROWSER, pytest.mark.django_db(databases=["default", "journal"])]


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
        give_password(made.teacher)
        yield made


@pytest.fixture(scope="module")
def house(school: School) -> Iterator[str]:
    with served() as address:
        yield address


@pytest.fixture
def visit(window: Window, school: School) -> Window:
    """Opens the gradebook as the class's instructor."""

    def open_page(scheme: str, viewport: dict) -> tuple[Page, Complaints]:
        page, complaints = window(color_scheme=scheme, viewport=viewport)
        log_in(page, school.teacher.username, then=reverse("admin:grading_gradebook"))
        return page, complaints

    return open_page


@pytest.mark.parametrize(("scheme", "viewport"), [("light", WIDE), ("dark", WIDE), ("dark", PHONE)])
def test_nothing_is_complained_about_or_scrolls_sideways(visit, school, scheme, viewport, tmp_path):
    page, complaints = visit(scheme, viewport)
    _look(page, complaints, viewport)
    assert page.evaluate("document.querySelector('.spread img').naturalWidth") > 0
    page.goto(reverse("admin:grading_gradebook_import", args=[school.of.pk]))
    file = edited(exported(school), person="2", reason="On second thoughts, all of it is right.")
    file = edited(file, check="boxes", person="17", reason="So.")
    (tmp_path / "book.csv").write_bytes(file)
    page.set_input_files("#file", tmp_path / "book.csv")
    page.click("input[value='Show what it changes']")
    assert "to write" in page.inner_text(".verdict")
    _look(page, complaints, viewport)


def _look(page: Page, complaints: Complaints, viewport: dict) -> None:
    assert complaints == []
    assert page.evaluate("document.documentElement.scrollWidth") <= viewport["width"]


def test_the_picture_s_ink_follows_the_page_s_own_switch(visit):
    """Whatever the system prefers: the page may be dark while the system is light."""
    page, _ = visit("light", WIDE)
    picture = page.locator(".spread img")
    page.evaluate("document.querySelector('.spread img').style.background = '#808080'")  # the same ground for both
    seen = {}
    for theme in ("light", "dark"):
        page.evaluate("theme => { document.documentElement.dataset.theme = theme }", theme)
        seen[theme] = picture.screenshot()
    assert seen["light"] != seen["dark"]
