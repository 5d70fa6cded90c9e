"""Terminal output of verify and of errors, at any width."""

from __future__ import annotations

import dataclasses

import pytest
from verify_reports import DRIFT, REPORTS, SM121A, hardware, host, listing, on_120, on_121, report, software, text

from fp4patch.catalog.manifest import load
from fp4patch.commands import terminal, verify_effect, verify_text
from fp4patch.commands.show.result import lists
from fp4patch.commands.show.text import list_table, matrix_table
from fp4patch.commands.terminal import NONE
from fp4patch.core.arch import Arch
from fp4patch.core.errors import Refused
from fp4patch.core.problem import Problem
from fp4patch.core.verdict import Verdict
from fp4patch.proof.result import BuildResult
from fp4patch.proof.verdict import headline


def test_the_answer_comes_first_and_only_what_changed_is_a_row() -> None:
    lines = [line.split() for line in text(verify_text.VerifyTable(REPORTS["pass"])).splitlines()]
    assert lines[0][:4] == ["PASS", "Verified:", "next2", "on"]
    assert ["e2m1-x2", "121a", *["3", "→", "4", "0", "→", "1", "1", "→", "0", "pass"]] in lines
    assert not [line for line in lines if line[:2] == ["e2m1-x2", "120a"]]
    assert ["1", "of", "3", "unchanged,", "byte", "for", "byte"] in lines


def test_rows_with_the_same_numbers_are_one_and_what_failed_comes_first() -> None:
    twice = [on_121(), dataclasses.replace(on_121(), arch=Arch(12, 1, "f"))]
    wrong = dataclasses.replace(on_121(Verdict.FAIL), probe="cutlass/z")
    first, second = verify_effect.changed_rows([*twice, wrong, on_120()])
    assert (first.result.probe, second.archs) == ("cutlass/z", (SM121A, Arch(12, 1, "f")))


def test_longer_code_stands_in_the_verdicts_line_unless_a_macro_chose_it() -> None:
    long = dataclasses.replace(on_121(), after=listing(SM121A, *software().instructions * 2))
    assert "on sm_121a up to 3 times longer than the instruction" in headline([report(long)]).title
    forced = dataclasses.replace(long, defines={"FP4PATCH_FORCE_SOFTWARE": 1})
    assert "longer" not in headline([report(forced)]).title


def test_the_effect_on_arch_lists_comes_before_the_codes() -> None:
    lists = [BuildResult("vllm/arch-lists", "13.0", asked, "12.0f", after, "") for asked, after in LISTS]
    shorter = dataclasses.replace(on_121(), before=software(), after=hardware(SM121A))
    first, second = verify_effect.effect(dataclasses.replace(report(shorter), builds=tuple(lists)))
    assert first == "vllm/arch-lists: 1 of 2 arch lists changed; 12.1a with CUDA 13.0: 12.0f → 12.1a"
    assert second == "sm_121a e2m1-x2: 4 → 3 instructions, 1 → 0 branches"


LISTS = (("12.1a", "12.1a"), ("12.0f", "12.0f"))


def test_the_whole_table_has_each_row_before_and_after() -> None:
    lines = [line.split() for line in text(verify_text.VerifyTable(REPORTS["pass"], details=True), 120).splitlines()]
    first = next(number for number, line in enumerate(lines) if line[:1] == ["probe"])
    assert lines[first + 2] == [*["sm_121a", "3", "→", "4", "0", "→", "1", "1", "→", "0", "8", "→", "10", "pass"]]
    assert lines[first + 3] == ["include-only", "sm_120a", "host", "pass", NONE, NONE, NONE, "pass"]


@pytest.mark.parametrize("width", [60, 80, 120])
@pytest.mark.parametrize("name", REPORTS)
def test_no_line_is_wider_than_the_terminal_and_no_verdict_is_cut(name: str, width: int) -> None:
    lines = text(verify_text.VerifyTable(REPORTS[name], details=True), width).splitlines()
    short = text(verify_text.VerifyTable(REPORTS[name]), width).splitlines()
    assert max(len(line) for line in short) <= width
    assert max(len(line) for line in lines) <= width
    for result in REPORTS[name].results:
        assert any(str(result.arch) in line and line.rstrip().endswith(result.verdict.value) for line in lines)


