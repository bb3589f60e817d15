"""The field for programs: CodeMirror under the site's strict policy, a plain field without JavaScript."""

import hashlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.http import HttpRequest, HttpResponse
from django.template import Context, Template
from django.urls import path
from django.views.decorators.csrf import csrf_exempt
from playwright.sync_api import Page

from tests.admin.chromium import BROWSER, PHONE, WIDE, Complaints, Window, served

ROOM = Path(__file__).resolve().parents[2] / "grading"
SOURCES, SITE = ROOM / "editor", ROOM / "static" / "grading"
PROGRAM = 'class Lock:\n    """Mine."""\n\n    def acquire(self):\n        return self.port.set("nx", 1)  # ours\n'
STATEMENT = "update shop_order set status = 'completed' where id = :order"
PAGE = Template("""{% load static %}<!doctype html><html lang="en" data-theme="auto"><head><title>Hand in</title>
<link rel="icon" href="{% static 'marlow/book.svg' %}"><link rel="stylesheet" href="{% static 'marlow/theme.css' %}">
<script src="{% static 'grading/editor.js' %}" defer></script></head><body><main><form method="post">
<label for="id_first">First</label><input id="id_first" name="first">
<label for="id_program">Your class:</label>
<textarea id="id_program" name="program" data-editor="python" required aria-describedby="id_program_help">
{{ program }}</textarea><p id="id_program_help">It has acquire and release.</p>
<label for="id_sql">The statement</label><textarea id="id_sql" name="sql" data-editor="sql">{{ sql }}</textarea>
<button type="reset">Again</button><button type="submit">Hand in</button></form></main></body></html>""")

ECHO = Template("""{% load static %}<!doctype html><html lang="en"><head><title>Sent</title>
<link rel="icon" href="{% static 'marlow/book.svg' %}"></head><body><pre>{{ sent }}</pre></body></html>""")


@csrf_exempt
def page_or_echo(request: HttpRequest) -> HttpResponse:
    if request.method == "POST":
        return HttpResponse(ECHO.render(Context({"sent": json.dumps(request.POST.dict())})))
    return HttpResponse(PAGE.render(Context({"program": PROGRAM, "sql": STATEMENT})))


urlpatterns = [path("hand-in", page_or_echo)]


@pytest.fixture(scope="module")
def house(django_db_setup: None) -> Iterator[str]:
    with served(ROOT_URLCONF=__name__) as address:
        yield address


@pytest.fixture
def visit(window: Window) -> Window:
    def open_page(**how: Any) -> tuple[Page, Complaints]:
        page, complaints = window(**how)
        page.goto("/hand-in")
        return page, complaints

    return open_page


def sent(page: Page) -> dict[str, str]:
    page.click("button[type=submit]")
    said: dict[str, str] = json.loads(page.inner_text("pre"))
    return {name: text.replace("\r\n", "\n") for name, text in said.items()}


