"""What ptxas makes of FP4 instructions, by the program that records it, with the compiler of the test environment."""

import json

import pytest

from fp4patch.commands.explore_page import INSTRUCTIONS
from fp4patch.core.arch import Arch
from fp4patch.proof.toolchain import find_toolchain
from tools.pages import features

FEATURES = {feature["instruction"]: feature for group in features.groups() for feature in group["features"]}
RECORD = json.loads((features.ROOT / INSTRUCTIONS).read_text(encoding="utf-8"))
CELLS = {feature["instruction"]: feature["cells"] for group in RECORD["groups"] for feature in group["features"]}
ENCODE = "cvt.rn.satfinite.e2m1x2.f32"
MMA = "mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::{}.f32.e2m1.e2m1.f32.{}"
CLAIMED = "mma.sync.aligned.m16n8k32.row.col.kind::mxf4nvf4.block_scale.scale_vec::1X.f32.e2m1.e2m1.f32.ue8m0"
TCGEN05 = "tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale.{}"

OUTCOMES = [
    (ENCODE, "100a 120f 121a", "hardware", "F2FP.SATFINITE.E2M1.F32.PACK_AB_MERGE_C"),
    (ENCODE, "90 120 121", "rejected", "not supported on target"),
    ("cvt.rn.f16x2.e2m1x2", "100f 120a 121f", "hardware", "F2FP.F16.E2M1.UNPACK_B"),
    ("cvt.rs.satfinite.e2m1x4.f32", "100a", "hardware", "2 F2FP.SATFINITE.E2M1.F32.PACK_AB_MERGE_C.RS"),
    ("cvt.rs.satfinite.e2m1x4.f32", "100f 121a", "rejected", "not supported on target"),
    ("cvt.rn.satfinite.e4m3x2.f32", "90 121", "hardware", "F2FP.SATFINITE.E4M3.F32.PACK_AB_MERGE_C"),
    ("cvt.rn.bf16x2.e2m1x2", "121a", "rejected", "unknown types"),
    (MMA.format("4X", "ue4m3"), "120a 121f", "hardware", "OMMA.SF.16864.F32.E2M1.E2M1.UE4M3.4X"),
    (MMA.format("4X", "ue4m3"), "90 100a 121", "rejected", "not supported on target"),
    (MMA.format("2X", "ue8m0"), "120a 121a", "hardware", "OMMA.SF.16864.F32.E2M1.E2M1.E8"),
    (CLAIMED, "120a 121a", "rejected", "unknown modifier"),
    (TCGEN05.format("scale_vec::4X"), "100a", "hardware", "UTCOMMA.4X"),
    (TCGEN05.format("block16"), "100f", "hardware", "UTCOMMA.4X"),
    ("fma.rn.f32x2", "100a", "hardware", "FFMA2"),
    ("fma.rn.f32x2", "121a", "emulated", "2 FFMA"),
    ("tensormap.replace.tile.global_address.global.b1024.b64", "90a 121a", "hardware", "STG.E.64"),
]


@pytest.fixture(scope="module")
def compiler() -> features.Compiler:
    tools = find_toolchain()
    return features.Compiler(tools.root / "bin/ptxas", tools.nvdisasm)


@pytest.mark.parametrize(("instruction", "targets", "outcome", "text"), OUTCOMES, ids=lambda value: str(value)[-40:])
def test_the_outcome_and_the_record_are_what_was_measured_by_hand(
    compiler: features.Compiler, instruction: str, targets: str, outcome: str, text: str
) -> None:
    for target in map(Arch.parse, targets.split()):
        made = compiler.outcome(FEATURES[instruction], target, compiler.newest_isa())
        assert made == (outcome, text) == tuple(CELLS[instruction][str(target)]["13.0"]), target


def test_an_older_ptx_version_is_told_from_a_missing_feature(compiler: features.Compiler) -> None:
    assert compiler.outcome(FEATURES[ENCODE], Arch(12, 1, "a"), "8.6") == ("rejected", "PTX version too low")
    assert compiler.outcome(FEATURES[ENCODE], Arch(19, 9, "a"), "9.0") == ("rejected", "unknown target")


def test_the_record_has_each_instruction_for_each_compiler_and_no_accepted_code_is_empty() -> None:
    """An instruction with constant operands, or with a result that is never stored, would leave no code."""
    assert tuple(RECORD["toolkits"]) == features.cuda_releases()
    assert list(CELLS) == list(FEATURES)
    cells = [cell for by_target in CELLS.values() for by_release in by_target.values() for cell in by_release.values()]
    assert all(text for _, text in cells)


# Errors of releases that the test environment does not have.
@pytest.mark.parametrize(
    ("words", "kind"),
    [
        ("Instruction 'cvt with .e2m1x2' not supported on .target 'sm_120'", "not supported on target"),
        ("Feature 'cvt.e2m1x2.f32' not supported on .target 'sm_120'", "not supported on target"),
        ("Illegal modifier '.scale_vec::4X' for instruction 'mma' with type '.ue8m0'", "unknown modifier"),
        ("Arguments mismatch for instruction 'max'", "unknown types"),
        ("Feature 'cvt.e2m1x2.f16x2' requires PTX ISA .version 9.1 or later", "PTX version too low"),
        ("Not a name of any known instruction: 'bogus'", "unknown instruction"),
        ("Internal error", "refused"),
    ],
)
def test_understands_the_words_of_every_release(words: str, kind: str) -> None:
    assert features.refusal(f"ptxas kernel.ptx, line 14; error   : {words}\n") == kind