def test_the_matrix_has_all_states_at_any_width() -> None:
    states = ("applied", "applied", "upstreamed", "applied")
    rows = [
        {"target": "vllm", "version": f"0.{number}", "states": {"vllm/cmake-sm121a": state, "vllm/e2m1-asm": "applied"}}
        for number, state in enumerate(states)
    ]
    wide = [line.split() for line in text(matrix_table({"rows": rows})).splitlines()]
    assert wide[0] == ["vllm", "cmake-sm121a", "e2m1-asm"]
    assert wide[1:] == [[f"0.{number}", state, "applied"] for number, state in enumerate(states)]
    assert text(matrix_table({"rows": rows}), 24).splitlines() == [
        "vllm",
        "  cmake-sm121a",
        "    applied: 0.0 to 0.1",
        "    upstreamed: 0.2",
        "    applied: 0.3",
        "  e2m1-asm",
        "    applied: 0.0 to 0.3",
    ]


@pytest.mark.parametrize("width", [60, 80, 120])
def test_a_list_breaks_no_name_and_no_word(width: int) -> None:
    found = lists(load(), None)
    lines = text(list_table(found), width).splitlines()
    assert max(len(line) for line in lines) <= width
    assert len(lines) < 150  # three columns at any width were 290 lines at 60
    shown = set(" ".join(lines).split())
    named = [(variant.name, variant.title) for variant in found.variants]
    named += [(patch.name, patch.title) for patch in found.patches]
    named += [(target.name, target.title) for target in found.targets]
    for name, title in named:
        assert {name, *title.split()} <= shown
    assert {patch for variant in found.variants for patch in variant.patches} <= shown


def test_a_failing_check_says_rule_finding_and_reason() -> None:
    shown = text(verify_text.VerifyTable(REPORTS["fail"]))
    block = "fail: cutlass/e2m1-x2 on sm_121a\n  rule     without branches\n  found    1 branch: BRA\n"
    assert block + "  because  both sides would be paid for\n" in shown
    assert "FAIL  Not verified: 2 of 4 checks failed" in shown


def test_an_empty_report_says_that_nothing_was_checked() -> None:
    shown = text(verify_text.VerifyTable(REPORTS["empty"]))
    assert "FAIL  Not verified: nothing was checked" in shown


def test_an_unsupported_architecture_is_named() -> None:
    assert "the toolkit cannot compile for sm_121a" in text(verify_text.VerifyTable(REPORTS["unsupported"]), 120)


def test_text_in_a_pipe_is_neither_cut_nor_wrapped() -> None:
    long = "error: " + "x" * 300
    shown = text(verify_text.VerifyTable(report(host(Verdict.FAIL, long))), pipe=True)
    assert f"  {long}\n" in shown


def test_markup_in_names_is_text() -> None:
    shown = text(verify_text.VerifyTable(report(host(Verdict.FAIL, "error: [red]a[/red]"), tree="[bold]tree")), 120)
    assert "[bold]tree" in shown
    assert "error: [red]a[/red]" in shown


def test_control_characters_do_not_reach_the_terminal() -> None:
    shown = text(verify_text.VerifyTable(report(host(Verdict.FAIL, "error: \x1b[2J\x1b]0;x\x07"), tree="a\udcff")), 120)
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


def test_an_advice_that_several_problems_share_is_given_once() -> None:
    problems = [Problem("a", str(n), "put back the file", file=f"f{n}.h") for n in range(11)]
    other = Problem("a", "b", "make room", file="g.h")
    said = text(terminal.problems([*problems[:5], other, *problems[5:]]))
    assert said.count("put back the file") == 1
    assert said.count("make room") == 1
    assert said.index("put back") > said.index("f10.h")
    said = text(terminal.error(Refused("no", help="put back the file", problems=problems)))
    assert said.count("put back the file") == 1
