"""What verify prints and writes: the same facts as text, as JSON and as a page."""

from __future__ import annotations

import dataclasses
import io
import json
import re
from html.parser import HTMLParser

import pytest
from rich.console import Console, RenderableType

from fp4patch.errors import Refused
from fp4patch.model import (
    Arch,
    Check,
    DiffKind,
    DiffRow,
    Instruction,
    InstructionClass,
    ProbeKind,
    ProbeResult,
    Problem,
    SassDiff,
    SassListing,
    State,
    ToolchainInfo,
    Verdict,
    VerifyReport,
)
from fp4patch.report import document, html, terminal, words

SM120A, SM121A = Arch(12, 0, "a"), Arch(12, 1, "a")
F2FP = "F2FP.SATFINITE.E2M1.F32.PACK_AB_MERGE_C"
HOSTILE = "</script></style><script>alert('x')</script>\"onload=\"alert(2)&amp;"
VOID = {"meta", "link", "col", "input", "br", "hr", "img"}

type_of = {
    "LDG.E": InstructionClass.MEMORY,
    F2FP: InstructionClass.FP4,
    "BRA": InstructionClass.BRANCH,
    "FSEL": InstructionClass.COMPARE,
    "EXIT": InstructionClass.CONTROL,
}


def instruction(index: int, opcode: str, operands: str = "", predicate: str = "") -> Instruction:
    return Instruction(16 * index, predicate, opcode, operands, type_of[opcode])


def listing(
    arch: Arch, *instructions: Instruction, registers: int = 8, labels: dict[int, str] | None = None
) -> SassListing:
    return SassListing("probe", arch, instructions, labels or {}, registers, "0" * 64)


def hardware(arch: Arch) -> SassListing:
    return listing(
        arch,
        instruction(0, "LDG.E", "R2, desc[UR4][R2.64]"),
        instruction(1, F2FP, "R0, R2, R3, RZ"),
        instruction(2, "EXIT"),
    )


def software() -> SassListing:
    """A load from elsewhere, and a branch over a selection, in place of the conversion."""
    return listing(
        SM121A,
        instruction(0, "LDG.E", "R2, desc[UR4][R2.64+0x10]"),
        instruction(1, "BRA", "`(.L_x_0)", "@!P0"),
        instruction(2, "FSEL", "R1, R2, RZ, P1"),
        instruction(3, "EXIT"),
        registers=10,
        labels={48: ".L_x_0", 64: ".L_x_9"},
    )


def changed() -> SassDiff:
    before, after = hardware(SM121A).instructions, software().instructions
    rows = (
        DiffRow(DiffKind.CHANGED, before[0], after[0]),
        DiffRow(DiffKind.REMOVED, before[1], None),
        DiffRow(DiffKind.ADDED, None, after[1]),
        DiffRow(DiffKind.ADDED, None, after[2]),
        DiffRow(DiffKind.SAME, before[2], after[3]),
    )
    delta = {InstructionClass.FP4: -1, InstructionClass.BRANCH: 1, InstructionClass.COMPARE: 1}
    return SassDiff(rows, delta, identical=False)


def identical(code: SassListing) -> SassDiff:
    return SassDiff(tuple(DiffRow(DiffKind.SAME, i, i) for i in code.instructions), {}, identical=True)


def on_120() -> ProbeResult:
    code = hardware(SM120A)
    check = Check("identical", "SM120 must not change", Verdict.PASS, "no byte differs")
    return ProbeResult(
        "cutlass/e2m1-x2",
        "two values",
        SM120A,
        ProbeKind.SASS,
        Verdict.PASS,
        code,
        code,
        identical(code),
        (check,),
        cached=True,
    )


def on_121(verdict: Verdict = Verdict.PASS) -> ProbeResult:
    checks = (
        Check(f"forbids {F2FP}", "SM121 leaves the conversion", Verdict.PASS, "none"),
        Check("max branches 0", "both sides would be paid for", verdict, "1 branch: BRA"),
    )
    return ProbeResult(
        "cutlass/e2m1-x2",
        "two values",
        SM121A,
        ProbeKind.SASS,
        verdict,
        hardware(SM121A),
        software(),
        changed(),
        checks,
    )


def host(verdict: Verdict = Verdict.PASS, error: str = "") -> ProbeResult:
    check = Check("compiles", "host code includes it", verdict, "nvcc -c")
    return ProbeResult(
        "cutlass/include-only", "host pass", SM120A, ProbeKind.HOST, verdict, None, None, None, (check,), error
    )


