"""The judge's queue in a browser: it follows by itself, and takes nothing out of anybody's hand."""

from collections.abc import Callable, Iterator
from threading import Thread

import pytest
from django.apps import apps
from django.db import connections
from django.urls import reverse
from playwright.sync_api import Page
from pytest_django.plugin import DjangoDbBlocker

from grading import judges, queue
from grading.models import Judging
from marlow import roles
from marlow.clock import real_now
from tests.admin.chromium import BROWSER, PHONE, WIDE, Complaints, Window, give_password, log_in, served
from tests.admin.conftest import committed
from tests.grading.school import DAY, NOON, School, break_off, person

pytestmark = [*BROWSER, pytest.mark.django_db]
QUEUE = reverse("admin:grading_queue")
SOON = 15_000  # milliseconds


@pytest.fixture(scope="module")
def school(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[School]:
    """One parked, one running, one waiting; committed, then the tables are emptied."""
    with django_db_blocker.unblock(), committed():
        roles.apply(apps)  # another module may have emptied the tables
        made = School()
        for number in range(2):
            break_off(made.hand_in(NOON, made.enrolled(f"parked {number}")))
        made.hand_in(NOON, made.enrolled("runs"))
        queue.claim("box-a", real_now())
        Judging.objects.filter(state="running").update(lease_until=real_now() + DAY)
        made.hand_in(NOON, made.enrolled("waits"))
        judges.opened("box-a", "", False, real_now())
        judges.opened("box-b", "User namespaces are not allowed to whoever judges.", False, real_now())
        give_password(made.teacher, person("operator", "Operator"))
        yield made


@pytest.fixture(scope="module")
def house(school: School) -> Iterator[str]:
    with served() as address:
        yield address


@pytest.fixture
def visit(window: Window) -> Callable[..., tuple[Page, Complaints]]:
    """Opens the queue as this person."""

    def open_page(name: str, then: str = QUEUE, **how: object) -> tuple[Page, Complaints]:
        page, complaints = window(**how)
        log_in(page, name, then=QUEUE)
        page.goto(then)
        return page, complaints

    return open_page


def elsewhere(deed: Callable[[], object]) -> None:
    """Committed, on another connection than the test's own."""

    def work() -> None:
        deed()
        connections.close_all()

    worker = Thread(target=work)
    worker.start()
    worker.join()


@pytest.mark.parametrize(("scheme", "viewport"), [("light", WIDE), ("dark", PHONE)], ids=["light", "dark-phone"])
def test_nothing_is_complained_about_or_scrolls_sideways(visit, school, scheme, viewport):
    page, complaints = visit(school.teacher.username, color_scheme=scheme, viewport=viewport)
    page.wait_for_load_state("networkidle")
    assert complaints == []
    assert page.evaluate("document.documentElement.scrollWidth") <= viewport["width"]


def test_it_follows_and_leaves_the_address_and_the_focus_as_they_are(visit, school):
    first, second = Judging.objects.filter(state="parked").order_by("pk")
    page, complaints = visit(school.teacher.username, then=f"{QUEUE}?of=1")
    page.evaluate("window.stays = true")
    page.focus(f"button[value='{second.pk}']")
    elsewhere(lambda: queue.unpark(first, real_now()))
    page.wait_for_selector("#queue-waiting tr:has-text('parked 0')", timeout=SOON)
    assert page.locator("#queue-parked tbody tr").count() == 1
    assert page.evaluate("document.activeElement.value") == str(second.pk)
    assert "2 waiting" in " ".join(page.inner_text("#queue-numbers").split())
    elsewhere(lambda: queue.unpark(second, real_now()))
    page.wait_for_selector("#queue-parked .empty", timeout=SOON)
    assert page.evaluate("document.activeElement.id") == "queue-parked"
    assert page.url.endswith("?of=1")
    assert page.evaluate("window.stays"), "the page was loaded anew"
    assert complaints == []


def test_a_part_that_says_nothing_new_is_left_alone(visit, school):
    """What is marked with the mouse there stays marked, whatever the forms' keys are."""
    page, _ = visit(school.teacher.username)
    page.evaluate("for (const part of document.querySelectorAll('[data-follows]')) part.firstElementChild.old = true")
    with page.expect_response(f"**{QUEUE}", timeout=SOON):
        pass
    elsewhere(lambda: judges.opened("box-a", "", True, real_now()))
    page.wait_for_selector("#queue-boxes td:has-text('bounded together, by a cgroup')", timeout=SOON)
    kept = "[...document.querySelectorAll('[data-follows]')].filter((part) => part.firstElementChild.old).length"
    assert page.evaluate(kept) == 4


def test_without_scripts_it_follows_for_whoever_has_nothing_to_press(visit, school):
    page, _ = visit("operator", java_script_enabled=False)
    assert page.locator("meta[http-equiv=refresh]").count() == 1
    page, _ = visit(school.teacher.username, java_script_enabled=False)
    assert page.locator("meta[http-equiv=refresh]").count() == 0
