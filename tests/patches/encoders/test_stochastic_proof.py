"""A proof, for all 2^40 pairs of input and random byte, that stochastic.cuh is stochastic rounding to E2M1.

Z3 decides each question over bit-vectors and IEEE floating point, so nothing is sampled. The questions are the header's
own steps, with constants that are read from it; a wrong constant must make the proof fail. What is specified is a sum
of comparisons with exact thresholds. (Of the other encoders the 2^32 inputs are run.)
"""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import pytest
import z3  # type: ignore[import-untyped]  # z3-solver ships no types

from fp4patch.proof.specification import MAGNITUDES

HEADER = (Path(__file__).parents[3] / "encoders/stochastic.cuh").read_text()
DEVICE, HOST = HEADER.split("#else  // before sm_86, and the host")

INPUT, RANDOM = z3.BitVec("input", 32), z3.BitVec("random", 8)
CAP = int(re.findall(r"seven = 0x(\w{4})\1u;", DEVICE)[0], 16)
SCALE = float.fromhex(re.findall(r"scale = (0x\S+?)f;", DEVICE)[0])


def bits(value: int, width: int = 32) -> z3.BitVecRef:
    return z3.BitVecVal(value, width)


def counterexample(claim: z3.BoolRef) -> z3.ModelRef | None:
    solver = z3.Solver()
    solver.set("timeout", 60_000)
    solver.add(z3.Not(claim))
    result = solver.check()
    assert result != z3.unknown, "the solver gave up: nothing is proven"
    return solver.model() if result == z3.sat else None


def selected(mask: int, a: z3.BitVecRef, b: z3.BitVecRef) -> z3.BitVecRef:
    return (a & mask) | (b & ~bits(mask))


def upper_bytes(a: z3.BitVecRef, b: z3.BitVecRef) -> z3.BitVecRef:
    """``__byte_perm(a, b, 0x7531)``."""
    return z3.Concat(z3.Extract(31, 24, b), z3.Extract(15, 8, b), z3.Extract(31, 24, a), z3.Extract(15, 8, a))


def specified(value: z3.BitVecRef = INPUT, random: z3.BitVecRef = RANDOM) -> z3.BitVecRef:
    """One more for each code v whose threshold v - r / 256 * (v - the code below) is not above ``|x|``.

    The thresholds are multiples of 2^-9, so that the floor of ``512 |x|`` decides.
    """
    magnitude = value & 0x7FFF_FFFF
    nan = z3.UGT(magnitude, bits(0x7F80_0000))
    within = z3.fpBVToFP(z3.If(z3.ULT(magnitude, bits(0x40E0_0000)), magnitude, bits(0x40E0_0000)), z3.Float32())
    steps = z3.fpToUBV(z3.RTZ(), z3.fpMul(z3.RTZ(), within, z3.FPVal(512.0, z3.Float32())), z3.BitVecSort(32))
    code = bits(0)
    for below, above in pairwise(MAGNITUDES):
        threshold = bits(int(above * 512)) - z3.ZeroExt(24, random) * int((above - below) * 2)
        code += z3.If(z3.UGE(steps, threshold), bits(1), bits(0))
    return z3.If(nan, bits(7), z3.LShR(value, 28) & 8 | code)


# --- steps 1 to 3 ----------------------------------------------------------------------------------------------------


def dithered_half(
    scale: float = SCALE, cap: int = CAP, shift: int = 2, rounding: z3.FPRMRef | None = None
) -> z3.BitVecRef:
    """``dithered_halves`` for one value. A NaN is canonical after the conversion (PTX ISA, cvt), and min drops it."""
    x = z3.fpBVToFP(INPUT, z3.Float32())
    small = z3.fpMul(z3.RNE(), x, z3.FPVal(scale, z3.Float32()))
    h = z3.fpFPToFP(rounding if rounding is not None else z3.RTZ(), small, z3.Float16())
    pattern = z3.fpToIEEEBV(h)
    magnitude = pattern & 0x7FFF
    capped = (pattern & 0x8000) | z3.If(z3.ULT(magnitude, bits(cap, 16)), magnitude, bits(cap, 16))
    return z3.If(z3.fpIsNaN(h), bits(cap, 16), capped) + z3.ZeroExt(8, RANDOM) * shift