def unsupported() -> ProbeResult:
    return ProbeResult(
        "cutlass/e2m1-x4",
        "four",
        SM121A,
        ProbeKind.SASS,
        Verdict.UNSUPPORTED,
        None,
        None,
        None,
        (),
        "nvcc fatal : unsupported",
    )


def report(*results: ProbeResult, problems: tuple[Problem, ...] = (), tree: str = "./cutlass") -> VerifyReport:
    tools = ToolchainInfo(
        "13.0.88", "13.0.88", "13.0.88", "13.5.37", "g++ 12.2.0", "/opt/cuda", "/opt/cuda/bin/nvdisasm"
    )
    return VerifyReport(
        "next2", "cutlass", "4.2.1", tree, ("cutlass/e2m1-guard 1",), (SM120A, SM121A), tools, results, problems, 1.25,
        "0.1.0", "2026-01-02T03:04:05Z",
    )  # fmt: skip


DRIFT = Problem(
    "1 site", "0", "see `fp4patch show e2m1-guard`", "cutlass/e2m1-guard", "include/cutlass/float_subbyte.h", 47,
    "`SM121B_ENABLED`", State.DRIFTED,
)  # fmt: skip

REPORTS = {
    "pass": report(on_120(), on_121(), host()),
    "fail": report(on_120(), on_121(Verdict.FAIL), host(Verdict.FAIL, "a.h(3): error: no\n1 error")),
    "unsupported": report(on_120(), unsupported()),
    "problems": report(on_120(), problems=(DRIFT,)),
    "empty": report(),
}


def text(renderable: RenderableType, width: int = 80, *, pipe: bool = False) -> str:
    out = io.StringIO()
    Console(file=out, width=width, highlight=False, soft_wrap=pipe, color_system=None).print(renderable)
    return out.getvalue()


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


# --- JSON ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", REPORTS)
def test_the_document_survives_json(name: str) -> None:
    found = document.verify_document([REPORTS[name]])
    assert json.loads(json.dumps(found)) == found
    assert found["schema"] == 1
    assert found["verdict"] == ("pass" if name == "pass" else "fail")


def test_the_document_counts_and_lists_what_is_in_the_listings() -> None:
    result = document.report_document(REPORTS["pass"])["results"][1]
    assert (result["probe"], result["arch"], result["kind"]) == ("cutlass/e2m1-x2", "sm_121a", "sass")
    assert (result["before"]["fp4"], result["after"]["fp4"]) == (1, 0)
    assert (result["after"]["branches"], result["after"]["instructions"], result["after"]["registers"]) == (1, 4, 10)
    assert result["after"]["classes"] == {"compare": 1, "memory": 1, "branch": 1, "control": 1}
    assert result["after"]["listing"][1:] == [
        "0010  @!P0 BRA `(.L_x_0)", "0020  FSEL R1, R2, RZ, P1", ".L_x_0:", "0030  EXIT",
    ]  # fmt: skip
    assert result["identical"] is False
    assert result["delta"] == {"fp4": -1, "branch": 1, "compare": 1}


def test_the_document_says_null_where_there_is_no_listing() -> None:
    result = document.report_document(REPORTS["pass"])["results"][2]
    assert [result[key] for key in ("before", "after", "identical", "delta")] == [None] * 4


def test_several_trees_are_one_document_that_fails_if_one_does() -> None:
    both = document.verify_document([REPORTS["pass"], REPORTS["fail"]])
    assert (both["verdict"], [tree["verdict"] for tree in both["trees"]]) == ("fail", ["pass", "fail"])
    assert document.verify_document([])["verdict"] == "fail"


def test_an_error_carries_its_problems_into_json() -> None:
    found = document.error_document(Refused("no", help="do this", problems=(DRIFT,)))
    assert (found["state"], found["error"], found["help"]) == ("refused", "no", "do this")
    assert found["problems"] == [
        {
            "patch": "cutlass/e2m1-guard", "file": "include/cutlass/float_subbyte.h", "line": 47, "expected": "1 site",
            "found": "0", "nearest": "`SM121B_ENABLED`", "help": "see `fp4patch show e2m1-guard`", "state": "drifted",
        }
    ]  # fmt: skip


# --- terminal --------------------------------------------------------------------------------------------------------


