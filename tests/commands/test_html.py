"""Verify's page: well-formed, without network, with one script, with nothing from outside as markup."""

from __future__ import annotations

import base64
import dataclasses
import random
import re
import zlib
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from browser import PATIENCE, browser
from verify_reports import (
    F2FP,
    HOSTILE,
    REPORTS,
    SM121A,
    hardware,
    identical,
    instruction,
    listing,
    on_121,
    report,
    software,
)

from fp4patch.commands import verify_page as html
from fp4patch.commands import verify_rows as listing_rows
from fp4patch.core.problem import Problem
from fp4patch.core.verdict import Verdict
from fp4patch.proof.listing import DiffKind, DiffRow, SassDiff
from fp4patch.proof.result import ToolchainInfo
from fp4patch.proof.verdict import Check

pytestmark = pytest.mark.slow

VOID = {"meta", "link", "col", "input", "br", "hr", "img"}


def opened(source: str) -> str:
    """The page as it is when its script has shown the listings."""

    def shown(place: re.Match[str]) -> str:
        return f">{zlib.decompress(base64.b64decode(place[1])).decode()}</div>"

    return re.sub(r' data-packed="([^"]*)"><noscript>.*?</noscript></div>', shown, source)


class Page(HTMLParser):
    """Ids, links and every text of a page; fails on a tag that is not closed where it was opened."""

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
def test_every_tag_is_closed_and_every_link_has_its_target(name: str) -> None:
    page = Page(opened(html.page([REPORTS[name], REPORTS["fail"]])))
    ids = page.values("id")
    assert len(ids) == len(set(ids))
    targets = {href[1:] for href in page.values("href") if href.startswith("#")}
    assert targets <= set(ids)
    assert set(page.values("aria-labelledby")) <= set(ids)


@pytest.mark.parametrize("name", REPORTS)
def test_the_page_loads_nothing_and_runs_its_own_script_alone(name: str) -> None:
    source = html.page([REPORTS[name]])
    page = Page(opened(source))
    assert not {tag for tag, _ in page.tags} & {"img", "iframe", "object", "embed", "base", "form"}
    assert [attributes for tag, attributes in page.tags if tag == "script"] == [{}]
    assert "default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-" in source
    assert not page.values("src")
    assert all(href.startswith("#") or href == "data:," for href in page.values("href"))
    assert not re.search(r"https?:|url\(|@import", source)


def test_the_page_shows_the_verdict_in_words_and_all_rows() -> None:
    page = Page(html.page([REPORTS["fail"]]))
    shown = " ".join("".join(page.texts).split())
    assert "Not verified: 2 of 4 checks failed" in shown
    assert "Identical: not one byte of the 3 instructions differs." in shown
    assert "Of 3 instructions before and 4 after: 1 removed, 2 added and 1 changed." in shown
    assert "both sides would be paid for" in shown
    assert "nvdisasm" in shown
    assert "fp4patch verify --variant next2 --arch sm_120a,sm_121a ./cutlass" in shown


def test_differences_are_marked_by_signs_and_changed_operands_stand_out() -> None:
    source = opened(html.page([REPORTS["pass"]]))
    assert source.count(f"<td>{listing_rows.MINUS}</td>") == 1
    assert source.count("<td>+</td>") == 2
    assert source.count("<td>~</td>") == 1
    assert "<mark>desc[UR4][R2.64+0x10]</mark>" in source
    assert "<mark>R2</mark>" not in source


def test_a_branch_target_has_its_label() -> None:
    assert "<td>.L_x_0:</td>" in opened(html.page([REPORTS["pass"]]))


def test_nothing_from_outside_becomes_markup() -> None:
    hostile_code = listing(SM121A, instruction(0, "EXIT", HOSTILE), labels={0: HOSTILE})
    result = dataclasses.replace(
        on_121(Verdict.FAIL), probe=HOSTILE, title=HOSTILE, error=HOSTILE, before=hostile_code, after=hostile_code,
        diff=identical(hostile_code), checks=(Check(HOSTILE, HOSTILE, Verdict.FAIL, HOSTILE),),
    )  # fmt: skip
    problem = Problem(HOSTILE, HOSTILE, HOSTILE, HOSTILE, HOSTILE, 1, HOSTILE)
    tools = ToolchainInfo(*[HOSTILE] * 7)
    hostile = dataclasses.replace(
        report(result, problems=(problem,), tree=HOSTILE), toolchain=tools, variant=HOSTILE, target=HOSTILE,
        version=HOSTILE, patches=(HOSTILE,), fp4patch=HOSTILE, finished=HOSTILE,
    )  # fmt: skip
    page = Page(opened(html.page([hostile])))
    assert [tag for tag, _ in page.tags].count("script") == 1
    assert not page.values("onload")
    assert "".join(page.texts).count("<script>alert('x')</script>") >= 20


def test_a_path_that_is_not_utf8_still_makes_a_file() -> None:
    assert b"a\\udcff" in html.page([report(tree="a\udcff")]).encode("utf-8")


