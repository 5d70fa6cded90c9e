"""A proof, for all 2^32 inputs, that half_pair.cuh rounds to nearest even to E2M1, with the header's own constants.

Z3 decides each question over bit-vectors and IEEE floating point, so nothing is sampled. The questions are the header's
own steps, in their order. Where a proof could pass by accident, a wrong constant must make it fail. The host's form
runs all inputs (``test_all_inputs.py``).
"""

from __future__ import annotations

import re
from fractions import Fraction
from pathlib import Path

import pytest
import z3  # type: ignore[import-untyped]  # z3-solver ships no types

from fp4patch.proof.specification import MAGNITUDES, specification

HEADER = (Path(__file__).parents[3] / "encoders/half_pair.cuh").read_text()
DEVICE, _ = HEADER.split("#else  // before sm_86, and the host")

INPUT = z3.BitVec("input", 32)


def constant(name: str) -> str:
    found = re.search(rf"\b{name} = (0x[0-9a-fp.+-]+?)[uf]?;", DEVICE)
    assert found, name
    return found[1]


SCALE = float.fromhex(constant("scale"))
SHRINK = int(constant("shrink"), 16) & 0xFFFF
CAP = int(constant("seven"), 16) & 0xFFFF


def bits(value: int, width: int = 32) -> z3.BitVecRef:
    return z3.BitVecVal(value, width)


def specified(value: z3.BitVecRef) -> z3.BitVecRef:
    """The nibble that the specification's intervals give, in 32 bits."""
    nibble = bits(0)
    for interval in specification():
        nibble = z3.If(z3.UGE(value, bits(interval.first)), bits(interval.code), nibble)
    return nibble


def counterexample(claim: z3.BoolRef) -> z3.ModelRef | None:
    solver = z3.Solver()
    solver.set("timeout", 60_000)
    solver.add(z3.Not(claim))
    result = solver.check()
    assert result != z3.unknown, "the solver gave up: nothing is proven"
    return solver.model() if result == z3.sat else None


# --- steps 1 to 3: the roundings -------------------------------------------------------------------------------------


def capped_half(scale: float = SCALE, shrink: int = SHRINK, cap: int = CAP) -> z3.BitVecRef:
    """``capped_halves`` for one value. A NaN is canonical after the conversion (PTX ISA, cvt), and min drops it."""
    half = z3.Float16()
    x = z3.fpBVToFP(INPUT, z3.Float32())
    h = z3.fpFPToFP(z3.RNE(), z3.fpMul(z3.RNE(), x, z3.FPVal(scale, z3.Float32())), half)
    d = z3.fpMul(z3.RNE(), h, z3.fpBVToFP(bits(shrink, 16), half))
    pattern = z3.fpToIEEEBV(d)
    magnitude = pattern & 0x7FFF
    capped = (pattern & 0x8000) | z3.If(z3.ULT(magnitude, bits(cap, 16)), magnitude, bits(cap, 16))
    return z3.If(z3.fpIsNaN(d), bits(cap, 16), capped)


def finished(half: z3.BitVecRef) -> z3.BitVecRef:
    """Step 4 as described by its line of the comment: the nibble of one capped half, in 32 bits."""
    return z3.ZeroExt(16, z3.LShR(half, 12) & 8 | z3.LShR((half & 0x7FFF) + 256, 9))


def test_the_two_roundings_are_the_rounding_to_e2m1_for_every_input() -> None:
    assert counterexample(finished(capped_half()) == specified(INPUT)) is None


@pytest.mark.parametrize(
    "wrong",
    [
        {"scale": 2.0**-14},
        {"scale": 2.0**-14 * (1 + 2.0**-10)},
        {"shrink": SHRINK - 1},
        {"shrink": SHRINK + 1},
        {"shrink": 0x3C00},
        {"cap": CAP - 512},
    ],
    ids=str,
)
def test_no_neighbouring_constant_would_do(wrong: dict[str, int]) -> None:
    assert counterexample(finished(capped_half(**wrong)) == specified(INPUT)) is not None


