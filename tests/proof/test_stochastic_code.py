"""Stochastic rounding: machine code from which all inputs follow, and code from which they do not."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from cubins import compile_cuda, disassembled

from fp4patch.catalog.probe import Executes
from fp4patch.proof.execution import chosen_inputs
from fp4patch.proof.execution.stochastic import doubt
from fp4patch.proof.toolchain import Toolchain
from fp4patch.sass.flow import flow
from fp4patch.sass.folding import NotFollowedError
from fp4patch.sass.immediates import corners
from fp4patch.sass.listing import Listing, read

ENCODER = (Path(__file__).parents[2] / "encoders/stochastic.cuh").read_text()
KERNEL = """
struct Record { float v[4]; unsigned int random; };
extern "C" __global__ void probe(const Record *records, unsigned short *packed) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const Record x = records[i];
  packed[i] = fp4patch_stochastic::e2m1_x4(x.v[0] FACTOR, x.v[1], x.v[2] FACTOR, x.v[3], x.random);
}
"""
FOUR = Executes(input="float32", lanes=4, rounding="stochastic")
SUM, PACKED = "return noise * 2u + m;", "  const unsigned int n = nibbles_of_bytes(__byte_perm(dithered_halves(v0, v2,"
OWN = "depends on more than its value"

Compile = Callable[..., Listing]


@pytest.fixture
def compiled(toolchain: Toolchain, tmp_path: Path) -> Compile:
    """``compiled(old, new)``: the encoder's machine code for sm_121a, with this change."""

    def get(old: str = "", new: str = "", *, factor: str = "") -> Listing:
        assert old in ENCODER
        source = ENCODER.replace(old, new) + KERNEL.replace("FACTOR", factor) if old else ENCODER + KERNEL
        source = source.replace("FACTOR", factor)
        cubin = compile_cuda(toolchain, source, tmp_path / "probe.cubin", "-O3", "-cubin", "-arch=sm_121a")
        return read(disassembled(toolchain, cubin.read_bytes()), arch=(12, 1))

    return get


def found(listing: Listing, executes: Executes = FOUR) -> str:
    try:
        return doubt(listing, flow(listing), executes)
    except NotFollowedError as why:
        return str(why)


def test_all_inputs_of_the_encoder_follow_from_a_few(compiled: Compile) -> None:
    assert found(compiled()) == ""


def test_lanes_may_have_a_factor_each(compiled: Compile) -> None:
    scaled = compiled(factor="* 0.37f")
    assert found(scaled) == "code 1 is not the function that code 0 is"
    other = Executes(input="float32", lanes=4, rounding="stochastic", factors=(0.37, 2.0))
    assert "value times its factors" in found(scaled, other)


@pytest.mark.parametrize(
    ("old", "new", "because"),
    [
        (SUM, "return noise * 2u + m + (__float_as_uint(high) * 0x9e3779b1u == 5u ? 512u : 0u);", OWN),
        (
            SUM,
            "return noise * 2u + (m ^ (__float_as_uint(low) * 0x9e3779b1u == 5u ? 512u : 0u));",
            "is not the function",
        ),
        (PACKED, "  if (rbits * 0x9e3779b1u == 5u) return 0;\n" + PACKED, OWN),
        ("0x4140)", "0x4240)", OWN),
        (SUM, "return noise * 4u + m;", "may fall as its random byte grows"),
        (SUM, "return m - noise * 2u;", OWN),
        (SUM, "return (noise ^ 0x00ff00ffu) * 2u + m;", "may fall as its random byte grows"),
        ("0x1p-14f", "0x1p-13f", "not that of the value times its factors"),
        ("cvt.rz.f16x2", "cvt.rn.f16x2", "a value decides"),
        ("0x80808080u, bytes", "0x80808000u, bytes", "is not the function that code 0 is"),
    ],
)
def test_code_that_may_treat_one_input_otherwise_is_named(compiled: Compile, old: str, new: str, because: str) -> None:
    assert because in found(compiled(old, new))


def test_the_least_float_of_each_half_is_that_half_times_the_scale() -> None:
    ends = chosen_inputs._ends_of_halves(np.float32(1))
    least = (np.arange(1, 0x7C00, dtype=np.uint16).view(np.float16).astype(np.float32) * np.float32(2**14)).view(
        np.uint32
    )
    assert set(least) | set(least - 1) == set(ends) - {0, 0x7F80_0000, 0x7F7F_FFFF}


def test_immediates_become_inputs(compiled: Compile) -> None:
    listing = compiled(SUM, "return noise * 2u + m + (__float_as_uint(high) == 0x3f812340u ? 512u : 0u);")
    words = corners(listing, 32)
    assert {0x3F812340, 0xBF812340} <= set(words)
    codes, random = chosen_inputs._suggested(FOUR, listing)
    assert random is not None
    assert all(np.any(codes[:, lane] == 0x3F812340) for lane in range(4))
    assert np.any(random == 0x3F812340)
    assert len(codes) % 768 == 0