def finished(half: z3.BitVecRef) -> z3.BitVecRef:
    """Step 4 as described by its line of the comment: the nibble of one sum, in 32 bits."""
    return z3.ZeroExt(16, z3.LShR(half, 12) & 8 | z3.LShR(half, 9) & 7)


def test_the_sum_is_stochastic_rounding_for_every_input_and_random_byte() -> None:
    assert "cvt.rz.f16x2.f32" in DEVICE
    assert "noise * 2u + m" in DEVICE
    assert counterexample(finished(dithered_half()) == specified()) is None


def test_no_sum_leaves_the_bits_of_its_code() -> None:
    assert counterexample(dithered_half() & 0x7000 == 0) is None


@pytest.mark.parametrize(
    "wrong",
    [
        {"scale": 2.0**-13},
        {"scale": 2.0**-14 * (1 + 2.0**-11)},
        {"cap": CAP - 1},
        {"cap": CAP + 512},
        {"shift": 1},
        {"rounding": z3.RNE()},
    ],
    ids=str,
)
def test_no_neighbouring_constant_would_do(wrong: dict[str, int]) -> None:
    assert counterexample(finished(dithered_half(**wrong)) == specified()) is not None


def test_the_specification_is_monotone_in_the_random_byte_and_keeps_the_grid() -> None:
    larger = z3.BitVec("larger", 8)
    grows = z3.ULE(specified() & 7, specified(INPUT, larger) & 7)
    assert counterexample(z3.Implies(z3.ULE(RANDOM, larger), grows)) is None
    whole = z3.fpBVToFP(INPUT & 0x7FFF_FFFF, z3.Float32())
    for code, value in enumerate(MAGNITUDES):
        on_it = z3.fpEQ(whole, z3.FPVal(float(value), z3.Float32()))
        assert counterexample(z3.Implies(on_it, specified() & 7 == code)) is None


# --- step 4: the packing, and where the random bytes go ---------------------------------------------------------------

SUMS = [z3.BitVec(f"sum{i}", 16) for i in range(8)]
IN_CODE = z3.And(*(sum_ & 0x7000 == 0 for sum_ in SUMS))


def nibbles(word: z3.BitVecRef, what: str) -> z3.BitVecRef:
    """Model ``nibbles_of_halves`` or ``nibbles_of_bytes``, with the mask of the header."""
    found = re.search(rf"{what}\(unsigned int (\w+)\) {{ return select\((0x\w+)u, \1, \1 \* 8u\);", DEVICE)
    assert found, what
    return selected(int(found[2], 16), word, word * 8)


def pair(low: int, high: int) -> z3.BitVecRef:
    return z3.Concat(SUMS[high], SUMS[low])


def in_order(*values: int) -> z3.BitVecRef:
    word = bits(0)
    for place, value in enumerate(values):
        word |= finished(SUMS[value]) << 4 * place
    return word


def test_one_value_and_two_are_packed_in_order() -> None:
    word = z3.Concat(SUMS[0], bits(0, 16))
    one = z3.LShR(nibbles(word, "nibbles_of_halves"), 28)
    assert counterexample(z3.Implies(IN_CODE, one == in_order(0))) is None
    n = nibbles(pair(0, 1), "nibbles_of_halves")
    two = selected(0x0F, z3.LShR(n, 12), z3.LShR(n, 24)) & 0xFF
    assert counterexample(z3.Implies(IN_CODE, two == in_order(0, 1))) is None


def test_four_values_are_packed_in_order() -> None:
    n = nibbles(upper_bytes(pair(0, 2), pair(1, 3)), "nibbles_of_bytes")
    packed = selected(0x0F0F, z3.LShR(n, 4), z3.LShR(n, 16)) & 0xFFFF
    assert counterexample(z3.Implies(IN_CODE, packed == in_order(0, 1, 2, 3))) is None


