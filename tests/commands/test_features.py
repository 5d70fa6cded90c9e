"""Outcomes and messages of the features with the real ptxas of the test environment."""

from __future__ import annotations

from pathlib import Path

import pytest

from fp4patch.catalog.feature import Feature, Outcome, Refusal, ToolkitMatrix
from fp4patch.catalog.features import load_features
from fp4patch.catalog.manifest import data_root
from fp4patch.commands.features import measure as doctor
from fp4patch.core.arch import Arch
from fp4patch.proof.ptxas import Assembler, classify
from fp4patch.proof.toolkits import installed

FEATURES = [feature for group in load_features(data_root()) for feature in group.features]
ENCODE = "cvt.rn.satfinite.e2m1x2.f32"
MMA = "mma.sync.aligned.m16n8k64.row.col.kind::{}.block_scale.{}f32.e2m1.e2m1.f32.{}"
NVFP4 = MMA.format("mxf4nvf4", "scale_vec::4X.", "ue4m3")
CLAIMED = "mma.sync.aligned.m16n8k32.row.col.kind::mxf4nvf4.block_scale.scale_vec::1X.f32.e2m1.e2m1.f32.ue8m0"
TCGEN05 = "tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale."
GATHER = "cp.async.bulk.tensor.2d.shared::cta.global.tile::gather4.mbarrier::complete_tx::bytes"
SCATTER = "cp.async.bulk.tensor.2d.global.shared::cta.tile::scatter4.bulk_group"
TARGETS = tuple(map(Arch.parse, ("90", "90a", "100a", "100f", "120", "120a", "120f", "121", "121a", "121f")))


@pytest.fixture(scope="module")
def assembler() -> Assembler:
    return installed()


@pytest.fixture(scope="module")
def matrix(assembler: Assembler, tmp_path_factory: pytest.TempPathFactory) -> ToolkitMatrix:
    store = tmp_path_factory.mktemp("store")
    return doctor.probe(FEATURES, TARGETS, assembler, isa=assembler.newest_isa, store=store, jobs=2)


def feature(instruction: str) -> Feature:
    return next(one for one in FEATURES if one.instruction == instruction)


HARDWARE = [
    (ENCODE, "100a 100f 120a 120f 121a 121f", "F2FP.SATFINITE.E2M1.F32.PACK_AB_MERGE_C"),
    ("cvt.rn.f16x2.e2m1x2", "100a 100f 120a 120f 121a 121f", "F2FP.F16.E2M1.UNPACK_B"),
    ("cvt.rs.satfinite.e2m1x4.f32", "100a", "2 F2FP.SATFINITE.E2M1.F32.PACK_AB_MERGE_C.RS"),
    ("cvt.rn.satfinite.e4m3x2.f32", "90 100a 120 121 121a", "F2FP.SATFINITE.E4M3.F32.PACK_AB_MERGE_C"),
    (NVFP4, "120a 120f 121a 121f", "OMMA.SF.16864.F32.E2M1.E2M1.UE4M3.4X"),
    (MMA.format("mxf4", "scale_vec::2X.", "ue8m0"), "120a 120f 121a 121f", "OMMA.SF.16864.F32.E2M1.E2M1.E8"),
    (MMA.format("mxf4nvf4", "scale_vec::2X.", "ue8m0"), "120a 120f 121a 121f", "OMMA.SF.16864.F32.E2M1.E2M1.E8"),
    (
        "mma.sp::ordered_metadata.sync.aligned.m16n8k128.row.col.kind::mxf4nvf4"
        ".block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3",
        "120a 121a",
        "OMMA.SF.SP.168128.F32.E2M1.E2M1.UE4M3.4X",
    ),
    (TCGEN05 + "scale_vec::4X", "100a", "UTCOMMA.4X"),
    (TCGEN05 + "block16", "100a 100f", "UTCOMMA.4X"),
    ("fma.rn.f32x2", "100a 100f", "FFMA2"),
    ("cvt.rn.satfinite.relu.e2m1x2.f32", "100a 120a 120f 121a", "F2FP.SATFINITE.RELU.E2M1.F32.PACK_AB_MERGE_C"),
    ("cvt.rn.relu.f16x2.e2m1x2", "100a 120a 120f 121a", "F2FP.RELU.F16.E2M1.UNPACK_B"),
    ("ld.global.v8.f32", "100a 120 120a 121", "LDG.E.ENL2.256"),
    ("st.global.v8.f32", "100a 120 120a 121", "STG.E.ENL2.256"),
    ("tensormap.replace.tile.global_address.global.b1024.b64", "90a 100a 120a 121a", "STG.E.64"),
    (GATHER, "100a 120a 121a", "UTMALDG.2D.GATHER4"),
    (SCATTER, "100a", "UTMASTG.2D.SCATTER4"),
]

