"""The documentation as a site: built strictly from these pages, searchable, with the explorer, and nothing foreign."""

import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from browser import PATIENCE, opened
from support import served

from fp4patch.commands.explore_page import GPUS
from tools.site_pages import PAGES

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]
SEARCHED = {
    "__CUDA_ARCH_FEAT_SM121_ALL": "messages.html",
    "e2m1x2": "instructions.html",
    "no kernel image is available": "messages.html",
    "12.1a": "gpus.html",
}
"""Words that owners type, and a page that must be among the results."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site as ``make docs`` builds it: a link or an anchor that leads nowhere ends the build."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    environ = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    built = subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    return folder


def test_it_has_every_page_the_pictures_and_the_explorer(site: Path) -> None:
    pages = {path.stem for path in (ROOT / "docs").glob("*.md")} - {"README"}
    pages |= {Path(name).stem for name in PAGES}
    assert pages | {"index", "explorer", "404"} == {path.stem for path in site.glob("*.html")}
    for picture in (ROOT / "docs" / "images").glob("*.svg"):
        assert (site / "images" / picture.name).read_bytes() == picture.read_bytes()
    assert (site / "index.html").read_text(encoding="utf-8").count("explorer.html#answer?gpu=") == len(GPUS)
    assert "fp4patch explorer" in (site / "explorer.html").read_text(encoding="utf-8")


def test_a_page_is_found_by_its_words_and_no_other_host_is_asked(site: Path, browser: Any) -> None:
    from playwright.sync_api import TimeoutError as NotYet

    requests: list[str] = []
    with served(site) as url, opened(browser, "about:blank") as tab:
        tab.on("request", lambda request: requests.append(request.url))
        tab.goto(f"{url}/index.html")
        box = tab.get_by_role("textbox", name="Search")
        wanted = tab.locator(".md-search-result__link[href*='integrations.html']").first
        for _ in range(6):  # what is typed before the page's script listens is not searched
            box.fill("")
            box.press_sequentially("quantized gradients are zeros")  # the script listens to keys
            with suppress(NotYet):
                wanted.wait_for(timeout=PATIENCE / 6)
                break
        found = wanted.count()
        for words, page in SEARCHED.items():
            box.fill("")
            box.press_sequentially(words)
            tab.locator(f".md-search-result__link[href*='{page}']").first.wait_for()
        tab.goto(f"{url}/explorer.html")
        assert tab.locator("#result").count() == 1
    assert found
    assert [request for request in requests if not request.startswith(url)] == []


@pytest.mark.parametrize("width", [1300, 390])
def test_code_blocks_do_not_hide_the_ends_of_lines(width: int, site: Path, browser: Any) -> None:
    hidden = "[...document.querySelectorAll('pre > code')].filter(code => code.scrollWidth > code.clientWidth).length"
    with served(site) as url, opened(browser, "about:blank", viewport={"width": width, "height": 800}) as tab:
        for page in ("quickstart.html", "integrations.html", "evidence.html"):
            tab.goto(f"{url}/{page}")
            assert tab.evaluate("document.querySelectorAll('pre > code').length")
            assert not tab.evaluate(hidden), page
