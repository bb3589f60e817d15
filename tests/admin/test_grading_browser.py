"""Handing in as a browser sees it: nothing the policy forbids, nothing sideways, rows without JavaScript too."""

from collections.abc import Iterator
from threading import Thread
from typing import Any

import pytest
from django.apps import apps
from django.db import connections, transaction
from django.urls import reverse
from playwright.sync_api import Page
from pytest_django.plugin import DjangoDbBlocker

from exercises.handed.checks import Shown
from exercises.handed.exercise import catalogue
from exercises.models import LabRun
from grading import review, threads
from grading.models import Assignment, Attempt, CheckResult, Submission
from marlow import roles
from marlow.clock import real_now
from tests import labruns
from tests.admin.chromium import BROWSER, PHONE, WIDE, Complaints, Window, give_password, log_in, served
from tests.admin.conftest import committed
from tests.fakes import wait_for_waiters
from tests.grading.school import DAY, FAILED, INSTRUCTOR, MINUTE, RIGHT, WELL, Said, School, judge

pytestmark = [*BROWSER, pytest.mark.django_db]


class World(School):
    """A class with every exercise, one attempt judged in every way there is, and one that waits."""

    def __post_init__(self) -> None:
        super().__post_init__()
        give_password(self.teacher, self.student)
        now = real_now()
        rules = {"opens_at": now - DAY, "due_at": now + DAY}
        others = [slug for slug in catalogue() if slug != self.assignment.exercise]
        self.others = [Assignment.objects.create(of=self.of, exercise=slug, **rules) for slug in others]
        says = {**WELL, "secret": Said(FAILED, 0, 4, Shown.HIDDEN), "essay": Said(INSTRUCTOR, 0, 3)}
        self.told = self.judged(says, now=now)
        self._with_a_run(LabRun.objects.exclude(wrong=[]).order_by("pk")[0])
        threads.open_thread(self.told, "refused", "Why is that\nno refusal?", by=self.student, now=now)
        review.override(self.told, "friday", 2, "half right", by=self.teacher, now=now)
        self.waiting = self.hand_in(now + MINUTE)

    def _with_a_run(self, run: LabRun) -> None:
        result = CheckResult.objects.get(judging__attempt=self.told, name="boxes")
        result.evidence |= {"verdict": run.verdict, "steps": run.steps, "wrong": run.wrong, "again": run.again}
        result.save()

    def addresses(self) -> list[str]:
        given = [self.assignment, *self.others]
        return [
            *(reverse("admin:index"), reverse("admin:grading_exercises")),
            *(reverse("admin:grading_assignment", args=[one.pk]) for one in given),
            *(reverse("admin:grading_attempt", args=[one.pk]) for one in (self.told, self.waiting)),
            *(reverse("admin:grading_evidence", args=[self.told.pk, name]) for name in ("boxes", "refused")),
        ]