def test_eight_values_are_packed_in_order() -> None:
    even = nibbles(upper_bytes(pair(0, 2), pair(4, 6)), "nibbles_of_bytes")
    odd = nibbles(upper_bytes(pair(1, 3), pair(5, 7)), "nibbles_of_bytes")
    packed = selected(0x0F0F0F0F, z3.LShR(even, 4), odd)
    assert counterexample(z3.Implies(IN_CODE, packed == in_order(*range(8)))) is None


def permuted(a: z3.BitVecRef, selector: int) -> z3.BitVecRef:
    """``__byte_perm(a, 0, selector)`` (PTX ISA, prmt, default mode)."""
    chosen = [selector >> 4 * n & 7 for n in range(4)]
    parts = [z3.Extract(8 * n + 7, 8 * n, a) if n < 4 else bits(0, 8) for n in chosen]
    return z3.Concat(*reversed(parts))


def test_each_value_gets_the_random_byte_of_the_instruction() -> None:
    # f, e, b and a of the instruction are values 0 to 3; f and e have the low bytes of the halves.
    word = z3.BitVec("rbits", 32)
    byte = [z3.ZeroExt(24, z3.Extract(8 * n + 7, 8 * n, word)) for n in (0, 2, 1, 3)]
    selectors = dict(
        re.findall(r"(even|odd)_noise\(unsigned int rbits\) { return __byte_perm\(rbits, 0u, (\w+)\)", DEVICE)
    )
    for name, low, high in (("even", 0, 2), ("odd", 1, 3)):
        noise = permuted(word, int(selectors[name], 16))
        assert counterexample(noise == byte[high] << 16 | byte[low]) is None
    two, one = (
        int(found, 16)
        for found in (
            re.findall(rf"{call}, __byte_perm\(rbits, 0u, (\w+)\)", DEVICE)[0] for call in (r"\(v0, v1", r"\(0\.0f, x")
        )
    )
    assert counterexample(permuted(word, two) == byte[1] << 16 | byte[0]) is None
    assert counterexample(permuted(word, one) == byte[0] << 16) is None


# --- the host's form -------------------------------------------------------------------------------------------------


def host_form(power: int = 264, scale: int = 1024, *, nan_keeps_sign: bool = False) -> z3.BitVecRef:
    """``e2m1`` below ``#else``, line by line. The conversion of a float to an integer cuts off (C++, [conv.fpint])."""
    single = z3.Float32()
    magnitude = INPUT & 0x7FFF_FFFF
    a = z3.If(z3.ULT(magnitude, bits(0x40C0_0000)), magnitude, bits(0x40C0_0000))
    p = z3.If(z3.UGT(a, bits(0x3F80_0000)), a, bits(0x3F80_0000)) & 0x7F80_0000
    steps = z3.fpMul(z3.RNE(), z3.fpBVToFP(a, single), z3.fpBVToFP((bits(power) << 23) - p, single))
    half = (z3.LShR(p, 23) - 127) * scale + z3.fpToUBV(z3.RTZ(), steps, z3.BitVecSort(32))
    sign = z3.LShR(INPUT, 28) & 8
    if not nan_keeps_sign:
        sign = z3.If(z3.UGT(magnitude, bits(0x7F80_0000)), bits(0), sign)
    return sign | z3.LShR(half + 2 * z3.ZeroExt(24, RANDOM), 9)


def test_the_host_form_is_stochastic_rounding_for_every_input_and_random_byte() -> None:
    for part in ("0x40c00000u", "0x3f800000u", "(264u << 23) - p", "* 1024u", "2u * (rbits & 0xffu)) >> 9"):
        assert part in HOST
    assert counterexample(host_form() == specified()) is None


def test_a_changed_host_form_is_told_apart() -> None:
    assert counterexample(host_form(power=263) == specified()) is not None
    assert counterexample(host_form(scale=1023) == specified()) is not None
    assert counterexample(host_form(nan_keeps_sign=True) == specified()) is not None
