"""Nibbles and scale tiles: both ways, and against the offset formula written out."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fp4patch.reference.layout import pack, scale_offset, swizzle_scales, unpack, unswizzle_scales

SHAPES = st.tuples(st.integers(1, 300), st.integers(1, 20))


def test_the_first_of_two_values_is_in_the_low_nibble() -> None:
    assert pack(np.array([[1, 2, 3, 4]], dtype=np.uint8)).tolist() == [[0x21, 0x43]]
    assert unpack(np.array([[0x21, 0x43]], dtype=np.uint8)).tolist() == [[1, 2, 3, 4]]
    with pytest.raises(ValueError, match="whole bytes"):
        pack(np.zeros(3, dtype=np.uint8))


@given(SHAPES)
def test_every_scale_lies_where_the_formula_says(shape: tuple[int, int]) -> None:
    rows, columns = shape
    scales = (np.arange(rows * columns) % 255 + 1).astype(np.uint8).reshape(shape)
    flat = swizzle_scales(scales)
    row, k = np.indices(shape)
    tiles = -(-columns // 4)
    by_hand = row // 128 * tiles * 512 + k // 4 * 512 + row % 128 % 32 * 16 + row % 128 // 32 * 4 + k % 4
    assert np.array_equal(scale_offset(row, k, columns), by_hand)
    assert np.array_equal(flat[by_hand], scales)
    assert np.count_nonzero(flat) == scales.size, "the padding is zeros"
    assert np.array_equal(unswizzle_scales(flat, rows, columns), scales)


def test_a_size_that_is_not_that_of_the_tiles_is_an_error() -> None:
    with pytest.raises(ValueError, match="1024 bytes"):
        unswizzle_scales(np.zeros(512, dtype=np.uint8), 129, 4)
