"""The words that terminal and page share: short, and the reason first."""

from __future__ import annotations

import dataclasses
import re

from verify_reports import REPORTS, host, on_121

from fp4patch import console
from fp4patch.core.verdict import Verdict
from fp4patch.proof import verdict
from fp4patch.proof.result import BuildResult


def test_the_reason_is_the_line_with_the_error() -> None:
    assert (
        verdict.reason(host(Verdict.FAIL, "In file included\n  a.h(3): error: no such thing\n"))
        == "a.h(3): error: no such thing"
    )


def test_the_reason_leaves_out_the_folders_and_stays_short() -> None:
    reason = verdict.reason(host(Verdict.FAIL, f"/a/long/way/to/x.h(12): error: calling {'word ' * 40}"))
    assert reason.startswith("x.h(12): error: calling word")
    assert len(reason) <= 72
    assert reason.endswith(" …")


def test_a_failure_without_a_check_says_that_nothing_was_checked() -> None:
    assert verdict.reason(dataclasses.replace(on_121(Verdict.FAIL), checks=())) == "nothing was checked"
    assert verdict.reason(on_121()) == ""


def test_wrong_output_is_told_by_its_number_of_inputs() -> None:
    found = "81,758 of 2^32 inputs differ (finite, first 0x3fa00001: 0x2, not 0x3)"
    wrong = verdict.Check(verdict.EXECUTED, "the machine code gives what the variant promises", Verdict.FAIL, found)
    assert verdict.reason(dataclasses.replace(on_121(Verdict.FAIL), checks=(wrong,))) == "81,758 of 2^32 inputs differ"


def test_control_characters_become_escapes_and_letters_stay() -> None:
    assert console.printable("a\x1b[2J\n\udcffß\u202e/[b]") == "a\\x1b[2J\\n\\udcffß\\u202e/[b]"
    assert console.printable("a\n\tb\x07", kept="\n\t") == "a\n\tb\\x07"


def test_a_build_that_is_not_as_declared_is_in_the_headline() -> None:
    lost = BuildResult("vllm/arch-lists", "13.0", "12.1a", "12.1a", "nothing", "12.1a is expected")
    title = verdict.headline([dataclasses.replace(REPORTS["pass"], builds=(lost,))]).title
    assert title == "Not verified: 1 result of the tree's own build not as declared"


def test_a_tree_in_which_nothing_was_checked_is_not_among_the_verified_ones() -> None:
    idle = dataclasses.replace(REPORTS["pass"], target="mlx", version="1", patches=(), results=(), executed=None)
    assert idle.verdict is Verdict.NOTHING
    title = verdict.headline([REPORTS["pass"], idle]).title
    assert re.fullmatch(r"Verified: \w+ on cutlass \S+ satisfies its rules; it changes nothing in mlx 1", title)
    assert verdict.headline([idle]).verdict is Verdict.NOTHING
    assert verdict.headline([dataclasses.replace(REPORTS["fail"]), idle]).verdict is Verdict.FAIL


def test_evaluations_of_a_build_are_counted_beside_checks_and_alone() -> None:
    one = BuildResult("vllm/arch-lists", "13.0", "12.1a", "12.1a", "12.1a", "")
    both = dataclasses.replace(REPORTS["pass"], builds=(one, one))
    (checks,) = verdict.counts([REPORTS["pass"]])
    assert verdict.counts([both]) == [checks, "2 evaluations of the build"]
    alone = dataclasses.replace(both, results=())
    assert verdict.counts([alone]) == ["2 evaluations of the build"]
    assert verdict.headline([alone]).detail == "2 evaluations of the build, all passed."
