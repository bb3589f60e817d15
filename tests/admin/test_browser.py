"""The pages as a browser sees them: nothing the policy forbids, nothing that scrolls sideways, focus in sight."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.urls import reverse
from playwright.sync_api import Browser, Page
from pytest_django.plugin import DjangoDbBlocker

from exercises.models import LabRun, Proof
from tests import evening, labruns, proofs
from tests.admin.chromium import BROWSER, PHONE, WIDE, Complaints, Window, log_in, served
from tests.admin.conftest import account, committed

pytestmark = [*BROWSER, pytest.mark.django_db(databases=["default", "journal"])]


@pytest.fixture(scope="module")
def wednesday(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[evening.Wednesday]:
    """Played once for all and committed, for the server has a connection of its own; then the tables are emptied."""
    with django_db_blocker.unblock(), committed():
        account("Operator")
        proofs.everything()
        for name in labruns.RECORDED:
            labruns.one(name)
        yield evening.play(lost=True)


@pytest.fixture(scope="module")
def house(wednesday: evening.Wednesday) -> Iterator[str]:
    """The address of a server that shows this evening."""
    with served() as address:
        yield address


@pytest.fixture(scope="module")
def badge(browser: Browser, house: str) -> Any:
    """What a browser keeps after the operator has logged in by the form."""
    context = browser.new_context(base_url=house)
    page = context.new_page()
    complaints = Complaints().of(page)
    log_in(page, "Operator")
    assert page.title() == "The shop, its boxes and its shelf | Marlow Books"
    assert complaints == []
    kept = context.storage_state()
    context.close()
    return kept


@pytest.fixture
def addresses(wednesday: evening.Wednesday) -> list[str]:
    """One page of every kind, as an operator sees them."""
    novel, order, run = wednesday.novel.pk, wednesday.orders[12].pk, wednesday.runs["b"].pk
    return [
        *(reverse(f"admin:{name}") for name in ("index", "shop_shelf", "sweeper_timeline", "shop_order_changelist")),
        *(reverse(f"admin:{name}") for name in ("shop_book_changelist", "sweeper_event_changelist")),
        *(reverse(f"admin:{name}") for name in ("shop_stockcount_add", "password_change")),
        reverse("admin:app_list", args=["shop"]),
        reverse("admin:shop_shelf_book", args=[novel]),
        reverse("admin:shop_book_change", args=[novel]),
        reverse("admin:shop_book_history", args=[novel]),
        reverse("admin:shop_order_change", args=[order]),
        reverse("admin:sweeper_sweeprun_change", args=[run]),
        reverse("admin:exercises_performance_change", args=[wednesday.performance.pk]),
        *(reverse(f"admin:{name}") for name in ("exercises_locks", "exercises_proof_changelist")),
        *(reverse("admin:exercises_proof_change", args=[proof.pk]) for proof in Proof.objects.order_by("pk")[:4]),
        reverse("admin:exercises_labrun_changelist"),
        *(reverse("admin:exercises_labrun_change", args=[run.pk]) for run in LabRun.objects.order_by("pk")),
    ]


@pytest.fixture
def visit(window: Window, badge: Any) -> Window:
    """Opens a page on which the operator is logged in."""

    def open_page(viewport: Any = WIDE, scheme: Any = "light") -> tuple[Page, Complaints]:
        page, complaints = window(viewport=viewport, color_scheme=scheme, storage_state=badge)
        page.goto(reverse("admin:index"))
        return page, complaints

    return open_page


@pytest.mark.parametrize(("scheme", "viewport"), [("light", WIDE), ("dark", PHONE)], ids=["light", "dark-phone"])
def test_no_page_is_complained_about_or_scrolls_sideways(visit, addresses, scheme, viewport):
    page, complaints = visit(viewport, scheme)
    for address in addresses:
        page.goto(address)
        assert complaints == [], address
        wide = page.evaluate("document.documentElement.scrollWidth")
        assert wide <= viewport["width"], address


def test_the_theme_follows_the_switch_in_both_directions(visit):
    page, complaints = visit()
    paper = "getComputedStyle(document.body).backgroundColor"
    seen = []
    for _ in range(3):
        page.click("#header .theme-toggle")
        seen.append((page.evaluate("document.documentElement.dataset.theme"), page.evaluate(paper)))
    shades = dict(seen)
    assert set(shades) == {"auto", "dark", "light"}
    assert shades["auto"] == shades["light"] != shades["dark"]
    assert complaints == []


FOCUS = """() => {
  const style = getComputedStyle(document.activeElement);
  return [document.activeElement.tagName, style.outlineStyle, parseFloat(style.outlineWidth)];
}"""


@pytest.mark.parametrize(
    "name", ["index", "shop_shelf", "sweeper_timeline", "shop_order_changelist", "exercises_locks"]
)
def test_the_keyboard_s_place_is_always_in_sight(visit, name):
    page, _ = visit()
    page.goto(reverse(f"admin:{name}"))
    for _ in range(25):
        page.keyboard.press("Tab")
        tag, style, width = page.evaluate(FOCUS)
        if tag == "BODY":
            break
        assert (style, width >= 2) == ("solid", True), (tag, page.evaluate("document.activeElement.outerHTML"))


def test_a_book_is_picked_and_counted_with_the_keyboard(visit, wednesday):
    page, complaints = visit()
    before = wednesday.novel.counts.count()
    page.goto(reverse("admin:shop_stockcount_add"))
    page.click(".select2-selection")
    page.keyboard.type("Salt Road")
    page.click(".select2-results__option--highlighted:has-text('Salt Road')")
    page.fill("#id_copies", "0")
    page.click("input[name=_save]")
    assert "was added successfully" in page.inner_text(".messagelist")
    assert wednesday.novel.counts.count() == before + 1
    assert complaints == []


def test_the_rows_of_a_list_are_cards_on_a_phone(visit):
    page, _ = visit(PHONE)
    page.goto(reverse("admin:shop_order_changelist"))
    assert page.evaluate("getComputedStyle(document.querySelector('#result_list tbody tr')).display") == "block"
    label = "getComputedStyle(document.querySelector('td.field-amount'), '::before').content"
    assert page.evaluate(label) == '"Amount"'


def test_the_lock_table_is_cards_on_a_phone_and_leaves_out_what_does_not_concern_a_lock(visit):
    page, _ = visit(PHONE)
    page.goto(reverse("admin:exercises_locks"))
    assert page.evaluate("getComputedStyle(document.querySelector('.matrix tbody tr')).display") == "block"
    label = "getComputedStyle(document.querySelector('.matrix td:not(.none)'), '::before').content"
    assert page.evaluate(label) == '"none"'
    assert page.locator(".matrix td.none").first.is_hidden()
    assert page.locator(".matrix a.chip:has-text('phantom')").first.is_visible()


def test_the_lock_table_scrolls_by_itself(visit):
    page, _ = visit({"width": 800, "height": 900})
    page.goto(reverse("admin:exercises_locks"))
    inner, outer = page.evaluate("(p => [p.scrollWidth, p.clientWidth])(document.querySelector('.matrix'))")
    assert inner > outer
    assert page.evaluate("document.documentElement.scrollWidth") <= 800


def test_the_picture_scrolls_by_itself_and_prints_light(visit):
    page, _ = visit(PHONE, "dark")
    page.goto(reverse("admin:sweeper_timeline"))
    inner, outer = page.evaluate("(p => [p.scrollWidth, p.clientWidth])(document.querySelector('.picture'))")
    assert inner > outer
    page.emulate_media(media="print")
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert ground == "rgb(255, 255, 255)"
    assert page.locator(".timeline .run").first.is_visible()
    assert page.locator("nav.bar").is_hidden()


def test_the_admin_works_without_scripts(window):
    page, _ = window(java_script_enabled=False)
    log_in(page, "Operator", then=reverse("admin:shop_shelf"))
    assert "2 phantom copies" in page.inner_text("table.ledger")
