"""The lifter's reader: every field and operand is understood, or the listing is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest

from fp4patch.core.errors import ProofError
from fp4patch.proof.lift.listing import (
    Constant,
    Instruction,
    Integer,
    Memory,
    Operand,
    Real,
    Register,
    Special,
    Symbol,
    read,
)


def document(*rows: dict[str, Any] | str, **function: Any) -> str:
    """Return a document like nvdisasm -json's for one kernel; a row as text is an opcode and its operands."""
    full = [
        row if isinstance(row, dict) else dict(zip(("opcode", "operands"), row.split(" ", 1), strict=False))
        for row in rows
    ]
    described = {
        "function-name": "probe",
        "start": 0,
        "length": 16 * len(full),
        "other-attributes": [],
        "sass-instructions": full,
    }
    return json.dumps([{"SM": {"version": {"major": 12, "minor": 1}}}, [described | function]])


def one(text: str) -> Instruction:
    (instruction,) = read(document(text)).instructions
    return instruction


R2, R4, UR4 = Register("R", 2), Register("R", 4), Register("UR", 4)


@pytest.mark.parametrize(
    ("text", "operands"),
    [
        ("MOV R4,0x3f800000", (R4, Integer(0x3F800000))),
        ("IADD3 R4,PT,PT,-R2.reuse,-0x7f,RZ", (
            R4, Register("P", None), Register("P", None), Register("R", 2, negated=True), Integer(-0x7F),
            Register("R", None),
        )),
        ("FADD R4,-|R2|,1.5e-05", (R4, Register("R", 2, negated=True, absolute=True), Real("1.5e-05"))),
        ("FSETP.GT.AND P0,PT,|R2|,+INF ,!P1", (
            Register("P", 0), Register("P", None), Register("R", 2, absolute=True), Real("+INF"),
            Register("P", 1, inverted=True),
        )),
        ("IADD3.X R4,~R2,RZ,RZ,P0,!PT", (
            R4, Register("R", 2, inverted=True), Register("R", None), Register("R", None), Register("P", 0),
            Register("P", None, inverted=True),
        )),
        ("HADD2.F32 R4,-RZ,R2.reuse.H1_H1", (R4, Register("R", None, negated=True), Register("R", 2, part="H1_H1"))),
        ("F2FP.F16.E2M1.UNPACK_B R4,R2.B3", (R4, Register("R", 2, part="B3"))),
        ("LDC.64 R4,c[0x0][0x380]", (R4, Constant(0, 0x380))),
        ("LDC R4,c[0x3][R2+0x10]", (R4, Constant(3, 0x10, R2))),
        ("LDC R4,c[0x0][RZ]", (R4, Constant(0, 0, Register("R", None)))),
        ("LDG.E R4,desc[UR4][R2.64+-0x10]", (R4, Memory(Register("R", 2, part="64"), -0x10, None, UR4))),
        ("STS [R2+UR4+0x8],R4", (Memory(R2, 8, UR4), R4)),
        ("S2R R4,SR_TID.X", (R4, Special("SR_TID.X"))),
        ("CALL.REL.NOINC $__internal_0_$__cuda_sm20_rcp", (Symbol("$__internal_0_$__cuda_sm20_rcp"),)),
    ],
)  # fmt: skip
def test_reads_every_form_of_operand(text: str, operands: tuple[Operand, ...]) -> None:
    assert one(text).operands == operands


def test_reads_what_guards_an_instruction_and_where_it_stands() -> None:
    listing = read(document("NOP", {"predicate": "@!P2", "opcode": "EXIT"}, start=0x100))
    assert listing.arch == (12, 1)
    assert [i.address for i in listing.instructions] == [0x100, 0x110]
    assert listing.instructions[1].predicate == Register("P", 2, inverted=True)


def test_all_predicates_as_a_source_are_no_guard() -> None:
    (read_,) = read(document({"predicate": "PR", "opcode": "P2R", "operands": "R0,RZ,0x2"})).instructions
    assert (read_.predicate, read_.operands) == (None, (Register("R", 0), Register("R", None), Integer(2)))


