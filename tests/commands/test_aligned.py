"""Two listings side by side: the differences that count, and those that do not."""

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from fp4patch.commands.verify_page import REMOVED, aligned
from fp4patch.sass.instruction import Instruction
from fp4patch.sass.text import read_sections

GOLDEN = Path(__file__).parents[1] / "sass/nvdisasm"


def code(*instructions: str) -> tuple[Instruction, ...]:
    lines = [f"    /*{16 * n:04x}*/ {text} ;" for n, text in enumerate(instructions)]
    return tuple(read_sections("\n".join(["\t.section\t.text.probe", "probe:", *lines]))["probe"][0])


def kinds(before: tuple[Instruction, ...], after: tuple[Instruction, ...]) -> str:
    return "".join(mark.replace(REMOVED, "-") or "=" for mark, _, _ in aligned(before, after))


def test_registers_predicates_and_labels_are_numbered_anew() -> None:
    before = code("@P0 MOV R1, R2", "ISETP.NE.AND UP0, PT, R1, UR4, !P3", "BSSY B0, `(.L_x_3)", "EXIT")
    after = code("@P1 MOV R7, R9", "ISETP.NE.AND UP2, PT, R7, UR6, !P1", "BSSY B2, `(.L_x_8)", "EXIT")
    assert kinds(before, after) == "===="


def test_other_operands_are_a_change() -> None:
    assert kinds(code("MOV R1, 0x1", "EXIT"), code("MOV R1, 0x2", "EXIT")) == "~="
    assert kinds(code("@P0 MOV R1, R2", "EXIT"), code("@!P0 MOV R1, R2", "EXIT")) == "~="
    assert kinds(code("MOV R1, R2", "EXIT"), code("MOV R1, RZ", "EXIT")) == "~="
    assert kinds(code("FADD R1, R2, R3", "EXIT"), code("FADD R1, |R2|, -R3", "EXIT")) == "~="


def test_another_opcode_or_modifier_is_removed_and_added() -> None:
    assert kinds(code("FADD R1, R2, R3", "EXIT"), code("FMUL R1, R2, R3", "EXIT")) == "-+="
    assert kinds(code("FADD R1, R2, R3", "EXIT"), code("FADD.FTZ R1, R2, R3", "EXIT")) == "-+="


@given(st.lists(st.sampled_from(["FADD R1, R2, R3", "MOV R1, R2", "MOV R1, 0x7", "NOP"])), st.data())
def test_every_instruction_stands_in_exactly_one_row(before: list[str], data: st.DataObject) -> None:
    after = data.draw(st.permutations(before))
    left, right = code(*before, "EXIT"), code(*after, "EXIT")
    rows = list(aligned(left, right))
    assert tuple(before for _, before, _ in rows if before) == left
    assert tuple(after for _, _, after in rows if after) == right