REJECTED = [
    (ENCODE, "90 120 121", Refusal.TARGET),
    ("cvt.rs.satfinite.e2m1x4.f32", "100f 120a 121a 121f", Refusal.TARGET),
    (NVFP4, "90 100a 100f 120 121", Refusal.TARGET),
    (CLAIMED, "120a 120f 121a 121f", Refusal.MODIFIER),
    (TCGEN05 + "scale_vec::4X", "100f 120a 121a", Refusal.TARGET),
    ("fma.rn.f32x2", "90", Refusal.TARGET),
    ("cvt.rz.satfinite.e2m1x2.f32", "100a 121a", Refusal.MODIFIER),
    ("cvt.rn.bf16x2.e2m1x2", "100a 121a", Refusal.TYPES),
    ("ld.global.v8.f32", "90", Refusal.TARGET),
    (SCATTER, "90 120a 121a", Refusal.TARGET),
]


@pytest.mark.parametrize(("instruction", "targets", "code"), HARDWARE, ids=lambda value: str(value)[-40:])
def test_finds_the_instruction_in_the_machine_code(
    matrix: ToolkitMatrix, instruction: str, targets: str, code: str
) -> None:
    for target in map(Arch.parse, targets.split()):
        cell = matrix.index[instruction, target]
        assert (cell.outcome, cell.code) == (Outcome.HARDWARE, code), target


@pytest.mark.parametrize(("instruction", "targets", "refusal"), REJECTED, ids=lambda value: str(value)[-40:])
def test_says_why_the_assembler_refuses(
    matrix: ToolkitMatrix, instruction: str, targets: str, refusal: Refusal
) -> None:
    for target in map(Arch.parse, targets.split()):
        cell = matrix.index[instruction, target]
        assert (cell.outcome, cell.refusal) == (Outcome.REJECTED, refusal), target
        assert cell.words


@pytest.mark.parametrize(
    ("instruction", "target", "code"),
    [("fma.rn.f32x2", "121a", "2 FFMA"), ("max.f32", "120a", "2 FMNMX"), ("min.f32", "121f", "2 FMNMX")],
)
def test_tells_what_an_emulation_consists_of(matrix: ToolkitMatrix, instruction: str, target: str, code: str) -> None:
    cell = matrix.index[instruction, Arch.parse(target)]
    assert (cell.outcome, cell.code) == (Outcome.EMULATED, code)


def test_nothing_that_is_taken_folds_away(matrix: ToolkitMatrix) -> None:
    """An instruction with constant operands, or with a result that is never stored, would leave no code."""
    assert [cell for cell in matrix.cells if cell.outcome is not Outcome.REJECTED and not cell.code] == []


def test_no_refusal_is_without_a_class(matrix: ToolkitMatrix) -> None:
    assert {cell.words for cell in matrix.cells if cell.refusal is Refusal.OTHER} == set()


@pytest.mark.parametrize("target", ["121a", "100f"])
def test_a_file_of_all_features_says_of_each_what_it_says_alone(
    assembler: Assembler, tmp_path: Path, target: str
) -> None:
    arch, isa = Arch.parse(target), assembler.newest_isa
    _, refused = doctor.sort_out(FEATURES, arch, assembler, isa, tmp_path / "all")
    together = {one.instruction: words for one, words in refused}
    alone = {}
    for one in FEATURES:
        if errors := assembler.assemble(doctor.module([one], arch, isa), arch, tmp_path / "alone"):
            alone[one.instruction] = errors[0].words
    assert together == alone
    assert 0 < len(alone) < len(FEATURES)