def test_leaves_out_the_padding_after_the_end() -> None:
    listing = read(document("EXIT", "BRA 0x10", "NOP", "NOP"))
    assert [i.opcode for i in listing.instructions] == ["EXIT"]
    # A loop that is no padding: the branch leads elsewhere.
    assert len(read(document("NOP", "BRA 0x0", "NOP")).instructions) == 2


@pytest.mark.parametrize(
    ("older", "text"),
    [
        ("R4[R6.64]", "R4,[R6.64]"),
        ("R3[R2.64+0x4]", "R3,[R2.64+0x4]"),
        ("RZ[R6]", "RZ,[R6]"),
        ("PT,R4[R6.64],R3", "PT,R4,[R6.64],R3"),
    ],
)
def test_a_register_and_an_address_that_older_disassemblers_run_together_are_two(older: str, text: str) -> None:
    """nvdisasm 13.0.85 to 13.4.92, of code for sm_80, sm_89 and shared memory."""
    assert one(f"LDG.E {older}") == one(f"LDG.E {text}")


def test_subroutines_that_older_disassemblers_list_apart_are_in_their_function() -> None:
    rows = [f"FADD R{n},R{n},R1" for n in range(6)]
    whole = read(document(*rows))

    def split(*starts: int) -> str:
        head, (kernel,) = json.loads(document(*rows))
        code, ends = kernel["sass-instructions"], [*starts[1:], len(rows)]
        shown = zip(("probe", "$a", "$b"), starts, ends, (96, 32, 16), strict=True)
        parts = [
            kernel | {"function-name": name, "start": 16 * first, "length": length, "sass-instructions": code[first:to]}
            for name, first, to, length in shown
        ]
        return json.dumps([head, parts])

    assert read(split(0, 3, 5)) == whole
    with pytest.raises(ProofError, match="96 bytes and 3 instructions"):
        read(split(0, 3, 5).replace('"start": 48', '"start": 64'))


@pytest.mark.parametrize(
    "text",
    [
        "MOV R4,R2.X1",
        "MOV RT,R2",
        "MOV R4,PZ",
        "SEL R4,R2,RZ,-P0",
        "IADD3.X R4,R2,!R3,RZ,P0,!PT",
        "LDG.E R4,[R2.U32]",
        "FADD R4,|R2,R2",
        "FADD R4,R2,1.5f",
        "MUFU.RCP R4,%1",
    ],
)
def test_refuses_an_operand_of_no_known_form(text: str) -> None:
    with pytest.raises(ProofError, match="is not understood"):
        read(document(text))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("no JSON", "is not its JSON"),
        ("{}", "not its JSON|head and a list"),
        (document("EXIT", **{"function-name": "other"}), "the listing holds other, where probe"),
        (document("EXIT", **{"new-key": 1}), "has new-key, which is not understood"),
        (document({"opcode": "EXIT", "new-key": 1}), "has new-key, which is not understood"),
        (document({"opcode": "EXIT", "other-attributes": {"divergent": "True"}}), "has divergent"),
        (document({"opcode": "EXIT", "predicate": "PR"}), "predicate of .* is not understood"),
        (document({"opcode": "EXIT", "predicate": "@R2"}), "predicate of .* is not understood"),
        (document("EXIT", length=32), "32 bytes and 1 instructions"),
        (document("EXIT").replace('"major"', '"grand"'), "does not state the architecture"),
        (document({"operands": "R1"}), "not of the form that is known"),
        (document({"opcode": ["EXIT"]}), "not of the form that is known"),
        (document("EXIT").replace('"SM": {', '"SM": 7, "XM": {'), "not of the form that is known"),
        ("[{}, []]", "does not state the architecture"),
        ("[{}, [7]]", "not of the form that is known"),
    ],
)
def test_refuses_a_document_that_says_something_else(text: str, why: str) -> None:
    with pytest.raises(ProofError, match=why):
        read(text)
