"""Each way in which a rule can fail, and each way in which nothing was checked."""

from dataclasses import replace

import pytest

from fp4patch.catalog.probe import Probe, ProbeKind
from fp4patch.catalog.rule import Metric, Rule
from fp4patch.core.arch import Arch
from fp4patch.core.results import Verdict, overall
from fp4patch.proof.judge import effects, judge, missing_checks
from fp4patch.proof.listing import SassListing
from fp4patch.proof.result import Check
from fp4patch.sass.instruction import Instruction, InstructionClass
from fp4patch.sass.text import classify

A120, A121 = Arch(12, 0, "a"), Arch(12, 1, "a")
PROBE = Probe(name="x8", title="", source="x8.cu", patch="lib/guard")
HOST = Probe(name="header", title="", source="header.cu", kind=ProbeKind.HOST, patch="lib/guard")
RULE = Rule(probes=("lib/*",), arch=("sm_120a", "sm_121a"), because="of a reason", forbids=("NONE",))


def listing(*opcodes: str) -> SassListing:
    """Code that stores what it computes."""
    return exactly("STG.E", *opcodes)


def exactly(*opcodes: str) -> SassListing:
    classes = [classify(opcode) or InstructionClass.OTHER for opcode in opcodes]
    code = (Instruction(16 * n, "", opcode, "", classes[n]) for n, opcode in enumerate(opcodes))
    return SassListing(instructions=tuple(code), labels={}, code_sha256="0")


def one(rule: Rule, after: SassListing, before: SassListing | None = None) -> Check:
    (check,) = judge([rule], before, after)
    assert check.because == "of a reason"
    return check


def rule(**conditions: object) -> Rule:
    return replace(RULE, **({"forbids": ()} | conditions))  # type: ignore[arg-type]


def test_identical_holds_only_where_no_byte_differs() -> None:
    code, longer = listing("FADD"), replace(listing("FADD", "FADD", "BRA"), code_sha256="1")
    assert one(rule(identical=True), code, code).verdict is Verdict.PASS
    failed = one(rule(identical=True), longer, code)
    assert failed.verdict is Verdict.FAIL
    alone = one(rule(identical=True), longer, None)
    assert alone.verdict is Verdict.FAIL
    assert "did not compile" in alone.detail


def test_identical_with_what_is_required_is_for_code_that_has_it_before() -> None:
    hardware, software = listing("F2FP.E2M1"), replace(listing("BRA"), code_sha256="1")
    of_both = rule(identical=True, requires=("^F2FP",))
    assert [check.verdict for check in judge([of_both], software, hardware)] == [Verdict.PASS]
    assert Verdict.FAIL in [check.verdict for check in judge([of_both], hardware, software)]
    assert Verdict.FAIL in [check.verdict for check in judge([of_both], None, hardware)]


def test_requires_and_forbids_search_in_opcode_and_modifiers() -> None:
    hardware, software = listing("BRA", "F2FP.SATFINITE.E2M1.F32.PACK_AB_MERGE_C"), listing("FADD", "BRA")
    requires, forbids = rule(requires=(r"^F2FP\..*\bE2M1\b",)), rule(forbids=(r"^F2FP\..*\bE2M1\b",))
    assert one(requires, hardware).verdict is Verdict.PASS
    assert one(requires, software).verdict is Verdict.FAIL
    assert one(requires, software).detail == "none"
    assert one(forbids, software).verdict is Verdict.PASS
    assert one(forbids, hardware).verdict is Verdict.FAIL
    assert one(forbids, hardware).detail == "1 F2FP.SATFINITE.E2M1.F32.PACK_AB_MERGE_C"


@pytest.mark.parametrize(("name", "opcode"), [("branches", "BRA"), ("local", "LDL"), ("f64", "DADD")])
def test_each_kind_of_instruction_can_be_excluded(name: Metric, opcode: str) -> None:
    assert one(rule(without=(name,)), listing("FADD", "FADD")).verdict is Verdict.PASS
    failed = one(rule(without=(name,)), listing("FADD", opcode, opcode))
    assert (failed.verdict, failed.detail) == (Verdict.FAIL, f"2 {opcode}")


@pytest.mark.parametrize(
    ("opcodes", "holds"),
    [
        (("FADD",), True),
        (("BRA", "FADD"), False),  # changed, and as long
        (("FADD", "FADD", "FADD"), False),
        (("BRA", "BRA"), False),
        (("LDL",), False),
        (("DADD",), False),
    ],
)
def test_shorter_is_code_with_fewer_instructions_and_none_more_of_any_kind(
    opcodes: tuple[str, ...], holds: bool
) -> None:
    before, after = listing("BRA", "FADD"), replace(listing(*opcodes), code_sha256="1")
    check = one(rule(shorter=True), after, before)
    assert check.verdict is (Verdict.PASS if holds else Verdict.FAIL)
    assert check.detail.startswith(f"3 → {1 + len(opcodes)} instructions")


def test_code_that_the_patch_leaves_alone_is_short_enough_and_code_without_a_pristine_one_is_not_compared() -> None:
    code = listing("FADD")
    assert one(rule(shorter=True), code, code).verdict is Verdict.PASS
    assert judge([rule(shorter=True)], None, code) == ()


