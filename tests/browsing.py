"""A real browser for tests of pages: Debian's Chromium, driven by Playwright."""

import importlib.util
import os
import shutil
from contextlib import contextmanager

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
ARGS = (
    "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-sync", "--disable-quic",
    "--disable-background-networking", "--disable-component-update", "--disable-dev-shm-usage",
)  # fmt: skip
needs_browser = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed"),
    pytest.mark.skipif(
        importlib.util.find_spec("playwright") is None, reason="playwright is not installed"
    ),
]
LIMIT_MS = 120_000  # a loaded machine of two cores


@contextmanager
def browsing(home):
    """A browser whose files lie in ``home``."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(
            executable_path=CHROMIUM, args=list(ARGS), env={**os.environ, "HOME": str(home)}
        )
        yield browser
        browser.close()


@contextmanager
def tab(browser, *, width=1280, **settings):
    """A tab with nothing remembered; ``tab.errors`` and ``tab.asked`` grow as it works."""
    context = browser.new_context(viewport={"width": width, "height": 900}, **settings)
    page = context.new_page()
    page.set_default_timeout(LIMIT_MS)
    page.errors, page.asked = [], []
    page.on("pageerror", lambda error: page.errors.append(str(error)))
    page.on("console", lambda m: page.errors.append(m.text) if m.type == "error" else None)
    page.on("request", lambda request: page.asked.append(request.url))
    yield page
    context.close()


def overflows(page):
    """Claims that the page is wider than its window."""
    return page.evaluate(
        "document.documentElement.scrollWidth > document.documentElement.clientWidth"
    )


def has(locator, count):
    """Returns when so many elements are there. (Scripts of strict pages cannot be waited for.)"""
    from playwright.sync_api import expect

    expect(locator).to_have_count(count, timeout=LIMIT_MS)
