"""Verify's page: without network, with one script, with nothing from outside as markup, and listings that open."""

import dataclasses
import random
import re
from collections.abc import Callable
from contextlib import AbstractContextManager
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from browser import opened
from verify_reports import F2FP, HOSTILE, REPORTS, instruction, listing, on_121, report

from fp4patch.commands.verify_page import page
from fp4patch.core.results import Problem, Verdict
from fp4patch.proof.listing import SassListing
from fp4patch.proof.result import Check, ProbeResult, ToolchainInfo, VerifyReport

pytestmark = pytest.mark.slow

VOID = {"meta", "link", "col", "input", "br", "hr", "img"}


class Page(HTMLParser):
    """Attributes and texts of a page; fails on a tag that is not closed where it was opened."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.feed(source)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    def values(self, attribute: str) -> list[str]:
        return [value for _, attrs in self.tags if (value := attrs.get(attribute)) is not None]


@pytest.mark.parametrize("name", REPORTS)
def test_it_is_well_formed_loads_nothing_and_runs_its_own_script_alone(name: str) -> None:
    source = page([REPORTS[name], REPORTS["fail"]])
    parsed = Page(source)
    ids = parsed.values("id")
    assert len(ids) == len(set(ids))
    assert {href[1:] for href in parsed.values("href") if href.startswith("#")} <= set(ids)
    assert set(parsed.values("aria-labelledby")) <= set(ids)
    assert not {tag for tag, _ in parsed.tags} & {"img", "iframe", "object", "embed", "base", "form"}
    assert [attributes for tag, attributes in parsed.tags if tag == "script"] == [{}]
    assert "default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-" in source
    assert not parsed.values("src")
    assert all(href.startswith("#") or href == "data:," for href in parsed.values("href"))
    assert not re.search(r"https?:|url\(|@import", source)


def test_it_has_the_verdict_every_row_and_the_reason_of_a_failure() -> None:
    parsed = Page(page([REPORTS["fail"]]))
    shown = " ".join("".join(parsed.texts).split())
    for text in (
        "Not verified: 2 of 4 checks failed",
        "unchanged, byte for byte",
        "both sides would be paid for",
        "a.h(3): error: no",
    ):
        assert text in shown
    assert [tag for tag, attributes in parsed.tags if "open" in attributes] == ["details"] * 2  # those that failed


def hostile_report() -> VerifyReport:
    code = listing(instruction(0, "EXIT", HOSTILE), labels={0: HOSTILE})
    result = dataclasses.replace(
        on_121(Verdict.FAIL),
        probe=HOSTILE,
        title=HOSTILE,
        error=HOSTILE,
        before=code,
        after=code,
        checks=(Check(HOSTILE, HOSTILE, Verdict.FAIL, HOSTILE),),
    )
    problem = Problem(
        expected=HOSTILE,
        found=HOSTILE,
        help=HOSTILE,
        patch=HOSTILE,
        file=HOSTILE,
        line=1,
        nearest=HOSTILE,
    )
    return dataclasses.replace(
        report(result, problems=(problem,), tree=HOSTILE),
        toolchain=ToolchainInfo(*[HOSTILE] * 6),
        variant=HOSTILE,
        target=HOSTILE,
        version=HOSTILE,
        patches=(HOSTILE,),
        fp4patch=HOSTILE,
        finished=HOSTILE,
    )


def test_nothing_from_outside_becomes_markup() -> None:
    parsed = Page(page([hostile_report()]))
    assert [tag for tag, _ in parsed.tags].count("script") == 1
    assert not parsed.values("onload")
    assert "".join(parsed.texts).count("<script>alert('x')</script>") >= 15


def test_a_path_that_is_not_utf8_still_makes_a_file() -> None:
    assert b"a\\udcff" in page([report(tree="a\udcff")]).encode("utf-8")


# --- in a browser ----------------------------------------------------------------------------------------------------


Show = Callable[..., AbstractContextManager[Any]]


@pytest.fixture
def show(browser: Any, tmp_path: Path) -> Show:
    """``show(report, "#id", width=390)``: the page of a report in a tab of the browser."""

    def run(shown: VerifyReport, at: str = "", width: int = 390) -> AbstractContextManager[Any]:
        file = tmp_path / "report.html"
        file.write_text(page([shown]), encoding="utf-8")
        return opened(browser, f"{file.as_uri()}{at}", viewport={"width": width, "height": 800})

    return run


CELLS = "rows => rows.map(row => [row.className, ...[...row.cells].map(cell => cell.textContent)])"


def test_both_sides_stand_beside_each_other_and_differences_are_marked(show: Show) -> None:
    at = "#t1-cutlass/e2m1-x2-sm_121a"
    with show(REPORTS["pass"], at, width=1280) as tab:
        tab.locator(".sass tr").first.wait_for()
        assert tab.locator(".sass tr").evaluate_all(CELLS) == [
            ["changed", "0000", "LDG.E R2, desc[UR4][R2.64]", "~", "0000", "LDG.E R2, desc[UR4][R2.64+0x10]"],
            ["removed", "0010", f"{F2FP} R0, R2, R3, RZ", "\N{MINUS SIGN}", "", ""],
            ["added", "", "", "+", "0010", "@!P0 BRA `(.L_x_0)"],
            ["added", "", "", "+", "0020", "FSEL R1, R2, RZ, P1"],
            ["", "0020", "EXIT", "", "0030", ".L_x_0:EXIT"],
        ]
        assert tab.locator(".sass mark").all_inner_texts() == ["desc[UR4][R2.64]", "desc[UR4][R2.64+0x10]"]


def test_a_phone_shows_one_column_and_what_is_unchanged_is_one_row(show: Show) -> None:
    at = "#t1-cutlass/e2m1-x2-sm_121a"
    with show(REPORTS["pass"], at) as tab:
        tab.locator(".sass tr").first.wait_for()
        shown = tab.locator(".sass td").evaluate_all(
            "cells => cells.filter(c => c.offsetWidth).map(c => c.textContent)"
        )
        assert [text for text in shown if "F2FP" in text or "FSEL" in text] == [
            f"{F2FP} R0, R2, R3, RZ",
            "FSEL R1, R2, RZ, P1",
        ]
        assert shown.count("EXIT") + shown.count(".L_x_0:EXIT") == 1
        same = tab.locator(".more > summary").first
        assert same.inner_text().startswith("2 of 3 unchanged")
        assert tab.locator(".more .result").first.is_hidden()
        same.click()
        assert tab.locator(".more .result").first.is_visible()


def test_a_listing_from_outside_is_shown_as_text(show: Show) -> None:
    with show(hostile_report()) as tab:
        tab.locator(".sass tr").first.wait_for()
        assert tab.locator(".sass script").count() == 0
        assert HOSTILE in tab.locator(".sass tr").first.text_content()


def long_report(probes: int, rows: int) -> VerifyReport:
    """A report with as many listings, whose registers and offsets differ as a compiler's do."""
    draw = random.Random(24)

    def result(number: int) -> ProbeResult:
        def drawn() -> SassListing:
            rest = (f"R{draw.randrange(64)}, [R2.64+{16 * draw.randrange(64):#x}]" for _ in range(rows))
            return listing(*(instruction(at, "LDG.E", operands) for at, operands in enumerate(rest)))

        return dataclasses.replace(on_121(), probe=f"cutlass/p{number}", before=drawn(), after=drawn())

    return report(*map(result, range(probes)))