def test_the_table_at_80_columns() -> None:
    lines = text(terminal.verify_table(REPORTS["pass"])).splitlines()
    assert [line.rstrip().replace(terminal.NONE, "-") for line in lines[2:6]] == [
        "probe        arch    instructions branches FP4 cvt registers verdict",
        "e2m1-x2      sm_120a        3 → 3    0 → 0   1 → 1     8 → 8 pass",
        "             sm_121a        3 → 4    0 → 1   1 → 0    8 → 10 pass",
        "include-only sm_120a    host pass        -       -         - pass",
    ]
    assert lines[-3:] == [
        "PASS  Verified: next2 on cutlass 4.2.1 does what it says",
        "      4 checks, nvcc 13.0.88, ptxas 13.0.88, nvdisasm 13.5.37, 1.2 s, 1 of 3",
        "      from cache",
    ]


@pytest.mark.parametrize("width", [60, 80, 120])
@pytest.mark.parametrize("name", REPORTS)
def test_no_line_is_wider_than_the_terminal(name: str, width: int) -> None:
    lines = text(terminal.verify_table(REPORTS[name]), width).splitlines()
    assert max(len(line) for line in lines) <= width


def test_a_failing_check_says_rule_finding_and_reason() -> None:
    shown = text(terminal.verify_table(REPORTS["fail"]))
    block = "fail: cutlass/e2m1-x2 on sm_121a\n  rule     max branches 0\n  found    1 branch: BRA\n"
    assert block + "  because  both sides would be paid for\n" in shown
    assert "FAIL  Not verified: 2 of 4 checks failed" in shown


def test_a_wide_table_gives_the_reason_in_its_row() -> None:
    rows = text(terminal.verify_table(REPORTS["fail"]), 120)
    assert re.search(r"sm_121a .* fail: max branches 0", rows)
    assert re.search(r"host pass .* fail: a\.h\(3\): error: no", rows)
    assert "fail: max branches" not in text(terminal.verify_table(REPORTS["fail"]), 80)


def test_an_empty_report_says_that_nothing_was_checked() -> None:
    shown = text(terminal.verify_table(REPORTS["empty"]))
    assert "FAIL  Not verified: nothing was checked" in shown


def test_an_unsupported_architecture_is_named() -> None:
    assert "the toolkit cannot compile for sm_121a" in text(terminal.verify_table(REPORTS["unsupported"]), 120)


def test_text_in_a_pipe_is_neither_cut_nor_wrapped() -> None:
    long = "error: " + "x" * 300
    shown = text(terminal.verify_table(report(host(Verdict.FAIL, long))), pipe=True)
    assert f"  {long}\n" in shown


def test_markup_in_names_is_text() -> None:
    shown = text(terminal.verify_table(report(host(Verdict.FAIL, "error: [red]a[/red]"), tree="[bold]tree")), 120)
    assert "[bold]tree" in shown
    assert "error: [red]a[/red]" in shown


def test_control_characters_do_not_reach_the_terminal() -> None:
    shown = text(terminal.verify_table(report(host(Verdict.FAIL, "error: \x1b[2J\x1b]0;x\x07"), tree="a\udcff")), 120)
    assert "\x1b" not in shown
    assert "error: \\x1b[2J\\x1b]0;x\\x07" in shown
    assert "a\\udcff" in shown


def test_a_problem_says_where_what_and_what_to_do() -> None:
    assert text(terminal.problems([DRIFT])) == (
        "error: cutlass/e2m1-guard: drifted\n"
        "  include/cutlass/float_subbyte.h:47\n"
        "  expected 1 site, found 0; nearest: `SM121B_ENABLED`\n"
        "  help: see `fp4patch show e2m1-guard`\n"
    )


def test_a_problem_without_a_patch_starts_with_its_place() -> None:
    shown = text(terminal.problems([Problem("a table", "a list", file="variants/x.toml", line=3)]))
    assert shown == "error: variants/x.toml:3\n  expected a table, found a list\n"


def test_an_error_shows_all_its_problems_and_its_help() -> None:
    shown = text(terminal.error(Refused("nothing was changed", help="look at the tree", problems=(DRIFT, DRIFT))))
    assert shown.startswith("error: nothing was changed\n  error: cutlass/e2m1-guard: drifted\n")
    assert shown.count("drifted") == 2
    assert shown.endswith("  help: look at the tree\n")


# --- the page --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", REPORTS)
def test_every_tag_is_closed_and_every_link_has_its_target(name: str) -> None:
    page = Page(html.page([REPORTS[name], REPORTS["fail"]]))
    ids = page.values("id")
    assert len(ids) == len(set(ids))
    targets = {href[1:] for href in page.values("href") if href.startswith("#")}
    assert targets <= set(ids)
    assert set(page.values("aria-labelledby")) <= set(ids)


