"""Verify's result in a terminal: the answer first, what changed, what failed, and what was not checked."""

from dataclasses import replace

import pytest
from verify_reports import REPORTS, SM121A, host, on_120, on_121, report, text

from fp4patch.catalog.rule import Promise
from fp4patch.commands.verify_text import ROWS, VerifyText, executions
from fp4patch.core.arch import Arch
from fp4patch.core.results import Problem, Verdict
from fp4patch.proof.coverage import LEFT_OUT_HERE, NO_CODE, Coverage, LineSpan
from fp4patch.proof.execute import check_of
from fp4patch.proof.execution.result import Executed, Execution, Ran, summary
from fp4patch.proof.result import BuildResult, SetAside, headline


def words(shown: str) -> list[list[str]]:
    return [line.split() for line in shown.splitlines()]


def test_the_answer_comes_first_and_only_what_changed_is_a_row() -> None:
    lines = words(text(VerifyText(REPORTS["pass"])))
    assert lines[0][:4] == ["PASS", "Verified:", "next2", "on"]
    assert [line for line in lines if line[:1] == ["e2m1-x2"]] == [
        ["e2m1-x2", "121a", "3", "→", "4", "0", "→", "1", "1", "→", "0", "pass"]
    ]
    assert ["1", "of", "3", "unchanged,", "byte", "for", "byte"] in lines
    detailed = words(text(VerifyText(REPORTS["pass"], details=True)))
    assert {tuple(line[:2]) for line in detailed} >= {
        ("e2m1-x2", "120a"),
        ("e2m1-x2", "121a"),
        ("include-only", "120a"),
    }


def test_targets_with_the_same_numbers_share_a_row_and_what_failed_comes_first() -> None:
    twice = [on_121(), replace(on_121(), arch=Arch(12, 1, "f"))]
    many = [replace(on_121(), probe=f"cutlass/p{number}") for number in range(ROWS)]
    wrong = replace(on_121(Verdict.FAIL), probe="cutlass/z")
    lines = words(text(VerifyText(report(*twice, *many, wrong, on_120()))))
    first = next(number for number, line in enumerate(lines) if line[:1] == ["probe"])
    assert lines[first + 1][0] == "z"
    assert lines[first + 2][:3] == ["e2m1-x2", "121a", "121f"]
    assert ["2", "more", "rows", "changed:", "--details"] in lines


def test_a_tree_in_which_nothing_was_checked_is_not_among_the_verified_ones() -> None:
    idle = replace(REPORTS["pass"], target="mlx", version="1", patches=(), results=())
    assert idle.verdict is Verdict.NOTHING
    assert headline([REPORTS["pass"], idle]).title.endswith("; it changes nothing in mlx 1.")
    assert headline([idle]).verdict is Verdict.NOTHING
    assert headline([REPORTS["fail"], idle]).verdict is Verdict.FAIL


def test_evaluations_of_a_build_are_counted_and_fail_alone_too() -> None:
    build = BuildResult("vllm/arch-lists", "13.0", "12.1a", "12.1a", "12.1a", "")
    alone = replace(REPORTS["pass"], builds=(build, build), results=())
    assert headline([alone]).detail == "2 evaluations of the build, all passed."
    lost = replace(build, detail="12.1f is expected")
    title = headline([replace(REPORTS["pass"], builds=(lost,))]).title
    assert title == "Not verified: 1 result of the tree's own build not as declared"


def test_what_failed_stands_below_with_rule_finding_and_reason() -> None:
    lost = BuildResult("vllm/arch-lists", "13.0", "12.1a", "12.0f", "12.0f", "12.1a is expected")
    shown = text(VerifyText(replace(REPORTS["fail"], builds=(lost,))))
    block = "fail: cutlass/e2m1-x2 on sm_121a\n  rule     without branches\n  found    1 branch: BRA\n"
    assert block + "  because  both sides would be paid for\n" in shown
    assert "fail: vllm/arch-lists, 12.1a with CUDA 13.0: 12.0f → 12.0f; 12.1a is" in shown
    assert "unsupported: cutlass/e2m1-x4 on sm_121a" in text(VerifyText(REPORTS["unsupported"]))
    assert "Not verified: nothing was checked" in text(VerifyText(REPORTS["empty"]))


