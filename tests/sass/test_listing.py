"""The lifter's reader: every field and operand is understood, or the listing is refused."""

import pytest
from listings import ARCH, document

from fp4patch.sass.error import SassError
from fp4patch.sass.listing import (
    Constant,
    Decoded,
    FunctionName,
    Integer,
    Memory,
    Operand,
    Real,
    Register,
    Special,
    read,
)


def one(text: str) -> Decoded:
    (instruction,) = read(document(text), arch=ARCH).instructions
    return instruction


R2 = Register("R", 2)
R4 = Register("R", 4)
UR4 = Register("UR", 4)


@pytest.mark.parametrize(
    ("text", "operands"),
    [
        ("MOV R4,0x3f800000", (R4, Integer(0x3F800000))),
        (
            "IADD3 R4,PT,PT,-R2.reuse,-0x7f,RZ",
            (
                R4,
                Register("P", None),
                Register("P", None),
                Register("R", 2, negated=True),
                Integer(-0x7F),
                Register("R", None),
            ),
        ),
        ("FADD R4,-|R2|,1.5e-05", (R4, Register("R", 2, negated=True, absolute=True), Real("1.5e-05"))),
        (
            "FSETP.GT.AND P0,PT,|R2|,+INF ,!P1",
            (
                Register("P", 0),
                Register("P", None),
                Register("R", 2, absolute=True),
                Real("+INF"),
                Register("P", 1, inverted=True),
            ),
        ),
        (
            "IADD3.X R4,~R2,RZ,RZ,P0,!PT",
            (
                R4,
                Register("R", 2, inverted=True),
                Register("R", None),
                Register("R", None),
                Register("P", 0),
                Register("P", None, inverted=True),
            ),
        ),
        ("HADD2.F32 R4,-RZ,R2.reuse.H1_H1", (R4, Register("R", None, negated=True), Register("R", 2, part="H1_H1"))),
        ("F2FP.F16.E2M1.UNPACK_B R4,R2.B3", (R4, Register("R", 2, part="B3"))),
        ("LDC.64 R4,c[0x0][0x380]", (R4, Constant(0, 0x380))),
        ("LDC R4,c[0x3][R2+0x10]", (R4, Constant(3, 0x10, R2))),
        ("LDC R4,c[0x0][RZ]", (R4, Constant(0, 0, Register("R", None)))),
        ("LDG.E R4,desc[UR4][R2.64+-0x10]", (R4, Memory(Register("R", 2, part="64"), -0x10, None, UR4))),
        ("STS [R2+UR4+0x8],R4", (Memory(R2, 8, UR4), R4)),
        ("S2R R4,SR_TID.X", (R4, Special("SR_TID.X"))),
        ("CALL.REL.NOINC `($__internal_0_$__cuda_sm20_rcp)", (FunctionName("$__internal_0_$__cuda_sm20_rcp"),)),
    ],
)
def test_reads_every_form_of_operand(text: str, operands: tuple[Operand, ...]) -> None:
    assert one(text).operands == operands


def test_reads_what_guards_an_instruction_and_where_it_stands() -> None:
    listing = read(document("NOP", "@!P2 EXIT"), arch=ARCH)
    assert listing.arch == (12, 1)
    assert [i.address for i in listing.instructions] == [0, 0x10]
    assert listing.instructions[1].predicate == Register("P", 2, inverted=True)


def test_all_predicates_as_a_source_are_no_operand() -> None:
    found = one("P2R R0, PR, RZ, 0x2")
    assert (found.predicate, found.operands) == (None, (Register("R", 0), Register("R", None), Integer(2)))


def test_labels_are_addresses() -> None:
    rows = ("@P0 BRA `(.L_x_1)", "BSSY B0, `(.L_x_1)", "WARPSYNC.COLLECTIVE R4, `(.L_x_0)", ".L_x_0:", "NOP", ".L_x_1:")
    listing = read(document(*rows, "EXIT"), arch=ARCH)
    assert [i.operands[-1:] for i in listing.instructions[:3]] == [
        (Integer(0x40),),
        (Integer(0x40),),
        (Integer(0x30),),
    ]
    assert listing.instructions[0].text == "@P0 BRA 0x40"


def test_a_branch_by_a_register_is_read_without_the_disassemblers_note() -> None:
    found = one('BRX R4 -0x130 (*"BRANCH_TARGETS .L_x_26,.L_x_27"*)')
    assert found.operands == (R4, Integer(-0x130))


def test_a_function_that_is_linked_follows_the_kernel() -> None:
    kernel = document(
        "MOV R20, 32@lo((probe + .L_x_0@srel))",
        "MOV R21, 32@hi((probe + .L_x_0@srel))",
        "CALL.ABS.NOINC `(__cuda_sm3x_div)",
        ".L_x_0:",
        "EXIT",
        ".L_x_9:",
        "BRA `(.L_x_9)",
        "NOP",
    )
    function = document("@P0 BRA `(.L_x_1)", "NOP", ".L_x_1:", "RET.ABS.NODEC R20 0x0", kernel="__cuda_sm3x_div")
    unused = document("EXIT", kernel="__cuda_sm3x_other")
    listing = read(kernel + function + unused, arch=ARCH)
    assert [(i.address, i.opcode, i.operands[-1:]) for i in listing.instructions] == [
        (0x00, "MOV", (Integer(0x30),)),
        (0x10, "MOV", (Integer(0),)),
        (0x20, "CALL.ABS.NOINC", (Integer(0x40),)),
        (0x30, "EXIT", ()),
        (0x40, "BRA", (Integer(0x60),)),
        (0x50, "NOP", ()),
        (0x60, "RET.ABS.NODEC", (Integer(0),)),
    ]


def test_a_subroutine_in_the_kernels_section_is_found_by_its_label() -> None:
    rows = ("CALL.REL.NOINC `($__internal_0_$__cuda_sm20_rcp)", "EXIT", "$__internal_0_$__cuda_sm20_rcp:")
    listing = read(document(*rows, "RET.REL.NODEC R10 `(probe)"), arch=ARCH)
    assert listing.instructions[0].operands == (Integer(0x20),)
    assert listing.instructions[2].operands == (Register("R", 10), FunctionName("probe"))


def test_leaves_out_the_padding_after_the_end() -> None:
    listing = read(document("EXIT", ".L_x_0:", "BRA `(.L_x_0)", "NOP", "NOP"), arch=ARCH)
    assert [i.opcode for i in listing.instructions] == ["EXIT"]
    # A loop that is no padding: the branch leads elsewhere.
    assert len(read(document(".L_x_0:", "NOP", "BRA `(.L_x_0)", "NOP"), arch=ARCH).instructions) == 2


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
    with pytest.raises(SassError, match="is not understood"):
        read(document(text), arch=ARCH)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("no listing", "line 1 of the listing is not understood"),
        ("", "the listing holds no function, where probe"),
        (document("@R2 EXIT"), r"not understood \(no known form of line\): .*@R2 EXIT"),
        (document("PR EXIT"), "unknown instruction PR"),
        (document("EXIT", kernel="other"), "the listing holds other, where probe"),
        (document("BRA `(.L_x_7)"), r"operand \.L_x_7 of 0x0000 BRA \.L_x_7 is not understood"),
        (document("MOV R4, 32@lo((probe + .L_x_7@srel))"), "is not understood"),
        (document("MOV R4, 32@lo($str)"), "is not understood"),
    ],
)
def test_refuses_a_listing_that_says_something_else(text: str, why: str) -> None:
    with pytest.raises(SassError, match=why):
        read(text, arch=ARCH, kernel="probe")