def test_the_first_factor_makes_every_border_a_tie_of_half_precision() -> None:
    factor = Fraction(SCALE) * 2**14
    parities = []
    for code in range(7):
        border = (MAGNITUDES[code] + MAGNITUDES[code + 1]) / 2
        binade = max(k for k in range(3) if k == 0 or 2**k <= border)
        steps = border * (factor - 1) / Fraction(2**binade, 1 << 10)
        assert steps.denominator == 2
        parities.append(int(steps))
    assert parities == [0, 1, 2, 3, 2, 3, 2]  # as the comment states
    assert [n % 2 for n in parities] == [code % 2 for code in range(7)]  # even: the tie goes down, to the even code


# --- step 4: the packing ---------------------------------------------------------------------------------------------


def selected(mask: int, a: z3.BitVecRef, b: z3.BitVecRef) -> z3.BitVecRef:
    return (a & mask) | (b & ~bits(mask))


def nibbles(word: z3.BitVecRef, what: str) -> z3.BitVecRef:
    """Model ``nibbles_of_halves`` or ``nibbles_of_bytes``, with the masks of the header."""
    found = re.search(
        rf"{what}\(unsigned int (\w+)\) {{\s*return select\((0x\w+)u, \1, \1 \* 8u \+ (0x\w+)u\);", DEVICE
    )
    assert found, what
    return selected(int(found[2], 16), word, word * 8 + int(found[3], 16))


def upper_bytes(a: z3.BitVecRef, b: z3.BitVecRef) -> z3.BitVecRef:
    """``__byte_perm(a, b, 0x7531)``."""
    return z3.Concat(z3.Extract(31, 24, b), z3.Extract(15, 8, b), z3.Extract(31, 24, a), z3.Extract(15, 8, a))


HALVES = [z3.BitVec(f"half{i}", 16) for i in range(8)]
CAPPED = z3.And(*(z3.ULE(half & 0x7FFF, bits(CAP, 16)) for half in HALVES))


def pair(low: int, high: int) -> z3.BitVecRef:
    return z3.Concat(HALVES[high], HALVES[low])


def in_order(*values: int) -> z3.BitVecRef:
    word = bits(0)
    for place, value in enumerate(values):
        word |= finished(HALVES[value]) << 4 * place
    return word


def test_one_value_ends_in_the_low_nibble_and_nothing_stands_above_it() -> None:
    word = z3.Concat(HALVES[0], bits(0, 16))
    assert counterexample(z3.Implies(CAPPED, z3.LShR(nibbles(word, "nibbles_of_halves"), 28) == in_order(0))) is None


def test_two_values_are_packed_in_order() -> None:
    n = nibbles(pair(0, 1), "nibbles_of_halves")
    packed = selected(0x0F, z3.LShR(n, 12), z3.LShR(n, 24))
    assert counterexample(z3.Implies(CAPPED, packed == in_order(0, 1))) is None


def test_four_values_are_packed_in_order() -> None:
    n = nibbles(upper_bytes(pair(0, 2), pair(1, 3)), "nibbles_of_bytes")
    packed = selected(0x0F0F, z3.LShR(n, 4), z3.LShR(n, 16))
    assert counterexample(z3.Implies(CAPPED, packed == in_order(0, 1, 2, 3))) is None


def test_eight_values_are_packed_in_order() -> None:
    even = nibbles(upper_bytes(pair(0, 2), pair(4, 6)), "nibbles_of_bytes")
    odd = nibbles(upper_bytes(pair(1, 3), pair(5, 7)), "nibbles_of_bytes")
    packed = selected(0x0F0F0F0F, z3.LShR(even, 4), odd)
    assert counterexample(z3.Implies(CAPPED, packed == in_order(*range(8)))) is None


def test_rounding_the_lower_bytes_of_halves_too_would_be_wrong() -> None:
    # The two functions are not one: the lower byte of a half would carry into its code.
    n = nibbles(pair(0, 1), "nibbles_of_bytes")
    packed = selected(0x0F, z3.LShR(n, 12), z3.LShR(n, 24))
    assert counterexample(z3.Implies(CAPPED, packed == in_order(0, 1))) is not None
