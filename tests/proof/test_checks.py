"""The list of checks: each finds what no other one does, and the verdict is made of all."""

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from verified import subject
from verify_reports import F2FP, SM121A, instruction, listing, report

from fp4patch.catalog.probe import Argument, Executes, Launches, Probe, ProbeKind
from fp4patch.catalog.rule import Promise, Rule
from fp4patch.core.arch import Arch
from fp4patch.core.results import Verdict
from fp4patch.proof import dependence, execute, judge, verify
from fp4patch.proof.compile import CompiledProbes, Configured, Pair
from fp4patch.proof.counts import Row
from fp4patch.proof.coverage import NOT_RUN
from fp4patch.proof.evidence import Evidence, Judge
from fp4patch.proof.execution.result import Executed, Execution, Ran
from fp4patch.proof.probe import Compilation
from fp4patch.proof.source_lines import SourceLines
from fp4patch.proof.subject import Probes
from fp4patch.proof.toolchain import Toolchain
from fp4patch.proof.view import SourceView

HEADER = "include/lib.h"
RULE = Rule(probes=("lib/*",), arch=("sm_121a",), because="no instruction there", forbids=("^F2FP",))
PROBE = Probe(
    name="scale",
    title="scale",
    source="probe.cu",
    patch="lib/guard",
    executes=Executes(input="bfloat16", lanes=8),
)
RIGHT = Execution("lib/scale", SM121A, "patched", Promise.EXACT, Ran("inputs", 65536, bits=16))
WRONG = replace(RIGHT, ran=Ran("inputs", 65536, 1, bits=16))


@pytest.fixture
def evidence(tmp_path: Path) -> Evidence:
    """One probe whose code was changed, and all of it is right."""
    (tmp_path / "include").mkdir()
    (tmp_path / HEADER).write_text("int scaled();\n")
    toolchain = Toolchain(
        root=tmp_path,
        nvcc=tmp_path / "nvcc",
        host_compiler=tmp_path / "g++",
        nvdisasm=tmp_path / "nvdisasm",
        flags=(),
        environ={},
        fingerprint="",
        info=report().toolchain,
    )
    looked_at = subject(
        SourceView(tmp_path, {HEADER: b"int scale();\n"}),
        Probes(ran=[(PROBE, tmp_path / "probe.cu")], archs=[SM121A]),
        [RULE],
        toolchain,
    )
    looked_at = replace(looked_at, records={("13.0", "lib/scale", "sm_121a"): Row((9, 9, 9, 9), counted=True)})
    pair = Pair(PROBE, SM121A, code(F2FP), code("FSEL"))
    usual = Configured("lib/scale", SM121A, ("-O1",), same=True, built=Compilation())
    return Evidence(
        subject=looked_at,
        compiled=CompiledProbes((pair,), (usual,)),
        executed=Executed((RIGHT,)),
    )


def code(*opcodes: str) -> Compilation:
    """Return machine code that stores what these instructions give."""
    every = ("LDG.E", *opcodes, "STG.E", "EXIT")
    return Compilation(b"\x7fELF", listing=listing(*(instruction(at, opcode) for at, opcode in enumerate(every))))


def with_code(evidence: Evidence, after: Compilation) -> Evidence:
    (pair,) = evidence.compiled.pairs
    return replace(evidence, compiled=replace(evidence.compiled, pairs=(replace(pair, after=after),)))


def with_rules(evidence: Evidence, *rules: Rule) -> Evidence:
    variant = replace(evidence.subject.variant, rules=rules)
    return replace(evidence, subject=replace(evidence.subject, variant=variant))


def of_rules(evidence: Evidence) -> Evidence:
    return with_rules(evidence, replace(RULE, forbids=("^FSEL",)))


def of_counts(evidence: Evidence) -> Evidence:
    few = {("13.0", "lib/scale", "sm_121a"): Row((1, 9, 9, 9), counted=True)}
    return replace(evidence, subject=replace(evidence.subject, records=few))


def of_effects(evidence: Evidence) -> Evidence:
    return with_code(evidence, code("FSEL", "BAR.SYNC"))


def of_executions(evidence: Evidence) -> Evidence:
    return replace(evidence, executed=Executed((WRONG,)))


def of_flags(evidence: Evidence) -> Evidence:
    other = Configured("lib/scale", SM121A, ("-O1",), same=False, built=Compilation(error="error: no"))
    return replace(evidence, compiled=replace(evidence.compiled, configured=(other,)))