def test_long_stretches_fold_and_no_row_is_lost() -> None:
    row = {
        kind: DiffRow(kind, None if kind is DiffKind.ADDED else hardware(SM121A).instructions[0],
                      None if kind is DiffKind.REMOVED else software().instructions[1])
        for kind in DiffKind
    }  # fmt: skip
    rows = [
        *[row[DiffKind.SAME]] * 40,
        *[row[DiffKind.CHANGED]] * 90,
        *[row[DiffKind.ADDED]] * 200,
        *[row[DiffKind.SAME]] * 5,
    ]
    stretches = list(listing_rows.fold(rows))
    assert [row for stretch in stretches for row in stretch.rows] == rows
    assert [(part.rows[0].kind, part.summary) for part in stretches if part.summary] == [
        (DiffKind.SAME, f"{40 - 2 * listing_rows.CONTEXT} more instructions, the same on both sides"),
        (DiffKind.ADDED, f"{200 - 2 * listing_rows.CONTEXT} more instructions, added"),
    ]


def long_report(probes: int, rows: int) -> Any:
    """A report with as many listings, whose registers and addresses differ as a compiler's do."""
    draw = random.Random(24)
    results = []
    for number in range(probes):
        sides = [
            listing(
                SM121A, *(instruction(i, *draw.choice(FORMS)(draw), "@!P0" if i % 9 == 0 else "") for i in range(rows))
            )
            for _ in range(2)
        ]
        pairs = zip(*(side.instructions for side in sides), strict=True)
        diff = SassDiff(tuple(DiffRow(DiffKind.CHANGED, old, new) for old, new in pairs), {}, identical=False)
        before, after = sides
        verdict = Verdict.FAIL if number == 3 else Verdict.PASS
        results.append(
            dataclasses.replace(on_121(verdict), probe=f"cutlass/p{number}", before=before, after=after, diff=diff)
        )
    return report(*results)


FORMS = (
    lambda draw: (F2FP, f"R{draw.randrange(64)}, R{draw.randrange(64)}, R{draw.randrange(64)}, RZ"),
    lambda draw: ("FSEL", f"R{draw.randrange(64)}, R{draw.randrange(64)}, RZ, P{draw.randrange(6)}"),
    lambda draw: ("LDG.E", f"R{draw.randrange(64)}, desc[UR4][R{draw.randrange(64)}.64+{16 * draw.randrange(64):#x}]"),
)


def test_ten_probes_stay_under_a_fifth_of_a_megabyte() -> None:
    assert len(html.page([long_report(10, 300)]).encode()) < 200_000


def test_a_listing_is_shown_when_it_is_opened_and_the_page_fits_a_phone(tmp_path: Path) -> None:
    """All of verify's default run on CUTLASS at once are two million elements, and minutes."""
    file = tmp_path / "report.html"
    unbroken = dataclasses.replace(REPORTS["fail"], problems=(Problem("code", "t", "x_" * 400),))
    file.write_text(html.page([long_report(120, 20), unbroken]), encoding="utf-8")
    wrong: list[str] = []
    with browser() as running:
        tab = running.new_page(viewport={"width": 390, "height": 800})
        tab.set_default_timeout(PATIENCE)
        tab.on("pageerror", lambda error: wrong.append(str(error)))
        tab.on("console", lambda message: wrong.append(message.text) if message.type == "error" else None)
        tab.goto(f"{file.as_uri()}#t1-60")
        tab.locator("#t1-60 .sass tbody tr").first.wait_for()
        assert tab.locator("#t1-60 .sass tbody tr").count() == 20
        assert tab.locator("#t1-110 .sass").count() == 0
        tab.locator("#t1-110 .listing > summary").click()
        tab.locator("#t1-110 .sass tbody tr").first.wait_for()
        assert tab.locator("[data-packed]").count() == 120  # of 122
        assert tab.evaluate("document.documentElement.scrollWidth") == 390
        tab.emulate_media(media="print")
        assert not tab.locator(".theme").is_visible()
    assert wrong == []


def _luminance(colour: str) -> float:
    """Relative luminance, WCAG 2.2."""
    channels = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_every_text_colour_has_contrast_aa_on_every_background(theme: int) -> None:
    found = re.findall(r"--([a-z0-9-]+): light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\)", html.page([]))
    colours = {name: _luminance((light, dark)[theme]) for name, light, dark in found}
    backgrounds = {"bg", "card", "row-a", "row-r", "row-c", "mark"}
    on_plain = {"pass", "fail", "warn", "link"}
    assert len(colours) == 6 + 1 + 6 + len(listing_rows.CLASSES)
    low = []
    for text_colour in colours.keys() - backgrounds - {"line"}:
        # Only operands, in the text's colour, are on the mark; verdicts and links are never on listing rows.
        on = {"bg", "card"} if text_colour in on_plain else backgrounds - (set() if text_colour == "text" else {"mark"})
        for background in on:
            lighter, darker = sorted((colours[text_colour], colours[background]), reverse=True)
            if (lighter + 0.05) / (darker + 0.05) < 4.5:
                low.append((text_colour, background, round((lighter + 0.05) / (darker + 0.05), 2)))
    assert low == []
