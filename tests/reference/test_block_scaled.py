"""The product of NVFP4 matrices in NumPy, and the executor's, which is apart from it: machine code of ptxas decides."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from cubins import assemble

from fp4patch.reference.block_scaled import exact_product, product, scale_offset, swizzled
from fp4patch.reference.formats import pack
from fp4patch.sass import Array, Launch, read_cubin

if TYPE_CHECKING:
    from fp4patch.proof.toolchain import Toolchain

# Each thread loads its fragments as the PTX ISA places them; the scales of a row are four bytes.
KERNEL = """
.version 8.8
.target sm_120a
.address_size 64
.visible .entry probe(.param .u64 words, .param .u64 results) {
  .reg .b32 a<4>; .reg .b32 b<2>; .reg .b32 s<2>; .reg .f32 c<4>; .reg .f32 d<4>; .reg .b32 t; .reg .b64 from, to, o;
  ld.param.u64 from, [words];
  ld.param.u64 to, [results];
  mov.u32 t, %tid.x;
  mul.wide.u32 o, t, 64;
  add.u64 from, from, o;
  ld.global.v4.b32 {a0, a1, a2, a3}, [from];
  ld.global.v2.b32 {b0, b1}, [from+16];
  ld.global.v2.b32 {s0, s1}, [from+24];
  ld.global.v4.f32 {c0, c1, c2, c3}, [from+32];
  mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3
    {d0, d1, d2, d3}, {a0, a1, a2, a3}, {b0, b1}, {c0, c1, c2, c3}, s0, {0, TA}, s1, {0, TB};
  mul.wide.u32 o, t, 16;
  add.u64 to, to, o;
  st.global.v4.f32 [to], {d0, d1, d2, d3};
  ret;
}
"""


@pytest.mark.parametrize("threads", [(0, 0), (1, 3)])
def test_the_executor_and_numpy_multiply_alike(threads: tuple[int, int], toolchain: Toolchain, tmp_path: Path) -> None:
    """A threads' selector names those of each four whose scales count; the others hold something else."""
    of_a, of_b = threads
    text = KERNEL.replace("TA", str(of_a)).replace("TB", str(of_b))
    file = assemble(toolchain, text, "sm_120a", tmp_path / "probe.cubin")
    cubin = read_cubin(file, nvdisasm=toolchain.nvdisasm)
    rng = np.random.default_rng(3)
    for spread in (8, 64, 120):
        a, b = (rng.integers(0, 16, (rows, 64), dtype=np.uint8) for rows in (16, 8))
        scales = [rng.integers(60 - spread // 2, 60 + spread // 2, (rows, 4), dtype=np.uint8) for rows in (16, 8)]
        words = np.zeros((32, 16), dtype="<u4")
        words[:, 6:8] = rng.integers(0, 1 << 32, (32, 2))
        packed = [pack(codes).view("<u4") for codes in (a, b)]  # eight values a word
        for lane in range(32):
            row, column = divmod(lane, 4)
            words[lane, :4] = [packed[0][row + 8 * (i % 2), column + 4 * (i // 2)] for i in range(4)]
            words[lane, 4:6] = [packed[1][row, column + 4 * i] for i in range(2)]
            if column // 2 == of_a:
                words[lane, 6] = scales[0].view("<u4")[row + 8 * (column % 2), 0]
            if column == of_b:
                words[lane, 7] = scales[1].view("<u4")[row, 0]
        arrays = (Array(1 << 32, words.tobytes()), Array(1 << 33, bytes(512), writable=True))
        launch = Launch((1, 1, 1), (32, 1, 1), struct.pack("<QQ", 1 << 32, 1 << 33), arrays)
        (stored,) = cubin.execute("probe", launch)
        got = np.frombuffer(stored, dtype=np.float32).reshape(8, 4, 2, 2).transpose(2, 0, 1, 3).reshape(16, 8)
        expected = product(a, scales[0], b, scales[1])
        assert np.array_equal(got.view(np.uint32), expected.view(np.uint32))
        assert np.allclose(expected, exact_product(a, scales[0], b, scales[1]), rtol=1e-6, atol=1e-3)


def test_sums_are_cut_off_and_not_rounded() -> None:
    codes = np.zeros((1, 128), dtype=np.uint8)
    codes[0, [0, 64]] = 1  # 0.5 in the first and in the second step
    one = np.full((1, 8), 0x38, dtype=np.uint8)
    large, small = one.copy(), one.copy()
    large[0, :4], small[0, 4:] = 0x7E, 0x01  # 448 times 0.25, then 2^-9 of it on each side
    assert product(codes, large, codes, large).item() == 448 * 448 / 4 + 0.25
    total = product(codes, np.where(small == 1, small, large), codes, np.where(small == 1, small, large)).item()
    assert total == 448 * 448 / 4 + 0  # 2^-20 is below a float32's last place there: cut off
    negative = np.where(np.arange(128) == 64, 9, codes[0])[None].astype(np.uint8)
    below = product(codes, np.where(small == 1, small, large), negative, np.where(small == 1, small, large)).item()
    assert below == np.nextafter(np.float32(448 * 448 / 4), np.float32(0))


def test_scales_are_in_tiles() -> None:
    scales = np.arange(130 * 5, dtype=np.uint64).reshape(130, 5).astype(np.uint8)
    found = swizzled(scales)
    assert len(found) == 4 * 512
    assert all(found[scale_offset(row, k, 5)] == scales[row, k] for row in range(130) for k in range(5))
