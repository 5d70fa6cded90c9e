"""Differences between two listings that count, and those that do not."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from fp4patch.core.arch import Arch
from fp4patch.proof import machine_code
from fp4patch.proof.diff import compare
from fp4patch.proof.listing import DiffKind, SassListing
from fp4patch.sass.instruction import InstructionClass

GOLDEN = Path(__file__).parents[1] / "sass/nvdisasm"
KINDS = {"=": DiffKind.SAME, "~": DiffKind.CHANGED, "-": DiffKind.REMOVED, "+": DiffKind.ADDED}


def listing(*instructions: str, digest: str = "0") -> SassListing:
    lines = [f"/*{16 * n:04x}*/ {text} ;" for n, text in enumerate(instructions)]
    text = "\n".join(["\t.section\t.text.probe", "probe:", *(f"    {line}" for line in lines)])
    return machine_code.parse(text, arch=Arch(12, 1, "a"), registers=8, code_sha256=digest)


def kinds(before: SassListing, after: SassListing) -> str:
    marks = {kind: mark for mark, kind in KINDS.items()}
    return "".join(marks[row.kind] for row in compare(before, after).rows)


def test_registers_predicates_and_labels_are_numbered_anew() -> None:
    before = listing("@P0 MOV R1, R2", "ISETP.NE.AND UP0, PT, R1, UR4, !P3", "BSSY B0, `(.L_x_3)", "EXIT")
    after = listing("@P1 MOV R7, R9", "ISETP.NE.AND UP2, PT, R7, UR6, !P1", "BSSY B2, `(.L_x_8)", "EXIT")
    assert kinds(before, after) == "===="


def test_other_operands_are_a_change() -> None:
    assert kinds(listing("MOV R1, 0x1", "EXIT"), listing("MOV R1, 0x2", "EXIT")) == "~="
    assert kinds(listing("@P0 MOV R1, R2", "EXIT"), listing("@!P0 MOV R1, R2", "EXIT")) == "~="
    assert kinds(listing("MOV R1, R2", "EXIT"), listing("MOV R1, RZ", "EXIT")) == "~="
    assert kinds(listing("FADD R1, R2, R3", "EXIT"), listing("FADD R1, |R2|, -R3", "EXIT")) == "~="


def test_another_opcode_or_modifier_is_removed_and_added() -> None:
    assert kinds(listing("FADD R1, R2, R3", "EXIT"), listing("FMUL R1, R2, R3", "EXIT")) == "-+="
    assert kinds(listing("FADD R1, R2, R3", "EXIT"), listing("FADD.FTZ R1, R2, R3", "EXIT")) == "-+="


def test_the_delta_is_by_class_and_leaves_out_what_is_equal() -> None:
    before = listing("F2FP.SATFINITE.E2M1.F32.PACK_AB_MERGE_C R0, R5, R4, RZ", "MOV R1, R2", "EXIT")
    after = listing("FADD R1, R2, R3", "FADD R1, R2, R3", "MOV R1, R2", "BRA `(.L_x_1)", "EXIT")
    assert compare(before, after).delta == {
        InstructionClass.FP4: -1,
        InstructionClass.FLOAT: 2,
        InstructionClass.BRANCH: 1,
    }


def test_identical_is_about_bytes_not_about_text() -> None:
    one, same, other = (listing("EXIT", digest=digest) for digest in "001")
    assert compare(one, same).identical
    assert not compare(one, other).identical
    assert kinds(one, other) == "="


def test_a_real_pair_of_listings_keeps_every_instruction_once() -> None:
    before, after = (
        machine_code.parse(
            (GOLDEN / f"branches.{arch}.txt").read_text(), arch=Arch.parse(arch), registers=1, code_sha256=arch
        )
        for arch in ("sm_90", "sm_121a")
    )
    rows = compare(before, after).rows
    assert tuple(row.before for row in rows if row.before) == before.instructions
    assert tuple(row.after for row in rows if row.after) == after.instructions


@given(st.lists(st.sampled_from(["FADD R1, R2, R3", "MOV R1, R2", "MOV R1, 0x7", "NOP"])), st.data())
def test_every_instruction_stands_in_exactly_one_row(before: list[str], data: st.DataObject) -> None:
    after = data.draw(st.permutations(before))
    left, right = listing(*before, "EXIT"), listing(*after, "EXIT")
    diff = compare(left, right)
    assert tuple(row.before for row in diff.rows if row.before) == left.instructions
    assert tuple(row.after for row in diff.rows if row.after) == right.instructions
    assert diff.delta == {}
