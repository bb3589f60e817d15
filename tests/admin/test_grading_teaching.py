"""The instructor's pages as a browser sees them: nothing the policy forbids, nothing sideways, deeds done by hand."""

import copy
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.apps import apps
from django.urls import reverse
from playwright.sync_api import Page
from pytest_django.plugin import DjangoDbBlocker

from exercises.handed.exercise import exercise
from grading import queue, regrade, review, sight
from grading.extension import extend
from grading.handin import hand_in
from grading.models import Assignment, Judging
from marlow import roles
from marlow.clock import real_now
from tests.admin.chromium import BROWSER, PHONE, WIDE, Complaints, Window, give_password, log_in, served
from tests.admin.conftest import committed
from tests.grading.anew import ANEW
from tests.grading.school import DAY, INSTRUCTOR, Said, School, break_off, claimed, judge

pytestmark = [*BROWSER, pytest.mark.django_db]


class Term(School):
    """A class in the middle of things: some judged, one parked, one running, one waiting, a regrade to look at, one
    that was applied, an extension, and two programs that are alike.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        give_password(self.teacher)
        self.now = real_now() - timedelta(days=2)
        self.told = self.judged(now=self.now)
        open_ = self.judged({"boxes": Said(INSTRUCTOR, 0, 3)}, self.now, self.enrolled("ada"))
        review.override(self.told, "friday", 2, "Half right.", by=self.teacher, now=self.now)
        self.regrades = [self._anew(self.told, "The second check was too strict."), self._anew(open_, "A slip.")]
        regrade.apply(self.regrades[1], by=self.teacher, now=self.now)
        more = {"days": 3, "attempts": 1, "why": "Ill for three days."}
        extend(self.assignment, self.student, **more, by=self.teacher, now=self.now)
        self._alike()
        self._queue()

    def _anew(self, attempt: Any, why: str) -> Any:
        scope = f"{attempt.submission.student}, attempt 1: Swap in the advisory lock"
        made = regrade.begin([attempt], scope, why, by=self.teacher, now=self.now)
        judge(attempt, {**ANEW, "friday": ANEW["boxes"]}, self.now, made)
        return made

    def _alike(self) -> None:
        given = {"opens_at": self.now - DAY, "due_at": self.now + 7 * DAY}
        self.finer = Assignment.objects.create(of=self.of, exercise="slot", **given)
        answers = next(one for one in exercise("slot").known() if one.kind == "right").answers
        self.pair = []
        for name in ("bob", "cleo"):
            self.pair.append(self._handed(self.enrolled(name), copy.deepcopy(answers)))
            Judging.objects.filter(attempt=self.pair[-1]).update(state="done", ended_at=self.now)

    def _handed(self, student: Any, answers: Any) -> Any:
        return hand_in(student, self.finer, answers, now=self.now, through="form")

    def _queue(self) -> None:
        self.parked = break_off(self.hand_in(self.now, self.enrolled("dora")), self.now)
        self.hand_in(real_now() - timedelta(minutes=2), self.enrolled("emil"))
        taken = claimed(real_now())
        queue.renew(taken, real_now(), "The settle in every order of two boxes: 1,204 tried")
        self.hand_in(real_now(), self.enrolled("finn"))

    def addresses(self) -> list[str]:
        likeness, regrades = reverse("admin:grading_likeness"), reverse("admin:grading_regrades")
        one, other = self.pair
        return [
            *(reverse("admin:grading_queue"), reverse("admin:grading_releases"), regrades, likeness),
            *(f"{regrades}?regrade={made.pk}" for made in self.regrades),
            f"{likeness}?assignment={self.finer.pk}",
            f"{likeness}?assignment={self.finer.pk}&one={one.pk}&other={other.pk}&field=settle.statement",
            *(reverse(f"admin:grading_{model}_changelist") for model in ("class", "assignment", "extension")),
            *(reverse(f"admin:grading_{model}_add") for model in ("assignment", "extension")),
            reverse("admin:grading_class_change", args=[self.of.pk]),
            reverse("admin:grading_assignment_change", args=[self.assignment.pk]),
            reverse("admin:grading_extension_change", args=[self.assignment.extensions.get().pk]),
        ]


@pytest.fixture(scope="module")
def term(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[Term]:
    with django_db_blocker.unblock(), committed():
        roles.apply(apps)
        now = real_now()
        yield Term(rules={"opens_at": now - 7 * DAY, "due_at": now + 7 * DAY, "late_days": 3})


@pytest.fixture(scope="module")
def house(term: Term) -> Iterator[str]:
    with served() as address:
        yield address


@pytest.fixture
def visit(window: Window, term: Term) -> Window:
    """Opens the first page as the class's teacher."""

    def open_page(**how: Any) -> tuple[Page, Complaints]:
        page, complaints = window(**how)
        log_in(page, term.teacher.username)
        return page, complaints

    return open_page


@pytest.mark.parametrize(("scheme", "viewport"), [("light", WIDE), ("dark", PHONE)], ids=["light", "dark-phone"])
def test_no_page_of_teaching_is_complained_about_or_scrolls_sideways(visit, term, scheme, viewport):
    page, complaints = visit(viewport=viewport, color_scheme=scheme)
    for address in term.addresses():
        page.goto(address)
        page.wait_for_load_state("networkidle")
        assert complaints == [], address
        assert page.evaluate("document.documentElement.scrollWidth") <= viewport["width"], address


def test_a_parked_attempt_is_sent_to_the_judge_again_by_a_button(visit, term):
    page, complaints = visit()
    page.goto(reverse("admin:grading_queue"))
    page.click(f"button[name=again][value='{term.parked.pk}']")
    assert "waits for the judge again" in page.inner_text(".messagelist")
    term.parked.refresh_from_db()
    assert term.parked.state == "waiting"
    assert complaints == []


def test_grades_are_released_after_a_question_about_those_that_are_incomplete(visit, term):
    page, complaints = visit(viewport=PHONE)
    page.goto(reverse("admin:grading_releases"))
    page.click(f"button[name=release][value='{term.assignment.pk}']")
    assert "incomplete" in page.inner_text(".verdict")
    page.click("text=Release all the same")
    assert "see its grades now" in page.inner_text(".messagelist")
    assert sight.released(term.assignment)
    assert complaints == []
