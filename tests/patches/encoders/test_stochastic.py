"""stochastic.cuh alone and beside the others, its machine code, and its host form against the specification.

The result grows with the random byte, which is added before a shift: the two bytes around an input's threshold stand
for all 256. ``FP4PATCH_LIFT_ALL=1`` runs all 2^32 inputs, which takes 40 s.
"""

import os
from pathlib import Path

import pytest
from test_encoders import FOLDER, free_of_what_no_encoder_may_have, host, listing

from fp4patch.core.arch import Arch
from fp4patch.proof.toolchain import Toolchain

HEADER = FOLDER / "stochastic.cuh"
EXPECTED = r"""
#include <cmath>
#include <cstdio>
#include <cstring>
#include <thread>

static const double kValues[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};

static unsigned int expected(float x, unsigned int r) {
  if (std::isnan(x)) return 7;
  const double a = std::fabs(static_cast<double>(x));
  unsigned int code = 0;
  for (int k = 1; k < 8; ++k) code += a >= kValues[k] - r / 256.0 * (kValues[k] - kValues[k - 1]);
  return (std::signbit(x) ? 8 : 0) | code;
}

[[maybe_unused]] static float number(unsigned int u) {
  float x;
  std::memcpy(&x, &u, sizeof x);
  return x;
}
"""


KERNEL = """
extern "C" __global__ void probe(const float4* in, const uint2* random, unsigned int* out) {
  const unsigned int at = blockIdx.x * blockDim.x + threadIdx.x;
  const float4 a = in[2 * at], b = in[2 * at + 1];
  const uint2 r = random[at];
  out[at] = fp4patch_stochastic::e2m1_x8(a.x, a.y, a.z, a.w, b.x, b.y, b.z, b.w, r.x, r.y);
}
"""


@pytest.mark.parametrize("arch", ["sm_75", "sm_86", "sm_90", "sm_120", "sm_121a"])
def test_eight_values_have_no_branch_no_local_memory_and_no_e2m1_instruction(
    arch: str, tmp_path: Path, toolchain: Toolchain
) -> None:
    code = listing(tmp_path, toolchain, HEADER.read_text() + KERNEL, arch)
    assert free_of_what_no_encoder_may_have(code)
    if Arch.parse(arch) >= Arch.parse("sm_86"):
        assert code.size <= 50  # 32 of them encode; CUDA 13.0.88


def test_the_host_form_is_the_specification_around_every_threshold(tmp_path: Path) -> None:
    stride = 1 if os.environ.get("FP4PATCH_LIFT_ALL") else 61
    program = f"""{EXPECTED}{HEADER.read_text()}
static unsigned long long sweep(unsigned int first) {{
  unsigned long long bad = 0;
  for (unsigned long long at = first; at < 1ull << 32; at += 2 * {stride}) {{
    const float x = number(static_cast<unsigned int>(at));
    const double a = std::fabs(static_cast<double>(x));
    unsigned int around = 0;  // the least byte that rounds up, less than 256 of them
    for (int k = 1; k < 8; ++k) {{
      if (a >= kValues[k - 1] && a < kValues[k])
        around = static_cast<unsigned int>(std::ceil((kValues[k] - a) / (kValues[k] - kValues[k - 1]) * 256.0));
    }}
    const unsigned int up = around > 255 ? 255 : around, down = around > 0 ? around - 1 : 0;
    bad += fp4patch_stochastic::e2m1(x, up) != expected(x, up);
    bad += fp4patch_stochastic::e2m1(x, down) != expected(x, down);
  }}
  return bad;
}}
int main() {{
  unsigned long long one = 0, other = 0;
  std::thread first([&] {{ one = sweep(0); }}), second([&] {{ other = sweep({stride}); }});
  first.join();
  second.join();
  std::printf("%llu\\n", one + other);
}}
"""
    assert host(tmp_path, program, "-O3", "-pthread") == "0\n"


def test_every_packing_on_the_host_is_the_single_values_with_their_bytes(tmp_path: Path) -> None:
    program = f"""{EXPECTED}{HEADER.read_text()}
static unsigned long long packed(int count, const float* v, const unsigned int* words) {{
  static const int kByte[] = {{0, 2, 1, 3}};
  unsigned long long word = 0;
  for (int i = 0; i < count; ++i) {{
    const unsigned int r = words[i / 4] >> 8 * kByte[i % 4] & 255;
    word |= static_cast<unsigned long long>(expected(v[i], r)) << 4 * i;
  }}
  return word;
}}
int main() {{
  unsigned int state = 1;
  unsigned long long bad = 0;
  const auto next = [&] {{ return state = state * 1664525u + 1013904223u; }};
  for (int round = 0; round < 100000; ++round) {{
    float v[8];
    for (float& x : v) x = static_cast<float>(static_cast<int>(next())) * 0x1p-28f;
    const unsigned int r[] = {{next() ^ next() >> 16, next() ^ next() >> 16}};
    namespace e = fp4patch_stochastic;
    bad += e::e2m1(v[0], r[0]) != packed(1, v, r);
    bad += e::e2m1_x2(v[0], v[1], r[0]) != packed(2, v, r);
    bad += e::e2m1_x4(v[0], v[1], v[2], v[3], r[0]) != packed(4, v, r);
    bad += e::e2m1_x8(v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7], r[0], r[1]) != packed(8, v, r);
  }}
  std::printf("%llu\\n", bad);
}}
"""
    assert host(tmp_path, program, "-O2", "-pthread") == "0\n"