def of_what_is_missing(evidence: Evidence) -> Evidence:
    return with_rules(evidence, RULE, replace(RULE, probes=("lib/other",)))


def of_dependences(evidence: Evidence) -> Evidence:
    text = b"#ifdef NDEBUG\nint scaled();\n#endif\n"
    folded = replace(evidence.subject.folded, written={HEADER: text})
    return replace(evidence, subject=replace(evidence.subject, folded=folded))


FAULTS: dict[Judge, Callable[[Evidence], Evidence]] = {
    judge.by_rules: of_rules,
    judge.by_counts: of_counts,
    judge.by_effects: of_effects,
    execute.by_execution: of_executions,
    execute.with_other_flags: of_flags,
    judge.missing: of_what_is_missing,
    dependence.unvaried: of_dependences,
}


def verdict(evidence: Evidence) -> Verdict:
    return verify.report(evidence, time.monotonic()).verdict


def test_what_is_right_passes_with_the_checks_in_their_order(evidence: Evidence) -> None:
    found = verify.report(evidence, time.monotonic())
    assert found.verdict is Verdict.PASS
    (row,) = found.results
    assert [check.rule for check in row.checks] == [
        "forbids ^F2FP",
        "no count above its recorded limit",
        "gives what the variant promises",
        "right with -O1",
    ]


def test_the_list_is_complete() -> None:
    assert list(FAULTS) == list(verify.CHECKS)


@pytest.mark.parametrize("check", FAULTS, ids=lambda check: check.__name__)
def test_each_check_finds_what_no_other_one_does(
    evidence: Evidence, check: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = FAULTS[check](evidence)
    assert verdict(wrong) is Verdict.FAIL
    monkeypatch.setattr(verify, "CHECKS", [other for other in verify.CHECKS if other is not check])
    assert verdict(wrong) is Verdict.PASS


def test_an_execution_of_upstreams_code_counts_without_a_row(evidence: Evidence) -> None:
    upstreams = replace(WRONG, side="pristine")
    found = verify.report(replace(evidence, executed=Executed((RIGHT, upstreams))), time.monotonic())
    assert [row.verdict for row in found.results] == [Verdict.PASS]
    assert found.verdict is Verdict.FAIL


def test_a_check_of_what_has_no_row_is_not_lost(evidence: Evidence) -> None:
    elsewhere = replace(WRONG, arch=Arch(12, 0, "a"))
    with pytest.raises(KeyError):
        verdict(replace(evidence, executed=Executed((RIGHT, elsewhere))))


def test_evidence_that_nothing_judged_does_not_pass(evidence: Evidence, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verify, "CHECKS", ())
    assert verdict(evidence) is Verdict.FAIL


def test_a_line_whose_code_was_counted_and_not_executed_is_not_judged(evidence: Evidence) -> None:
    (pair,) = evidence.compiled.pairs
    lines = SourceLines({HEADER: [1]}, {"probe": {HEADER: [1]}})
    evidence = with_code(evidence, replace(pair.after, lines=lines))
    folded = replace(evidence.subject.folded, written={HEADER: b"int scaled() { return 1; }\n"})
    evidence = replace(evidence, subject=replace(evidence.subject, folded=folded))
    assert verify.report(evidence, time.monotonic()).coverage.judged == 1
    counted = verify.report(replace(evidence, executed=Executed(())), time.monotonic())
    assert counted.verdict is Verdict.PASS
    assert [span.because for span in counted.coverage.unjudged] == [NOT_RUN]


@pytest.mark.parametrize(("kernels", "judged"), [("one*", 1), ("other*", 0)])
def test_of_a_source_file_the_kernels_count_that_are_launched(evidence: Evidence, kernels: str, judged: int) -> None:
    (pair,) = evidence.compiled.pairs
    lines = SourceLines({HEADER: [1]}, {"one": {HEADER: [1]}, "other": {}})
    launches = Launches(kernels=kernels, grid=1, block=32, arguments=(Argument(type="int32", values=(1, 2)),))
    unit = replace(pair.probe, kind=ProbeKind.UNIT, executes=None, launches=launches)
    compiled = CompiledProbes((replace(pair, probe=unit, after=replace(pair.after, lines=lines)),))
    folded = replace(evidence.subject.folded, written={HEADER: b"int scaled() { return 1; }\n"})
    evidence = replace(evidence, compiled=compiled, subject=replace(evidence.subject, folded=folded))
    assert verify.report(evidence, time.monotonic()).coverage.judged == judged