def test_an_error_outside_of_the_instructions_makes_each_be_tried_alone(assembler: Assembler, tmp_path: Path) -> None:
    good = feature(ENCODE)
    bad = Feature(instruction="abs.f32", title="", reads=(".f32 a",), operands="a, a", sass="", setup="bogus.f32 a, a;")
    taken, refused = doctor.sort_out([bad, good], Arch(12, 1, "a"), assembler, assembler.newest_isa, tmp_path / "work")
    assert taken == [good]
    assert [(one, classify(words)) for one, words in refused] == [(bad, Refusal.INSTRUCTION)]


def test_a_target_that_the_assembler_does_not_know_is_refused_in_its_words(
    assembler: Assembler, tmp_path: Path
) -> None:
    isa = assembler.newest_isa
    matrix = doctor.probe(FEATURES[:3], [Arch(19, 9, "a")], assembler, isa=isa, store=tmp_path, jobs=1)
    assert {cell.refusal for cell in matrix.cells} == {Refusal.UNKNOWN_TARGET}
    assert "sm_199a" in matrix.cells[0].words


def test_an_older_ptx_version_is_told_from_a_missing_feature(assembler: Assembler, tmp_path: Path) -> None:
    matrix = doctor.probe([feature(ENCODE)], [Arch(12, 1, "a")], assembler, isa="8.6", store=tmp_path, jobs=1)
    assert [cell.refusal for cell in matrix.cells] == [Refusal.PTX_VERSION]


def test_without_a_disassembler_only_acceptance_is_told(assembler: Assembler, tmp_path: Path) -> None:
    blind = Assembler(assembler.path, None)
    targets = [Arch(12, 1), Arch(12, 1, "a")]
    matrix = doctor.probe([feature(ENCODE)], targets, blind, isa=blind.newest_isa, store=tmp_path, jobs=1)
    assert [cell.outcome for cell in matrix.cells] == [Outcome.REJECTED, Outcome.ACCEPTED]
    assert matrix.nvdisasm == ""


def test_what_was_found_is_remembered(assembler: Assembler, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def again() -> ToolkitMatrix:
        return doctor.probe(FEATURES[:4], TARGETS[:5], assembler, isa=assembler.newest_isa, store=tmp_path, jobs=2)

    first = again()
    monkeypatch.setattr(Assembler, "assemble", lambda *_: pytest.fail("assembled again"))
    assert again().cells == first.cells


def test_the_assembler_lists_its_targets(assembler: Assembler) -> None:
    assert {Arch(9, 0), Arch(12, 0, "a"), Arch(12, 1, "f")} <= set(assembler.targets)
    assert list(assembler.targets) == sorted(assembler.targets)
    assert min(assembler.targets) == Arch(9, 0)


# Error messages of releases that the test environment does not have.
WORDS = [
    ("Instruction 'cvt with .e2m1x2' not supported on .target 'sm_120'", Refusal.TARGET),  # to 13.0
    ("Feature 'cvt.e2m1x2.f32' not supported on .target 'sm_120'", Refusal.TARGET),  # from 13.1
    ("Feature 'fma.f32x2' requires .target sm_100 or higher", Refusal.TARGET),
    ("Illegal modifier '.scale_vec::4X' for instruction 'mma' with type '.ue8m0'", Refusal.MODIFIER),
    ("Unknown modifier '.scaled::n2::ue8m0'", Refusal.MODIFIER),
    ("Unexpected instruction types specified for 'cvt'", Refusal.TYPES),
    ("Arguments mismatch for instruction 'max'", Refusal.TYPES),
    ("Feature 'cvt.e2m1x2.f16x2' requires PTX ISA .version 9.1 or later", Refusal.PTX_VERSION),
    ("PTX .version 8.6 does not support .target sm_120a", Refusal.PTX_VERSION),
    ("Unsupported .version 9.5; current version is '9.0'", Refusal.PTX_VERSION),
    ("Not a name of any known instruction: 'bogus'", Refusal.INSTRUCTION),
    ("Value 'sm_121a' is not defined for option 'gpu-name'", Refusal.UNKNOWN_TARGET),
    ("Internal error", Refusal.OTHER),
]


@pytest.mark.parametrize(("words", "refusal"), WORDS, ids=[words[:40] for words, _ in WORDS])
def test_understands_the_words_of_every_release(words: str, refusal: Refusal) -> None:
    assert classify(words) is refusal
