"""Taint tracking: a thread's stores depend on its input, and on nothing else."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from listings import ARCH, document

from fp4patch.sass.flow import flow
from fp4patch.sass.independence import leaks
from fp4patch.sass.listing import read

LISTINGS = Path(__file__).parent / "golden/listings"
HEAD = ["S2R R0,SR_TID.X", "S2R R8,SR_CTAID.X", "LDC R1,c[0x0][0x37c]", "LDC R9,c[0x0][0x360]", "IMAD R10,R8,R9,R0",
        "LDC.64 R2,c[0x0][0x380]", "LDC.64 R4,c[0x0][0x388]", "IMAD.WIDE R2,R10,0x4,R2", "IMAD.WIDE R4,R10,0x4,R4",
        "LDG.E R6,desc[UR4][R2.64]"]  # fmt: skip
TAIL = ["STG.E desc[UR4][R4.64],R6", "EXIT"]


def found(*body: str) -> str:
    listing = read(document(*HEAD, *body, *TAIL), arch=ARCH)
    return "; ".join(str(leak) for leak in leaks(listing, flow(listing)))


LEAKS = [
    ("the stack pointer", ["LOP3.LUT R6,R6,R1,RZ,0x3c,!PT"]),
    ("R20, which nothing wrote,", ["LOP3.LUT R6,R6,R20,RZ,0x3c,!PT"]),
    ("UR9, which nothing wrote,", ["IADD3 R6,PT,PT,R6,UR9,RZ"]),
    ("P3, which nothing wrote,", ["SEL R6,R6,RZ,P3"]),
    ("blockIdx.x", ["ISETP.GT.AND P0,PT,R8,0x1,PT", "SEL R6,R6,RZ,P0"]),
    ("blockIdx.x", ["ISETP.GT.AND P0,PT,R8,0x1,PT", "@P0 LOP3.LUT R6,R6,0x1,RZ,0x3c,!PT"]),
    ("blockIdx.x", ["ISETP.EQ.AND P0,PT,R8,0x12345,PT", "@!P0 BRA 0xd0", "LOP3.LUT R6,R6,0x1,RZ,0x3c,!PT"]),
    ("blockDim.x", ["ISETP.EQ.AND P0,PT,R9,0x100,PT", "@P0 IADD3 R6,PT,PT,R6,0x1,RZ"]),
    ("threadIdx.x", ["FMUL R6,R6,R0"]),
    ("threadIdx.x", ["ISETP.GE.AND P0,PT,R0,0x20,PT", "@P0 EXIT"]),
    ("gridDim.x", ["LDC R7,c[0x0][0x370]", "IADD3 R6,PT,PT,R6,R7,RZ"]),
    ("c[0x0][0x390], which is no parameter,", ["LDC R7,c[0x0][0x390]", "IADD3 R6,PT,PT,R6,R7,RZ"]),
    ("the pointer in c[0x0][0x388]", ["IADD3 R6,PT,PT,R6,R4,RZ"]),
    ("threadIdx.x", ["PRMT R6,R0,0x7610,R6"]),
    ("another thread", ["SHFL.BFLY PT,R7,R6,0x1,0x1f", "FADD R6,R6,R7"]),
    ("another thread", ["LDS R7,[RZ]", "FADD R6,R6,R7"]),
    ("threadIdx.x", ["@P0 MOV R6,R0", "ISETP.GT.AND P0,PT,R6,RZ,PT"]),
    ("threadIdx.x", ["ISETP.GT.AND P0,PT,R6,RZ,PT", "@P0 MOV R7,R0", "@!P0 MOV R7,RZ", "IADD3 R6,PT,PT,R6,R7,RZ"]),
]


@pytest.mark.parametrize(("source", "body"), LEAKS, ids=str)
def test_what_reaches_a_stored_value_is_named(source: str, body: list[str]) -> None:
    assert f"{source} reaches what" in found(*body)


CLEAN = [
    [],
    ["PRMT R6,R6,0x7604,R1", "LOP3.LUT R6,R6,0xffff,RZ,0xc0,!PT", "PRMT R6,R6,0x4442,RZ"],
    ["PRMT R7,R20,0x7610,R6", "LOP3.LUT R6,R7,0xffff0000,RZ,0xc0,!PT"],
    ["SHF.R.U32.HI R7,RZ,0x10,R20", "LOP3.LUT R6,R7,0xffff0000,R6,0xea,!PT"],
    ["IMAD.U32 R7,R20,0x10000,RZ", "LOP3.LUT R6,R7,0xffff,RZ,0xc0,!PT"],
    ["ISETP.GT.AND P0,PT,R6,RZ,PT", "@P0 MOV R7,0x1", "@!P0 MOV R7,0x2", "IADD3 R6,PT,PT,R6,R7,RZ"],
    ["ISETP.GT.AND P0,PT,R6,RZ,PT", "@P0 MOV R7,0x1", "@P0 IADD3 R6,PT,PT,R6,R7,RZ"],
    ["MUFU.RCP R6,R6"],
]


@pytest.mark.parametrize("body", CLEAN, ids=str)
def test_bits_that_are_dropped_do_not_count(body: list[str]) -> None:
    assert found(*body) == ""


def test_the_scope_of_a_store_on_sm_75_hides_no_register_and_adds_no_bits() -> None:
    assert "threadIdx.x reaches what" in found("MOV R7,R0", "STG.E.64.SYS desc[UR4][R4.64],R6")
    assert found("PRMT R7,R6,0x7610,R20", "STG.E.U8.SYS desc[UR4][R4.64],R7") == ""


def test_a_condition_that_was_written_again_is_another() -> None:
    body = ["ISETP.GT.AND P0,PT,R6,RZ,PT", "@P0 MOV R7,0x1", "ISETP.GT.AND P0,PT,R6,0x1,PT", "@P0 MOV R6,R7"]
    assert "R7, which nothing wrote, reaches what" in found(*body)


def test_a_byte_is_stored_without_what_stands_above_it() -> None:
    listing = read(document(*HEAD, "PRMT R6,R6,0x7610,R1", "STG.E.U8 desc[UR4][R4.64],R6", "EXIT"), arch=ARCH)
    assert leaks(listing, flow(listing)) == []


@pytest.mark.parametrize("path", sorted(LISTINGS.glob("*.txt.gz")), ids=lambda path: path.name.partition(".txt")[0])
def test_no_compiled_conversion_depends_on_anything_else(path: Path) -> None:
    if path.name.startswith(("grids.", "vllm-0.33.0.next3.half-", "vllm-0.33.0.next3.bf16-")) or "gemv" in path.name:
        pytest.skip("whole warps: their threads store what others loaded")
    listing = read(gzip.decompress(path.read_bytes()).decode(), arch=(9, 0))
    assert leaks(listing, flow(listing)) == []
