"""The pages as a browser sees them: nothing the policy forbids, nothing that scrolls sideways, focus in sight."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.urls import reverse
from playwright.sync_api import Browser, Page, Request, sync_playwright

from tests import evening
from tests.admin.conftest import account

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or ""
OPTIONS = [
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync"),
]
WIDE, PHONE = {"width": 1360, "height": 900}, {"width": 390, "height": 844}
pytestmark = [
    pytest.mark.browser,
    pytest.mark.django_db(transaction=True, databases=["default", "journal"]),
    pytest.mark.skipif(not CHROMIUM, reason="no Chromium: on Debian, apt-get install chromium"),
]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with pytest.MonkeyPatch.context() as patch, sync_playwright() as playwright:
        patch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "true")  # Playwright's loop runs in this thread
        chromium = playwright.chromium.launch(executable_path=str(Path(CHROMIUM)), args=OPTIONS)
        yield chromium
        chromium.close()


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
    ]


class Complaints(list[str]):
    """What the browser had to say against a page."""

    def of(self, page: Page) -> "Complaints":
        page.on("console", lambda message: message.type in ("error", "warning") and self.append(message.text))
        page.on("pageerror", lambda error: self.append(str(error)))
        page.on("requestfailed", self._failed)
        page.on(
            "response", lambda response: response.status >= 400 and self.append(f"{response.status} {response.url}")
        )
        return self

    def _failed(self, request: Request) -> None:
        """A look-up that the next key stroke overtook is no failure."""
        if "ERR_ABORTED" not in str(request.failure):
            self.append(f"{request.url}: {request.failure}")


def visit(browser: Browser, live_server: Any, viewport: dict[str, int], scheme: str) -> tuple[Page, Complaints]:
    """A page on which the operator has logged in by the form."""
    page = browser.new_context(viewport=viewport, color_scheme=scheme, base_url=live_server.url).new_page()  # type: ignore[arg-type]
    complaints = Complaints().of(page)
    account("Operator")
    page.goto(reverse("admin:login") + "?next=/admin/")
    page.fill("#id_username", "Operator")
    page.fill("#id_password", "a long enough word")
    page.click("input[type=submit]")
    assert page.title() == "The shop, its boxes and its shelf | Marlow Books"
    return page, complaints


@pytest.mark.parametrize(("scheme", "viewport"), [("light", WIDE), ("dark", PHONE)], ids=["light", "dark-phone"])
def test_no_page_is_complained_about_or_scrolls_sideways(browser, live_server, addresses, scheme, viewport):
    page, complaints = visit(browser, live_server, viewport, scheme)
    for address in addresses:
        page.goto(address)
        assert complaints == [], address
        wide = page.evaluate("document.documentElement.scrollWidth")
        assert wide <= viewport["width"], address
    page.context.close()


def test_the_theme_follows_the_switch_in_both_directions(browser, live_server, wednesday):
    page, complaints = visit(browser, live_server, WIDE, "light")
    paper = "getComputedStyle(document.body).backgroundColor"
    seen = []
    for _ in range(3):
        page.click("#header .theme-toggle")
        seen.append((page.evaluate("document.documentElement.dataset.theme"), page.evaluate(paper)))
    shades = dict(seen)
    assert set(shades) == {"auto", "dark", "light"}
    assert shades["auto"] == shades["light"] != shades["dark"]
    assert complaints == []
    page.context.close()


FOCUS = """() => {
  const style = getComputedStyle(document.activeElement);
  return [document.activeElement.tagName, style.outlineStyle, parseFloat(style.outlineWidth)];
}"""


@pytest.mark.parametrize("name", ["index", "shop_shelf", "sweeper_timeline", "shop_order_changelist"])
def test_the_keyboard_s_place_is_always_in_sight(browser, live_server, wednesday, name):
    page, _ = visit(browser, live_server, WIDE, "light")
    page.goto(reverse(f"admin:{name}"))
    for _ in range(25):
        page.keyboard.press("Tab")
        tag, style, width = page.evaluate(FOCUS)
        if tag == "BODY":
            break
        assert (style, width >= 2) == ("solid", True), (tag, page.evaluate("document.activeElement.outerHTML"))
    page.context.close()


def test_a_book_is_picked_and_counted_with_the_keyboard(browser, live_server, wednesday):
    page, complaints = visit(browser, live_server, WIDE, "light")
    page.goto(reverse("admin:shop_stockcount_add"))
    page.click(".select2-selection")
    page.keyboard.type("Salt Road")
    page.click(".select2-results__option--highlighted:has-text('Salt Road')")
    page.fill("#id_copies", "0")
    page.click("input[name=_save]")
    assert "was added successfully" in page.inner_text(".messagelist")
    assert wednesday.novel.counts.count() == 2
    assert complaints == []
    page.context.close()


def test_the_rows_of_a_list_are_cards_on_a_phone(browser, live_server, wednesday):
    page, _ = visit(browser, live_server, PHONE, "light")
    page.goto(reverse("admin:shop_order_changelist"))
    assert page.evaluate("getComputedStyle(document.querySelector('#result_list tbody tr')).display") == "block"
    label = "getComputedStyle(document.querySelector('td.field-amount'), '::before').content"
    assert page.evaluate(label) == '"Amount"'
    page.context.close()


def test_the_picture_scrolls_by_itself_and_prints_light(browser, live_server, wednesday):
    page, _ = visit(browser, live_server, PHONE, "dark")
    page.goto(reverse("admin:sweeper_timeline"))
    inner, outer = page.evaluate("(p => [p.scrollWidth, p.clientWidth])(document.querySelector('.picture'))")
    assert inner > outer
    page.emulate_media(media="print")
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert ground == "rgb(255, 255, 255)"
    assert page.locator(".timeline .run").first.is_visible()
    assert page.locator("nav.bar").is_hidden()
    page.context.close()


def test_the_admin_works_without_scripts(browser, live_server, wednesday):
    account("Operator")
    context = browser.new_context(java_script_enabled=False, base_url=live_server.url)
    page = context.new_page()
    page.goto(reverse("admin:login") + "?next=" + reverse("admin:shop_shelf"))
    page.fill("#id_username", "Operator")
    page.fill("#id_password", "a long enough word")
    page.click("input[type=submit]")
    assert "2 phantom copies" in page.inner_text("table.ledger")
    context.close()
