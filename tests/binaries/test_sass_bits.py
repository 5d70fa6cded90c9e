"""The scan of instruction words against the disassembler: it finds every instruction of its classes, and no other."""

import itertools
import re
from collections import Counter
from pathlib import Path

import pytest
from cubins import assemble, listing

from fp4patch.binaries import cubin as reader
from fp4patch.binaries import sass_bits
from fp4patch.binaries.report import FP4_CLASSES, Idle
from fp4patch.proof.toolchain import Toolchain

HEAD = """.version 9.0
.target {arch}
.address_size 64
"""
KERNEL = """.visible .entry k{number}(.param .u64 p) {{
.reg .b32 r<64>; .reg .f32 f<64>; .reg .b64 d<8>; .reg .b16 h<16>; .reg .b8 b<16>; .reg .pred q<4>;
ld.param.u64 d0,[p];
ld.global.v4.b32 {{r0,r1,r2,r3}},[d0]; ld.global.v4.b32 {{r4,r5,r6,r7}},[d0+16];
ld.global.v4.f32 {{f0,f1,f2,f3}},[d0+32]; ld.global.v4.f32 {{f4,f5,f6,f7}},[d0+48];
ld.global.b16 h0,[d0+64]; setp.gt.f32 q0,f6,f7; cvt.u32.u64 r20,d0; mov.b32 f20,r20;
{body}
st.global.v4.b32 [d0],{{r8,r9,r10,r11}}; st.global.v4.f32 [d0+64],{{f8,f9,f10,f11}};
ret;
}}
"""

STOCHASTIC = "cvt.rs.satfinite.e2m1x4.f32 h2,{f0,f1,f2,f3},r0; cvt.u32.u16 r8,h2;"
BYTES = "mov.b32 {b0,b1,b2,b3},r0;"
CONVERSIONS = [
    "cvt.rn.satfinite.e2m1x2.f32 b0,f0,f1; cvt.u32.u8 r8,b0;",
    "cvt.rn.satfinite.relu.e2m1x2.f32 b0,f0,f1; cvt.u32.u8 r8,b0;",
    "cvt.rn.satfinite.e2m1x2.f32 b0,f0,f20; cvt.u32.u8 r8,b0;",  # f20: a uniform register, if ptxas likes
    "cvt.rn.satfinite.e2m1x2.f32 b0,0f3fc00000,f0; cvt.u32.u8 r8,b0;",
    "@q0 cvt.rn.satfinite.e2m1x2.f32 b0,f2,f3; cvt.u32.u8 r8,b0;",
    "cvt.rn.satfinite.e2m1x2.f32 b0,f0,f1; cvt.rn.satfinite.e2m1x2.f32 b1,f2,f3;"
    " cvt.rn.satfinite.e2m1x2.f32 b2,f4,f5; cvt.rn.satfinite.e2m1x2.f32 b3,f6,f7; mov.b32 r8,{b0,b1,b2,b3};",
    "cvt.rn.satfinite.e2m1x2.f16x2 b0,r0; cvt.u32.u8 r8,b0;",
    "cvt.rn.satfinite.relu.e2m1x2.f16x2 b0,r0; cvt.u32.u8 r8,b0;",
    BYTES + "cvt.rn.f16x2.e2m1x2 r8,b0; cvt.rn.f16x2.e2m1x2 r9,b1; cvt.rn.f16x2.e2m1x2 r10,b2;"
    " cvt.rn.relu.f16x2.e2m1x2 r11,b3;",
    "cvt.u8.u32 b0,r20; cvt.rn.f16x2.e2m1x2 r8,b0;",
    # Neighbours, which must not be taken for E2M1.
    "cvt.rn.f16x2.e2m3x2 r8,h0; cvt.rn.f16x2.e3m2x2 r9,h0; cvt.rn.f16x2.e4m3x2 r10,h0; cvt.rn.f16x2.e5m2x2 r11,h0;",
    "cvt.rn.bf16x2.ue8m0x2 r8,h0;",
    "cvt.rn.satfinite.e2m3x2.f32 h2,f0,f1; cvt.rn.satfinite.e3m2x2.f32 h3,f0,f1; mov.b32 r8,{h2,h3};",
    "cvt.rn.satfinite.e4m3x2.f32 h2,f0,f1; cvt.rn.satfinite.e5m2x2.f32 h3,f0,f1; mov.b32 r8,{h2,h3};",
    "cvt.rz.satfinite.ue8m0x2.f32 h2,f0,f1; cvt.rn.satfinite.e4m3x2.f16x2 h3,r0; mov.b32 r8,{h2,h3};",
    "cvt.rn.f16x2.f32 r8,f0,f1; cvt.rn.bf16x2.f32 r9,f0,f1; cvt.rz.f16x2.f32 r10,f0,f1;",
]


def mma(kind: str, scales: str, shape: str, types: str, scale: str) -> str:
    sparse = shape in ("m16n8k128", "m16n8k64x")
    return (
        f"mma{'.sp::ordered_metadata' if sparse else ''}.sync.aligned.{shape.rstrip('x')}.row.col.kind::{kind}"
        f".block_scale.scale_vec::{scales}.f32.{types}.f32.{scale} {{f8,f9,f10,f11}},{{r0,r1,r2,r3}},"
        f"{'{r4,r5,r6,r7}' if sparse else '{r4,r5}'},{{f0,f1,f2,f3}},{'r6,0x0,' if sparse else ''}"
        "r6,{0,0},r7,{0,0};"
    )