class TestInABrowser:
    pytestmark = [*BROWSER, pytest.mark.django_db]

    @pytest.mark.parametrize(("scheme", "viewport"), [("light", WIDE), ("dark", PHONE)], ids=["light", "dark-phone"])
    def test_it_is_coloured_and_numbered_and_the_policy_has_nothing_against_it(self, visit, scheme, viewport):
        page, complaints = visit(color_scheme=scheme, viewport=viewport)
        assert page.locator(".cm-lineNumbers .cm-gutterElement:visible").all_inner_texts()[:3] == ["1", "2", "3"]
        shades = {word: colour(page, word) for word in ("class", '"""Mine."""', "# ours", "update")}
        assert shades["class"] == shades["update"]
        assert len({*shades.values(), plain(page)}) == 4
        assert page.evaluate("document.documentElement.scrollWidth") <= viewport["width"]
        assert complaints == []

    def test_its_colours_follow_the_theme(self, visit):
        light, _ = visit(color_scheme="light")
        dark, _ = visit(color_scheme="dark")
        for page in (light, dark):
            assert colour(page, "class") != ground(page)
        assert colour(light, "class") != colour(dark, "class")
        assert ground(light) != ground(dark)

    def test_what_is_typed_is_what_the_form_sends(self, visit):
        page, complaints = visit()
        field = page.get_by_role("textbox", name="Your class")
        field.press("Control+End")
        field.press_sequentially("x = (1")
        statement = page.get_by_role("textbox", name="The statement")
        statement.press("Control+A")
        statement.press_sequentially("select 1")
        assert sent(page) == {"first": "", "program": f"{PROGRAM}x = (1)", "sql": "select 1"}
        assert complaints == []

    def test_what_is_typed_over_a_coloured_selection_is_no_matter_for_the_policy(self, visit):
        page, complaints = visit()
        field = page.get_by_role("textbox", name="The statement")
        field.press("Control+A")
        field.press_sequentially("select 1")
        assert page.input_value("#id_sql") == "select 1"
        field.press("Control+A")
        field.press_sequentially("(")  # goes round it
        assert page.input_value("#id_sql") == "(select 1)"
        field.press("Control+Z")
        assert page.input_value("#id_sql") == "select 1"
        page.wait_for_timeout(100)  # milliseconds: a complaint comes a moment later
        assert complaints == []

    def test_tab_indents_and_after_escape_it_leaves(self, visit):
        page, _ = visit()
        page.focus("#id_first")
        page.keyboard.press("Tab")
        page.keyboard.press("Control+Home")
        page.keyboard.press("Tab")
        assert page.input_value("#id_program") == f"    {PROGRAM}"
        page.keyboard.press("Escape")
        page.keyboard.press("Tab")
        assert focused(page) == "The statement"
        page.keyboard.press("Escape")
        page.keyboard.press("Shift+Tab")
        assert focused(page) == "Your class"

    def test_a_screen_reader_hears_the_label_and_the_help_and_how_to_leave(self, visit):
        page, _ = visit()
        field = page.get_by_role("textbox", name="Your class", exact=True)
        assert field.get_attribute("aria-description") == (
            "It has acquire and release. Tab indents. To leave the field: Escape, then Tab."
        )
        assert field.get_attribute("aria-required") == "true"
        page.click("label[for=id_program]")
        assert focused(page) == "Your class"

    def test_the_form_s_reset_resets_it(self, visit):
        page, _ = visit()
        field = page.get_by_role("textbox", name="The statement")
        field.press("Control+A")
        field.press_sequentially("select 1")
        assert page.input_value("#id_sql") == "select 1"
        page.click("button[type=reset]")
        page.wait_for_function("document.querySelector('#id_sql').value.startsWith('update')")
        assert field.inner_text() == STATEMENT
        assert sent(page)["sql"] == STATEMENT

    def test_without_javascript_it_is_a_plain_field(self, visit):
        page, complaints = visit(java_script_enabled=False)
        page.fill("#id_program", "class Lock: pass")
        assert sent(page)["program"] == "class Lock: pass"
        assert complaints == []


def colour(page: Page, word: str) -> str:
    shade: str = page.get_by_text(word, exact=True).first.evaluate("one => getComputedStyle(one).color")
    return shade


def plain(page: Page) -> str:
    shade: str = page.locator(".cm-content").first.evaluate("one => getComputedStyle(one).color")
    return shade


def ground(page: Page) -> str:
    shade: str = page.locator(".cm-editor").first.evaluate("one => getComputedStyle(one).backgroundColor")
    return shade


def focused(page: Page) -> str:
    name: str = page.evaluate("document.activeElement.shadowRoot.activeElement.getAttribute('aria-label')")
    return name


# --- The bundle in the repository ---------------------------------------------------------------------------------


def test_the_bundle_is_made_of_the_sources_beside_it_and_nobody_has_altered_it():
    head, _, body = (SITE / "editor.js").read_text().partition("\n")
    names = ("build.js", "editor.js", "package-lock.json", "package.json", "theme.js")
    sources = hashlib.sha256(b"".join((SOURCES / name).read_bytes() for name in names)).hexdigest()
    found = re.search(r"sources (\w{64}) body (\w{64})", head)
    assert found, head
    assert found.groups() == (sources, hashlib.sha256(body.encode()).hexdigest()), "say: make editor"


def test_every_package_of_the_bundle_has_its_licence_beside_it():
    told = (SITE / "editor.licences.txt").read_text()
    locked = json.loads((SOURCES / "package-lock.json").read_text())["packages"]
    shipped = {name.removeprefix("node_modules/"): one for name, one in locked.items() if name and not one.get("dev")}
    assert len(shipped) > 8
    for name, package in shipped.items():
        assert f"{name} {package['version']} (MIT)" in told


def test_the_lock_has_a_digest_for_every_package_and_names_no_registry():
    text = (SOURCES / "package-lock.json").read_text()
    packages = [one for name, one in json.loads(text)["packages"].items() if name]
    assert all(re.fullmatch(r"sha512-\S+", one["integrity"]) for one in packages)
    assert "resolved" not in text
    assert "://" not in text