@pytest.fixture(scope="module")
def world(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[World]:
    with django_db_blocker.unblock(), committed():
        roles.apply(apps)
        for name in labruns.RECORDED:
            labruns.one(name)
        now = real_now()
        yield World(rules={"opens_at": now - DAY, "due_at": now + 7 * DAY, "late_days": 3})


@pytest.fixture(scope="module")
def house(world: World) -> Iterator[str]:
    with served() as address:
        yield address


@pytest.fixture
def visit(window: Window) -> Window:
    """Opens the first page as this person."""

    def open_page(who: Any, **how: Any) -> tuple[Page, Complaints]:
        page, complaints = window(**how)
        log_in(page, who.username)
        return page, complaints

    return open_page


@pytest.mark.parametrize("role", ["student", "teacher"])
@pytest.mark.parametrize(("scheme", "viewport"), [("light", WIDE), ("dark", PHONE)], ids=["light", "dark-phone"])
def test_no_page_of_hand_ins_is_complained_about_or_scrolls_sideways(visit, world, role, scheme, viewport):
    page, complaints = visit(getattr(world, role), viewport=viewport, color_scheme=scheme)
    for address in world.addresses():
        page.goto(address)
        page.wait_for_load_state("networkidle")
        assert complaints == [], address
        assert page.evaluate("document.documentElement.scrollWidth") <= viewport["width"], address


@pytest.mark.parametrize("script", [True, False], ids=["with scripts", "without"])
def test_rows_are_added_and_taken_away_and_keep_what_was_typed(visit, world, script):
    page, _ = visit(world.student, java_script_enabled=script)
    slot = next(one for one in world.others if one.exercise == "slot")
    page.goto(reverse("admin:grading_assignment", args=[slot.pk]))
    page.fill("[name='answers.events.0.at']", "21:50:00")
    page.fill("[name='answers.events.1.at']", "21:51:00")
    before = page.locator("[name^='answers.events.'][name$='.at']").count()
    page.click("button[name=add][value=events]")
    assert page.locator("[name^='answers.events.'][name$='.at']").count() == before + 1
    assert page.input_value("[name='answers.events.1.at']") == "21:51:00"
    page.click("button[name=remove][value='events.0']")
    assert page.input_value("[name='answers.events.0.at']") == "21:51:00"
    assert page.locator("[name^='answers.events.'][name$='.at']").count() == before


def test_enter_in_a_field_hands_in_nothing_and_takes_no_row_away(visit, world):
    page, _ = visit(world.student)
    slot = next(one for one in world.others if one.exercise == "slot")
    page.goto(reverse("admin:grading_assignment", args=[slot.pk]))
    page.fill("[name='answers.events.0.at']", "21:50:00")
    page.press("[name='answers.events.0.at']", "Enter")
    page.wait_for_selector(".messagelist")
    assert "Nothing is handed in yet" in page.inner_text(".messagelist")
    assert page.input_value("[name='answers.events.0.at']") == "21:50:00"
    assert page.locator(".errornote").count() == 0


def fill(page: Page, answers: dict[str, Any]) -> None:
    for name, value in answers.items():
        inputs = page.locator(f"[name='answers.{name}']")
        if value is None:
            continue
        if inputs.first.get_attribute("type") == "radio":
            page.check(f"[name='answers.{name}'][value='{value}']")
        elif inputs.first.evaluate("input => input.tagName") == "SELECT":
            inputs.select_option(str(value))
        else:
            inputs.fill(str(value))


def judged_elsewhere(attempt: Attempt) -> None:
    """Committed, on another connection than the test's own, as a worker's is."""

    def work() -> None:
        judge(attempt, WELL, real_now())
        connections.close_all()

    worker = Thread(target=work)
    worker.start()
    worker.join()


def test_a_double_click_hands_in_once_and_the_page_follows_the_judge(visit, world):
    page, complaints = visit(world.student)
    made = Attempt.objects.count()
    page.goto(reverse("admin:grading_assignment", args=[world.assignment.pk]))
    fill(page, RIGHT)
    page.dblclick("button:text-is('Hand in')")
    page.wait_for_selector("#progress[data-state=waiting]")
    assert Attempt.objects.count() == made + 1
    assert "Its receipt is" in page.inner_text(".messagelist")
    judged_elsewhere(Attempt.objects.latest("pk"))
    page.wait_for_selector("#progress[data-state=done]", timeout=15_000)
    assert page.locator(".check").count() == len(WELL)
    assert complaints == []


def test_two_clicks_without_scripts_hand_in_once_too(visit, world):
    """The first has reached the server, which is seen to work on it, when the second one is sent."""
    page, complaints = visit(world.student, java_script_enabled=False)
    made = Attempt.objects.count()
    page.goto(reverse("admin:grading_assignment", args=[world.assignment.pk]))
    fill(page, {**RIGHT, "shelf": 3})
    button = page.locator("button:text-is('Hand in')")
    button.scroll_into_view_if_needed()
    box = button.bounding_box()
    with transaction.atomic():
        Submission.objects.select_for_update(no_key=True).get(pk=world.told.submission_id)
        for waiting in (1, 2):
            page.mouse.click(box["x"] + 5, box["y"] + 5)  # with the bare mouse, which waits for no answer
            wait_for_waiters(waiting)
        transaction.set_rollback(True)  # of this alone, which lets the row go
    page.wait_for_selector("#progress")
    assert "This had been handed in already" in page.inner_text(".messagelist")
    assert Attempt.objects.count() == made + 1
    assert complaints == []


def test_what_is_wrong_is_led_to_by_a_link_and_told_beside_its_field(visit, world):
    page, _ = visit(world.student)
    page.goto(reverse("admin:grading_assignment", args=[world.assignment.pk]))
    fill(page, {**RIGHT, "catalogue": 777})
    page.click("button:text-is('Hand in')")
    page.click(".errornote a")
    assert page.url.endswith("#id_catalogue")
    assert "less than or equal to 99" in page.inner_text("#id_catalogue-problem")
    assert page.input_value("#id_catalogue") == "777"