NARROW = ("e2m1", "e4m3", "e5m2", "e2m3", "e3m2")
PAIRS = [f"{a}.{b}" for a, b in itertools.product(NARROW, NARROW)]
OF_E2M1 = sum("e2m1" in pair for pair in PAIRS)
MATRICES = [
    mma("mxf4nvf4", "4X", "m16n8k64", "e2m1.e2m1", "ue4m3"),
    mma("mxf4nvf4", "2X", "m16n8k64", "e2m1.e2m1", "ue8m0"),
    mma("mxf4", "2X", "m16n8k64", "e2m1.e2m1", "ue8m0"),
    *(mma("mxf8f6f4", "1X", "m16n8k32", pair, "ue8m0") for pair in PAIRS),
    *(
        f"mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.f32.{pair}.f32 "
        "{f8,f9,f10,f11},{r0,r1,r2,r3},{r4,r5},{f0,f1,f2,f3};"
        for pair in PAIRS
    ),
    "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {f8,f9,f10,f11},{r0,r1,r2,r3},{r4,r5},{f0,f1,f2,f3};",
]
SPARSE = [
    mma("mxf4nvf4", "4X", "m16n8k128", "e2m1.e2m1", "ue4m3"),
    mma("mxf4", "2X", "m16n8k128", "e2m1.e2m1", "ue8m0"),
    mma("mxf8f6f4", "1X", "m16n8k64x", "e2m1.e4m3", "ue8m0"),
]
TENSOR_MEMORY = [
    "setp.ne.u32 q1,r1,0; ld.global.b64 d1,[d0+8]; ld.global.b64 d2,[d0+16];"
    f" tcgen05.mma.cta_group::1.kind::{kind} [r0],d1,d2,r1,{scales}q1;"
    for kind, scales in (
        ("mxf4nvf4.block_scale.scale_vec::4X", "[r2],[r3],"),
        ("mxf4.block_scale.scale_vec::2X", "[r2],[r3],"),
        ("mxf8f6f4.block_scale.scale_vec::1X", "[r2],[r3],"),
        ("f8f6f4", ""),
        ("f16", ""),
    )
]

FORMS = {
    "sm_120a": CONVERSIONS + MATRICES + SPARSE,
    "sm_121a": CONVERSIONS + MATRICES + SPARSE,
    "sm_120f": CONVERSIONS + MATRICES,
    "sm_121f": CONVERSIONS + MATRICES,
    "sm_100a": [*CONVERSIONS, STOCHASTIC, *TENSOR_MEMORY],
}


def told(opcode: str) -> str:
    """The class that a disassembled opcode should be counted in; empty if in none."""
    name, *modifiers = opcode.split(".")
    types = [m for m in modifiers if re.fullmatch(r"U?E\dM\d|E8|BF16|F16|F32", m)]
    if name == "F2FP" and "E2M1" in types:
        encodes = "stochastic" if "RS" in modifiers else "nearest"
        return encodes if types[0] == "E2M1" else "decodings"
    return "matrix" if name in ("OMMA", "UTCOMMA") or (name == "QMMA" and "E2M1" in types) else ""


@pytest.mark.parametrize("arch", FORMS)
def test_finds_what_the_disassembler_finds_and_nothing_else(toolchain: Toolchain, arch: str, tmp_path: Path) -> None:
    kernels = [KERNEL.format(number=i, body=body) for i, body in enumerate(FORMS[arch])]
    cubin = assemble(toolchain, HEAD.format(arch=arch) + "".join(kernels), arch, tmp_path / f"{arch}.cubin")
    data = cubin.read_bytes()
    functions = reader.parse(data, cubin.name).functions
    disassembled = listing(toolchain, cubin)
    assert {function.name for function in functions} == set(disassembled)
    occurred = Counter[str]()
    for function, found in zip(functions, sass_bits.by_function(data, functions), strict=True):
        expected = Counter(told(line.split()[0]) for line in disassembled[function.name])
        assert {name: getattr(found.code, name) for name in FP4_CLASSES} == {n: expected[n] for n in FP4_CLASSES}
        occurred += expected
    assert occurred["nearest"] > 10
    assert occurred["decodings"] > 3
    assert bool(occurred["stochastic"]) == (arch == "sm_100a")
    assert occurred["matrix"] >= (2 if arch == "sm_100a" else 3 + 2 * OF_E2M1)


IDLE = {
    "does_nothing": (Idle.EMPTY, "ret;"),
    "stores_constants": (Idle.UNREAD, "st.global.u32 [d],7; ret;"),
    "checks": (None, "ld.global.u32 r,[d]; setp.eq.u32 q,r,7; @q trap; st.global.u32 [d],r; ret;"),
}


@pytest.mark.parametrize("arch", ["sm_100a", "sm_120a"])
def test_tells_in_which_way_a_kernel_does_nothing_of_use(toolchain: Toolchain, arch: str, tmp_path: Path) -> None:
    declared = ".reg .b64 d; .reg .b32 r, n; .reg .pred q; ld.param.u64 d,[p]; mov.u32 n,%tid.x; setp.gt.u32 q,n,9;"
    kernels = [f".visible .entry {name}(.param .u64 p) {{ {declared} {body} }}\n" for name, (_, body) in IDLE.items()]
    cubin = assemble(toolchain, HEAD.format(arch=arch) + "".join(kernels), arch, tmp_path / "idle.cubin")
    data = cubin.read_bytes()
    functions = reader.parse(data, "idle").functions
    found = sass_bits.by_function(data, functions)
    assert {f.name: one.idle for f, one in zip(functions, found, strict=True)} == {n: i for n, (i, _) in IDLE.items()}