@pytest.mark.parametrize("name", REPORTS)
def test_the_page_loads_nothing_and_runs_nothing(name: str) -> None:
    source = html.page([REPORTS[name]])
    page = Page(source)
    assert not {tag for tag, _ in page.tags} & {"script", "img", "iframe", "object", "embed", "base", "form"}
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
    source = html.page([REPORTS["pass"]])
    assert source.count(f"<td>{html.MINUS}</td>") == 1
    assert source.count("<td>+</td>") == 2
    assert source.count("<td>~</td>") == 1
    assert "<mark>desc[UR4][R2.64+0x10]</mark>" in source
    assert "<mark>R2</mark>" not in source


def test_a_branch_links_to_its_label_and_a_label_past_the_end_does_not() -> None:
    page = Page(html.page([REPORTS["pass"]]))
    assert [href for href in page.values("href") if "L_5fx" in href] == ["#t1-2-a-_2eL_5fx_5f0"]
    assert ".L_x_0:" in page.texts
    assert ".L_x_9:" not in page.texts


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
    page = Page(html.page([hostile]))
    assert "script" not in {tag for tag, _ in page.tags}
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
    parts = list(html.fold(rows))
    assert [one for part, _ in parts for one in part] == rows
    assert [(part[0].kind, len(part)) for part, folded in parts if folded] == [
        (DiffKind.SAME, 40 - 2 * html.CONTEXT),
        (DiffKind.ADDED, 200 - html.HEAD - html.CONTEXT),
    ]


def test_a_folded_stretch_says_what_is_in_it() -> None:
    code = listing(SM121A, *(instruction(i, "FSEL", "R1, R2, RZ, P1") for i in range(100)))
    diff = SassDiff(
        tuple(DiffRow(DiffKind.ADDED, None, i) for i in code.instructions),
        {InstructionClass.COMPARE: 100},
        identical=False,
    )
    source = html.page([report(dataclasses.replace(on_121(), before=hardware(SM121A), after=code, diff=diff))])
    assert f"<summary>{100 - html.HEAD - html.CONTEXT} more added instructions: 72 compare, select</summary>" in source
    assert source.count("<td>+</td>") == 100


def test_twenty_long_listings_stay_under_five_megabytes() -> None:
    code = listing(SM121A, *(instruction(i, F2FP, "R10, R12, R13, R14", "@!P0") for i in range(800)))
    diff = SassDiff(tuple(DiffRow(DiffKind.CHANGED, i, i) for i in code.instructions), {}, identical=False)
    result = dataclasses.replace(on_121(), before=code, after=code, diff=diff)
    assert len(html.page([report(*[result] * 20)]).encode()) < 5_000_000


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
    assert len(colours) == 6 + 1 + 6 + len(html.CLASSES)
    low = []
    for text_colour in colours.keys() - backgrounds - {"line"}:
        # Only operands, in the text's colour, stand on the mark; verdicts and links never stand on listing rows.
        on = {"bg", "card"} if text_colour in on_plain else backgrounds - (set() if text_colour == "text" else {"mark"})
        for background in on:
            lighter, darker = sorted((colours[text_colour], colours[background]), reverse=True)
            if (lighter + 0.05) / (darker + 0.05) < 4.5:
                low.append((text_colour, background, round((lighter + 0.05) / (darker + 0.05), 2)))
    assert low == []


# --- words -----------------------------------------------------------------------------------------------------------


def test_the_reason_is_the_line_with_the_error() -> None:
    assert (
        words.reason(host(Verdict.FAIL, "In file included\n  a.h(3): error: no such thing\n"))
        == "a.h(3): error: no such thing"
    )


def test_the_reason_leaves_out_the_folders_and_stays_short() -> None:
    reason = words.reason(host(Verdict.FAIL, f"/a/long/way/to/x.h(12): error: calling {'word ' * 40}"))
    assert reason.startswith("x.h(12): error: calling word")
    assert len(reason) <= 72
    assert reason.endswith(" …")


def test_a_failure_without_a_check_says_that_nothing_was_checked() -> None:
    assert words.reason(dataclasses.replace(on_121(Verdict.FAIL), checks=())) == "nothing was checked"
    assert words.reason(on_121()) == ""


def test_names_keep_their_target_where_there_are_several() -> None:
    other = dataclasses.replace(on_120(), probe="vllm/e2m1-x2")
    assert words.short_names([on_120()]) == {"cutlass/e2m1-x2": "e2m1-x2"}
    assert set(words.short_names([on_120(), other]).values()) == {"cutlass/e2m1-x2", "vllm/e2m1-x2"}
