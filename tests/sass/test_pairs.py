"""Order of registers in instructions for two floats and in loads of 256 bits, derived from ptxas.

No GPU at hand has these instructions. But ptxas translates PTX, whose halves and elements are defined, to them. So its
machine code, executed by the table, must compute what the PTX ISA defines; a table with another order does not.
"""

from __future__ import annotations

import struct
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from cubins import assemble

from fp4patch.sass import grid
from fp4patch.sass.error import SassError
from fp4patch.sass.expressions import Effect
from fp4patch.sass.operands import Operands
from fp4patch.sass.semantics import TABLE, Semantics
from fp4patch.sass.translate import translate

if TYPE_CHECKING:
    from fp4patch.proof.toolchain import Toolchain

TARGET, ARCH = "sm_100a", (10, 0)

HEAD = """
.version 8.8
.target sm_100a
.address_size 64
.visible .entry probe(.param .u64 values, .param .u64 results) {
  .reg .b32 a<8>; .reg .b32 r<8>; .reg .b64 from, to, v<4>;
  ld.param.u64 from, [values];
  ld.param.u64 to, [results];
"""
VALUES = (2.0, 3.0, 5.0, -7.0, 11.0, 13.0, 1 + 2**-23, 1 + 3 * 2**-23)
LOADED = "".join(f"ld.global.b32 a{i}, [from+{4 * i}];\n" for i in range(8))
PAIRS = "mov.b64 v0, {a0, a1}; mov.b64 v1, {a2, a3}; mov.b64 v2, {a4, a5};\n"
BOTH = "mov.b64 {r0, r1}, v3; st.global.b32 [to+DST], r0; st.global.b32 [to+DST+4], r1;\n"
EIGHT = "ld.global.v8.b32 {a0, a1, a2, a3, a4, a5, a6, a7}, [from];"

# PTX, with what it stores by the PTX ISA.
FORMS: dict[str, tuple[str, tuple[float, ...]]] = {
    "sum": (PAIRS + "add.rn.f32x2 v3, v0, v1;" + BOTH, (7, -4)),
    "product": (PAIRS + "mul.rn.f32x2 v3, v0, v1;" + BOTH, (10, -21)),
    "product toward zero": (
        "mov.b64 v0, {a6, a7}; mov.b64 v1, {a6, a7}; mul.rz.f32x2 v3, v0, v1;" + BOTH,
        (1 + 2**-22, 1 + 6 * 2**-23),
    ),
    "product to nearest": ("mov.b64 v0, {a6, a1}; mul.rn.f32x2 v3, v0, v0;" + BOTH, (1 + 2**-22, 9)),
    "sum of products": (PAIRS + "fma.rn.f32x2 v3, v0, v1, v2;" + BOTH, (21, -8)),
    "sum of products, halves exchanged": (
        "mov.b64 v0, {a0, a1}; mov.b64 v1, {a3, a2}; mov.b64 v2, {a5, a4}; fma.rn.f32x2 v3, v0, v1, v2;" + BOTH,
        (-1, 26),
    ),
    "one factor for both": (
        "mov.b64 v0, {a0, a1}; mov.b64 v1, {a2, a2}; mov.b64 v2, {a4, a5}; fma.rn.f32x2 v3, v0, v1, v2;" + BOTH,
        (21, 28),
    ),
    "one constant for both": (
        "mov.b64 v0, {a0, a3}; mov.b32 r0, 0fBE800000; mov.b64 v1, {r0, r0}; mul.rn.f32x2 v3, v0, v1;" + BOTH,
        (-0.5, 1.75),
    ),
    "two constants": (
        "mov.b64 v0, {a0, a3}; mov.b32 r0, 0fBE800000; mov.b32 r1, 0f40400000; mov.b64 v1, {r0, r1};"
        "fma.rn.f32x2 v3, v0, v1, v1;" + BOTH,
        (-0.75, -18),
    ),
    "negated": (
        "neg.f32 a2, a2; neg.f32 a3, a3; mov.b64 v0, {a0, a1}; mov.b64 v1, {a2, a3}; mov.b64 v2, {a4, a5};"
        "fma.rn.f32x2 v3, v0, v1, v2;" + BOTH,
        (1, 34),
    ),
    "high half negated": ("neg.f32 a3, a3;" + PAIRS + "add.rn.f32x2 v3, v0, v1;" + BOTH, (7, 10)),
    "magnitudes": (
        "abs.f32 a2, a2; abs.f32 a3, a3; mov.b64 v0, {a0, a1}; mov.b64 v1, {a2, a3}; add.rn.f32x2 v3, v0, v1;" + BOTH,
        (7, 10),
    ),
    "eight words": (
        EIGHT + "".join(f"st.global.b32 [to+DST+{4 * i}], a{i};" for i in range(8)),
        VALUES,
    ),
    "eight words in another order": (
        "ld.global.v8.b32 {a5, a2, a7, a0, a6, a1, a3, a4}, [from];"
        + "".join(f"st.global.b32 [to+DST+{4 * i}], a{i};" for i in range(8)),
        tuple(VALUES[at] for at in (3, 5, 1, 6, 7, 0, 4, 2)),
    ),
    "sums of what eight words are loaded to": (
        f"{EIGHT} mov.b64 v0, {{a0, a1}}; mov.b64 v1, {{a2, a3}}; mov.b64 v2, {{a4, a5}}; mov.b64 v3, {{a6, a7}};"
        "fma.rn.f32x2 v3, v0, v1, v3; add.rn.f32x2 v3, v3, v2;" + BOTH,
        (22, -7),
    ),
}
OPCODES = {"FADD2", "FMUL2", "FMUL2.RZ", "FFMA2", "LDG.E.ENL2.256"}