def test_listings_are_compressed_open_on_demand_and_fit_a_phone(show: Show) -> None:
    """All of verify's default run on CUTLASS at once are two million elements, and minutes."""
    long = dataclasses.replace(long_report(120, 300), problems=(Problem("code", "t", help="x_" * 400),))
    assert len(page([long]).encode()) < 120 * 20_000
    with show(long, "#t1-cutlass/p60-sm_121a") as tab:
        tab.locator('[id="t1-cutlass/p60-sm_121a"] .sass tr').first.wait_for()
        assert tab.locator(".sass tr").count() == 300
        tab.locator('[id="t1-cutlass/p110-sm_121a"] > summary').click()
        tab.locator('[id="t1-cutlass/p110-sm_121a"] .sass tr').first.wait_for()
        assert tab.locator("[data-packed]").count() == 118
        assert tab.evaluate("document.documentElement.scrollWidth") == 390


def test_long_stretches_fold_and_no_row_is_lost(show: Show) -> None:
    code = listing(*(instruction(index, "FSEL", f"R{index}") for index in range(100)))
    same = dataclasses.replace(on_121(), before=code, after=code)
    with show(report(same), "#t1-cutlass/e2m1-x2-sm_121a") as tab:
        more = tab.locator(".sass button")
        more.wait_for()
        assert tab.locator(".sass td:nth-child(5)").count() < 30
        more.click()
        shown = tab.locator(".sass td:nth-child(5)").all_inner_texts()
        assert shown == [f"FSEL R{index}" for index in range(100)]