def test_what_was_not_checked_is_listed_and_what_a_person_can_do_about_it_comes_without_asking() -> None:
    aside = (
        SetAside("cutlass/gemm", "it takes minutes: --all runs it"),
        SetAside("cutlass/old", "this release has no such function"),
    )
    spans = tuple(LineSpan("a.h", line, line + 1, NO_CODE) for line in (10, 20, 30, 40))
    lacking = replace(REPORTS["pass"], set_aside=aside, coverage=Coverage(50, spans))
    short, long = (" ".join(text(VerifyText(lacking, details)).split()) for details in (False, True))
    judged = "42 of 50 changed lines judged on sm_120a and sm_121a."
    assert f"{judged} 8 have no code that was judged: a.h:10-11 and 3 more." in short
    assert "not run gemm: it takes minutes: --all runs it" in short
    assert "such function" not in short
    assert "a.h:10-11,20-21,30-31,40-41" in long
    assert "not run old: this release has no such function" in long


WRONG = Ran("inputs", 1 << 32, 1, first="0x3e800000 gives 0x1, not 0x0", bits=32)
SIGNS = Ran("inputs", 1 << 32, 0, 2, "0xff800001 gives 0xf, not 0x7", 32)
NOT_RUN = Execution("cutlass/e2m1-x2", SM121A, "patched", Promise.EXACT)


@pytest.mark.parametrize(
    ("run", "found"),
    [
        (replace(NOT_RUN, ran=WRONG), "1 of 4,294,967,296 inputs differ (first: 0x3e800000 gives 0x1, not 0x0)"),
        (replace(NOT_RUN, ran=SIGNS), "2 of 4,294,967,296 inputs differ (first: 0xff800001 gives 0xf, not 0x7)"),
        (replace(NOT_RUN, problem="F2FP.NEW at 0x120", unsupported=True), "unsupported: F2FP.NEW at 0x120"),
    ],
    ids=["input", "sign", "instruction"],
)
def test_a_row_whose_execution_fails_does_not_pass(run: Execution, found: str) -> None:
    executed = Executed((run,))
    results = tuple(
        replace(row, checks=(*row.checks, check_of(run))) if row.arch == run.arch else row
        for row in REPORTS["pass"].results
    )
    (row,) = [result for result in results if result.arch == SM121A]
    assert row.verdict is Verdict.FAIL
    assert found == summary(run)
    assert [*executions(executed, failed=True)] == [f"cutlass/e2m1-x2, patched sm_121a: {found}"]
    lines = text(VerifyText(replace(REPORTS["pass"], results=results, executed=executed)), 240).splitlines()
    assert any(found in line for line in lines)
    assert not [line for line in lines if " 121a " in line and line.rstrip().endswith("pass")]


def test_text_in_a_pipe_is_neither_cut_nor_wrapped() -> None:
    long = "error: " + "x" * 300
    assert f"  {long}\n" in text(VerifyText(report(host(Verdict.FAIL, long))), pipe=True)


def test_names_and_messages_neither_control_the_terminal_nor_become_markup() -> None:
    message = "error: [red]a[/red]\x1b[2J\x1b]0;x\x07"
    shown = text(VerifyText(report(host(Verdict.FAIL, message), tree="[bold]a\udcff")), 120)
    assert "\x1b" not in shown
    assert "error: [red]a[/red]\\x1b[2J\\x1b]0;x\\x07" in shown
    assert "[bold]a\\udcff" in shown


def test_the_verdict_says_what_named_targets_leave_out_and_its_numbers_add_up() -> None:
    spans = (LineSpan("a.h", 1, 48, LEFT_OUT_HERE), LineSpan("b.h", 213, 213, NO_CODE))
    unasked = "--arch leaves out the check that conditions on targets are varied"
    shown = headline([replace(REPORTS["pass"], coverage=Coverage(436, spans), unasked=unasked)]).title
    assert shown.endswith(
        "387 of 436 changed lines judged on sm_120a and sm_121a. 1 has no code that was judged: b.h:213. "
        f"48 are left out on these targets. {unasked}."
    )


def test_a_report_that_fails_praises_nothing() -> None:
    executed = Executed((replace(NOT_RUN, ran=WRONG), replace(NOT_RUN, ran=replace(WRONG, wrong=0, first=""))))
    assert "right" in text(VerifyText(replace(REPORTS["pass"], executed=Executed(executed.executions[1:]))))
    problem = Problem(expected="a check of each changed line, as --strict asks", found="none of 1 line")
    shown = text(VerifyText(replace(REPORTS["pass"], executed=executed, problems=(problem,))))
    assert shown.startswith("FAIL")
    assert " right" not in shown