def floats(content: bytes) -> tuple[float, ...]:
    return struct.unpack(f"<{len(content) // 4}f", content)


@pytest.fixture(scope="module")
def code(toolchain: Toolchain, tmp_path_factory: pytest.TempPathFactory) -> str:
    """All forms in one kernel, each with values that it loads itself: the machine code that ptxas makes of it."""
    parts, at = list[str](), 0
    for body, expected in FORMS.values():
        own = body if "ld.global" in body else LOADED + body
        parts.append("{\n.reg .b32 a<8>; .reg .b32 r<8>; .reg .b64 v<4>;\n" + own.replace("DST", str(at)) + "}\n")
        at += 4 * len(expected)
    ptx = "".join([HEAD, *parts, "ret;\n}\n"])
    cubin = assemble(toolchain, ptx, TARGET, tmp_path_factory.mktemp("pairs") / "probe.cubin")
    return subprocess.run([toolchain.nvdisasm, "-c", cubin], check=True, capture_output=True, text=True).stdout


def executed(text: str, folder: Path) -> dict[str, tuple[float, ...]]:
    """Return what each form stores, by the table of instructions."""
    kernel = translate(text, arch=ARCH, grid=True)
    assert {one.opcode for one in kernel.listing.instructions} >= OPCODES
    size = 4 * sum(len(expected) for _, expected in FORMS.values())
    values = grid.Array(0x7F00_0000_0000, struct.pack("<8f", *VALUES))
    results = grid.Array(0x7F01_0000_0000, bytes(size), writable=True)
    launch = grid.Launch((1, 1, 1), (1, 1, 1), grid.pointers([values, results]), (values, results))
    ((stored,), _) = grid.run(grid.build(folder, kernel, quick=True), kernel, launch)
    there, found = list(floats(stored)), dict[str, tuple[float, ...]]()
    for form, (_, expected) in FORMS.items():
        found[form], there = tuple(there[: len(expected)]), there[len(expected) :]
    return found


def test_the_code_of_ptxas_computes_by_the_table_what_its_ptx_means(code: str, tmp_path: Path) -> None:
    assert executed(code, tmp_path) == {form: expected for form, (_, expected) in FORMS.items()}


def test_a_table_with_the_halves_exchanged_does_not_fit(
    code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = Operands.two_singles
    monkeypatch.setattr(Operands, "two_singles", lambda self: own(self)[::-1])
    found = executed(code, tmp_path)
    wrong = {form for form, (_, expected) in FORMS.items() if found[form] != expected}
    assert wrong >= {"sum", "product", "sum of products", "one factor for both", "negated"}


def test_a_table_with_the_groups_of_a_load_exchanged_does_not_fit(
    code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = TABLE["LDG.E.ENL2.256"]

    def exchanged(operands: Operands) -> list[Effect]:
        operands._rest[:2] = reversed(operands._rest[:2])
        return entry.emit(operands)

    monkeypatch.setitem(TABLE, "LDG.E.ENL2.256", Semantics(exchanged, entry.source))
    found = executed(code, tmp_path)
    wrong = {form for form, (_, expected) in FORMS.items() if found[form] != expected}
    assert wrong == {form for form in FORMS if "eight words" in form}


@pytest.mark.parametrize("part", ["F32x2.HI_LO.PN", "F32x2.LO_HI", "F64"])
def test_another_order_of_the_halves_is_not_understood(code: str, part: str) -> None:
    assert "FADD2" in code
    with pytest.raises(SassError, match="is not understood"):
        translate(code.replace("F32x2.HI_LO", part), arch=ARCH, grid=True)
