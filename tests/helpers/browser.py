"""A real browser, driven by Playwright: the one on PATH, since Playwright's wheel has none."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
PATIENCE = 180_000
"""Milliseconds to wait for anything on a page: the machine may be busy."""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """The browser without a window. The test is skipped if there is none; FP4PATCH_REQUIRE_BROWSER=1 makes it fail."""
    from playwright.sync_api import sync_playwright

    program = next(filter(None, map(shutil.which, PROGRAMS)), None)
    if program is None:
        reason = f"no browser: none of {', '.join(PROGRAMS)} is on PATH (Debian: apt install chromium)"
        (pytest.fail if os.environ.get("FP4PATCH_REQUIRE_BROWSER") == "1" else pytest.skip)(reason)
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"], timeout=PATIENCE)
        yield running
        running.close()


@contextmanager
def opened(browser: Any, address: str, **options: Any) -> Iterator[Any]:
    """Open a page in a tab. An error of its script, or a refusal of its policy, fails the test."""
    wrong: list[str] = []
    tab = browser.new_page(**options)
    tab.set_default_timeout(PATIENCE)
    tab.on("pageerror", lambda error: wrong.append(str(error)))
    tab.on("console", lambda message: wrong.append(message.text) if message.type == "error" else None)
    tab.goto(address)
    yield tab
    tab.close()
    assert wrong == []
