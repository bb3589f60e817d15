"""What a test in a browser stands on: a Chromium, a server for it, who logs in, and what it has to complain about."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connections
from django.test import override_settings
from django.urls import reverse
from playwright.sync_api import Browser, Page, Request, sync_playwright
from pytest_django.live_server_helper import LiveServer

PASSWORD = "a long enough word"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or ""
OPTIONS = [
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync"),
]
WIDE, PHONE = {"width": 1360, "height": 900}, {"width": 390, "height": 844}
BROWSER = [
    pytest.mark.browser,
    pytest.mark.xdist_group("browser"),  # one evening, one server, one Chromium
    pytest.mark.skipif(not CHROMIUM, reason="no Chromium: on Debian, apt-get install chromium"),
]


@contextmanager
def served(**settings: Any) -> Iterator[str]:
    """The address of a server that shows what is committed."""
    with override_settings(ALLOWED_HOSTS=["localhost"], **settings):
        server = LiveServer("localhost")
        yield server.url
        server.stop()


@contextmanager
def launched() -> Iterator[Browser]:
    with pytest.MonkeyPatch.context() as patch, sync_playwright() as playwright:
        patch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "true")  # Playwright's loop runs in this thread
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=OPTIONS)
        yield chromium
        chromium.close()
        connections.close_all()  # while the loop runs, this thread has other ones than without it


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


Window = Callable[..., tuple[Page, Complaints]]  # how it is opened -> what is in it


def give_password(*users: User) -> None:
    for user in users:
        user.set_password(PASSWORD)
        user.save()


def log_in(page: Page, name: str, then: str = "/admin/") -> None:
    page.goto(f"{reverse('admin:login')}?next={then}")
    page.fill("#id_username", name)
    page.fill("#id_password", PASSWORD)
    page.click("input[type=submit]")
    page.wait_for_url(f"**{then}")
