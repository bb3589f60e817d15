"""Take the README's pictures from a running `make demo`: python -m docs.pictures [address]."""

import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

from marlow.logins import PASSWORD

PAGES = {
    "shelf": ("/admin/shop/shelf/", {"x": 0, "y": 0, "width": 1280, "height": 860}),
    "evening": ("/admin/sweeper/timeline/", {"x": 320, "y": 80, "width": 940, "height": 1000}),
}


def main(address: str) -> None:
    folder = Path(__file__).parent / "pictures"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path="/usr/bin/chromium", args=["--no-sandbox", "--disable-gpu"]
        )
        page = browser.new_page(viewport={"width": 1280, "height": 1100})
        page.goto(f"{address}/admin/")
        page.fill("#id_username", "student")
        page.fill("#id_password", PASSWORD)
        page.click("[type=submit]")
        for name, (path, clip) in PAGES.items():
            page.goto(address + path)
            page.screenshot(path=folder / f"{name}.png", clip=clip, full_page=True)
        browser.close()


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8000")
