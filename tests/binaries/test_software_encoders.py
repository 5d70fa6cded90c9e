"""Each software encoder is recognised in compiled code by its constants, with its number of values."""

from pathlib import Path

import pytest
from cubins import compile_cuda

from fp4patch.binaries import cubin as reader
from fp4patch.binaries import sass_bits
from fp4patch.binaries.report import Fp4Code, total
from fp4patch.proof.toolchain import Toolchain

ENCODERS = Path(__file__).parents[2] / "encoders"

EIGHT = """
#include "{header}"
extern "C" __global__ void encode(const float* in, unsigned* out) {{
  const float* v = in + 8 * threadIdx.x;
  out[threadIdx.x] = ::fp4patch_{name}::e2m1_x8(v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7]);
}}
"""

OF_THE_TOOLKIT = """
#include <cuda_fp4.h>
extern "C" __global__ void encode(const float* in, unsigned char* out) {
  out[threadIdx.x] = __nv_cvt_float_to_fp4(in[threadIdx.x], __NV_E2M1, cudaRoundNearest);
}
"""

# As CUTLASS 4.7 does: the bits of the magnitude are compared with the bits of the rounding boundaries, as integers.
INTEGER_BORDERS = """
extern "C" __global__ void encode(const float* in, unsigned* out) {
  const unsigned b = __float_as_uint(in[threadIdx.x]), m = b & 0x7fffffff;
  out[threadIdx.x] = (b >> 31) << 3 | ((m > 0x3e800000) + (m >= 0x3f400000) + (m > 0x3fa00000) + (m >= 0x3fe00000) +
                                       (m > 0x40200000) + (m >= 0x40600000) + (m > 0x40a00000));
}
"""

# A search for scales: rounded to what E2M1 can hold, and kept as floats.
ROUNDS = """
__device__ float rounded(float x) {
  const float a = fabsf(x);
  const float r = a <= 0.25f ? 0.0f : a < 0.75f ? 0.5f : a <= 1.25f ? 1.0f : a < 1.75f ? 1.5f : a <= 2.5f ? 2.0f
                  : a < 3.5f ? 3.0f : a <= 5.0f ? 4.0f : 6.0f;
  return copysignf(r, x);
}
extern "C" __global__ void search(const float* in, float* out) {
  const float e = rounded(in[threadIdx.x]) - in[threadIdx.x];
  out[threadIdx.x] = e * e;
}
"""


def scanned(toolchain: Toolchain, source: str, arch: str, folder: Path) -> Fp4Code:
    cubin = compile_cuda(toolchain, source, folder / "code.cubin", "-cubin", "-arch", arch)
    return counted(cubin.read_bytes())


def counted(cubin: bytes) -> Fp4Code:
    return total(found.code for found in sass_bits.by_function(cubin, reader.parse(cubin, "code").functions))


@pytest.mark.parametrize("name", ["half_pair", "predicate_sum", "threshold"])
def test_recognises_our_encoders(toolchain: Toolchain, name: str, tmp_path: Path) -> None:
    source = EIGHT.format(header=ENCODERS / f"{name}.cuh", name=name)
    code = scanned(toolchain, source, "sm_121", tmp_path)
    assert code.encoders == {name if name == "half_pair" else "threshold or predicate_sum": 8}
    assert code.hardware == 0


@pytest.mark.parametrize(
    ("source", "arch", "encoders", "hardware"),
    [
        (OF_THE_TOOLKIT, "sm_120", {"cuda_fp4.hpp": 1}, 0),
        (OF_THE_TOOLKIT, "sm_120a", {}, 1),  # the instruction where the target has it
        (INTEGER_BORDERS, "sm_121", {"CUTLASS e2m1_nib (4.7)": 1}, 0),
        (ROUNDS, "sm_121a", {}, 0),
    ],
)
def test_recognises_the_toolkits_own_and_integers_and_no_search_for_scales(
    toolchain: Toolchain, tmp_path: Path, source: str, arch: str, encoders: dict[str, int], hardware: int
) -> None:
    code = scanned(toolchain, source, arch, tmp_path)
    assert (code.encoders, code.hardware) == (encoders, hardware)


def test_recognises_cutlass_exmy_base(toolchain: Toolchain, pristine_tree, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    probe = ENCODERS.parent / "patches/cutlass/e2m1-encode/probes/to-e2m1-array.cu"
    include = pristine_tree("cutlass", "4.2.1") / "include"
    source = f'#define SOURCE float\n#define VALUES 8\n#include "{probe}"\n'
    cubin = compile_cuda(toolchain, source, tmp_path / "c.cubin", "-cubin", "-arch", "sm_121", "-I", str(include))
    assert counted(cubin.read_bytes()).encoders == {"CUTLASS exmy_base": 8}
