"""Stochastic rounding against exact fractions."""

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from fp4patch.proof.specification import MAGNITUDES
from fp4patch.reference.formats import E2M1_VALUES, e2m1_decode, e2m1_encode_stochastic, random_bytes

BYTES = np.arange(256, dtype=np.uint8)


def by_definition(x: float, r: int) -> int:
    """The code by the grid alone, in exact fractions: floor((|x| + r / 256 * step at x) / step at the sum)."""
    exact = min(abs(Fraction(x)), Fraction(6))

    def step(value: Fraction) -> Fraction:
        return Fraction(1, 2) if value < 2 else Fraction(1) if value < 4 else Fraction(2)

    total = min(exact + Fraction(r, 256) * step(exact), Fraction(6))
    value = total // step(total) * step(total)
    return MAGNITUDES.index(value) | (8 if np.signbit(x) else 0)


def test_it_is_the_definition_at_every_threshold_and_beside_it() -> None:
    for below, above in pairwise(E2M1_VALUES):
        for r in range(256):
            at = np.float32(above - r * (above - below) / 256)
            for x in (at, np.nextafter(at, np.float32(0)), np.nextafter(at, np.float32(9)), -at):
                random = np.array([r], dtype=np.uint8)
                assert e2m1_encode_stochastic(np.array([x]), random)[0] == by_definition(float(x), r), (x, r)


def test_values_on_the_grid_stay_and_what_lies_beyond_saturates() -> None:
    codes = np.arange(16, dtype=np.uint8)
    assert (e2m1_encode_stochastic(e2m1_decode(codes)[:, None], BYTES) == codes[:, None]).all()
    beyond = np.array([6.5, 1e30, np.inf, -7, -np.inf, np.nan, -np.nan], dtype=np.float32)
    assert (e2m1_encode_stochastic(beyond[:, None], BYTES) == np.array([7, 7, 7, 15, 15, 7, 7])[:, None]).all()
    tiny = np.array([1e-45, -1e-45, 0.0, -0.0], dtype=np.float32)
    assert (e2m1_encode_stochastic(tiny[:, None], BYTES) == np.array([0, 8, 0, 8])[:, None]).all()


def test_each_byte_of_a_word_belongs_to_the_value_of_its_lane() -> None:
    words = np.array([[0x33221100, 0x77665544]], dtype=np.uint32)
    assert [f"{one:02x}" for one in random_bytes(words)[0]] == ["00", "22", "11", "33", "44", "66", "55", "77"]


def test_random_bits_that_are_no_bytes_are_refused() -> None:
    with pytest.raises(ValueError, match="a byte"):
        e2m1_encode_stochastic(np.zeros(4), np.zeros(4, dtype=np.uint32))
