"""A real browser, driven by Playwright: the one on PATH, since Playwright's wheel has none."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser

PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
PATIENCE = 180_000
"""Milliseconds to wait for anything on a page: the machine may be busy."""


def program() -> str:
    """Return the browser's path. Without one the test is skipped; FP4PATCH_REQUIRE_BROWSER=1 makes that a failure."""
    found = next(filter(None, map(shutil.which, PROGRAMS)), None)
    if found is None:
        reason = f"no browser: none of {', '.join(PROGRAMS)} is on PATH (Debian: apt install chromium)"
        if os.environ.get("FP4PATCH_REQUIRE_BROWSER") == "1":
            pytest.fail(reason)
        pytest.skip(reason)
    return found


@contextmanager
def browser() -> Iterator[Browser]:
    """Start the browser without a window."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=program(), args=["--no-sandbox"], timeout=PATIENCE)
        try:
            yield running
        finally:
            running.close()