@pytest.mark.parametrize("opcodes", [("EXIT",), ("FADD", "STL", "EXIT")])
def test_code_that_the_compiler_left_nothing_of_fails_whatever_it_satisfies(opcodes: tuple[str, ...]) -> None:
    rules = [rule(forbids=("^F2FP",)), rule(without=("branches",)), rule(identical=True)]
    checks = judge(rules, exactly(*opcodes), exactly(*opcodes))
    assert [check.verdict for check in checks] == [Verdict.PASS] * 3 + [Verdict.FAIL]
    assert overall(check.verdict for check in checks) is Verdict.FAIL


@pytest.mark.parametrize("pattern", [r"^F2PF\..*\bE2M1\b", "^OMMAS", "^f2fp"])
def test_a_pattern_for_an_instruction_that_does_not_exist_is_a_problem(pattern: str) -> None:
    for mistaken in (rule(forbids=(pattern,)), rule(requires=(pattern,))):
        (problem,) = missing_checks([mistaken], [(PROBE, A120)], [A120])
        assert pattern in problem.expected
    for right in (r"^F2FP\.", "^F2", "^HFMAX*", "^(BRA|CALL)", "E2M1"):
        assert missing_checks([rule(forbids=(right,))], [(PROBE, A120)], [A120]) == ()


OTHER, X16 = replace(PROBE, patch="lib/other"), replace(PROBE, name="x16")
UNIT = replace(PROBE, name="file", kind=ProbeKind.UNIT)
NO_PROBE = "a probe to which the rule for {} on sm_120a, sm_121a applies"


@pytest.mark.parametrize(
    ("rules", "ran", "aside", "builds", "expected"),
    [
        ([RULE], [PROBE, HOST], [], False, []),
        ([], [], [], False, ["at least one probe"]),
        ([], [], [PROBE], True, ["at least one probe"]),
        ([], [], [], True, []),
        ([RULE], [PROBE, OTHER], [], False, ["one probe lib/x8 on sm_120a"]),
        ([RULE, replace(RULE, probes=("lib/x9",))], [PROBE], [], False, [NO_PROBE.format("lib/x9")]),
        ([RULE, replace(RULE, probes=("lib/header",))], [PROBE, HOST], [], False, [NO_PROBE.format("lib/header")]),
        ([replace(RULE, arch=("sm_121a",))], [PROBE], [], False, ["a rule for lib/x8 on sm_120a"]),
        ([], [UNIT], [], False, ["a rule for lib/file on sm_120a"]),
        ([RULE, replace(RULE, arch=("sm_121a",))], [PROBE], [], False, []),
        ([RULE, replace(RULE, probes=("lib/x16",))], [PROBE], [X16], False, []),
        ([RULE], [HOST], [PROBE], False, ["at least one probe whose machine code is judged"]),
        ([], [HOST], [], False, []),
    ],
)
def test_a_rule_and_a_probe_that_meet_nothing_are_problems_where_they_were_asked_for(
    rules: list[Rule], ran: list[Probe], aside: list[Probe], builds: bool, expected: list[str]
) -> None:
    """What was set aside for a reason, and rules for other targets, are none."""
    problems = missing_checks(rules, [(probe, A120) for probe in ran], [A120], aside, builds=builds)
    assert [problem.expected for problem in problems] == expected


def test_requires_and_forbids_search_in_the_operands_too() -> None:
    opcode = "F2FP.SATFINITE.E2M1.F32.PACK_AB_MERGE_C"
    instruction = Instruction(0, "@!P0", opcode, "R7, R4, -R7, RZ", InstructionClass.FP4)
    after = replace(listing(), instructions=(*listing().instructions, instruction))
    for pattern, found in ((r"^F2FP\..* -R7", True), (r"\bRZ$", True), (r"^F2FP\..*\bR8\b", False), ("@!P0", False)):
        assert one(rule(requires=(pattern,)), after).verdict.failed is not found
        assert one(rule(forbids=(pattern,)), after).verdict.failed is found


@pytest.mark.parametrize(
    ("pristine", "patched", "found"),
    [
        ("STG.E", "PREEXIT STG.E", "it has PREEXIT, too"),
        ("BAR.SYNC STG.E", "USETMAXREG.DEALLOC BAR.SYNC MEMBAR.SC.GPU STG.E", "it has MEMBAR, USETMAXREG, too"),
        ("STG.E STG.E.U8", "STG.E.64", "it stores 8 bytes at once, and upstream's code at most 4"),
        ("STG.E.U8", "ST.E.128", "it stores 16 bytes at once, and upstream's code at most 1"),
        ("STG.E.U16", "STG.E", "it stores 4 bytes at once, and upstream's code at most 2"),
        ("PREEXIT STG.E.128", "PREEXIT BSSY BSYNC NOP STG.E.64.SYS", ""),
    ],
)
def test_effects_that_no_execution_shows_are_those_of_upstream(pristine: str, patched: str, found: str) -> None:
    before, after = exactly(*pristine.split()), exactly(*patched.split())
    failed = list(effects(after, [before]))
    assert [check.detail for check in failed] == [found] * bool(found)
    assert all(check.verdict.failed for check in failed)
    assert list(effects(after, [before, after])) == []
    trap = exactly("BPT.TRAP", "EXIT")  # on a target that upstream's code leaves out
    assert list(effects(after, [trap])) == []
    assert list(effects(after, [trap, before])) == failed
