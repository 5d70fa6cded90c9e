"""Nibbles, both ways, and the places of scales against the offset formula written out."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fp4patch.reference.layout import pack, scale_offset, unpack

SHAPES = st.tuples(st.integers(1, 300), st.integers(1, 20))


def test_the_first_of_two_values_is_in_the_low_nibble() -> None:
    assert pack(np.array([[1, 2, 3, 4]], dtype=np.uint8)).tolist() == [[0x21, 0x43]]
    assert unpack(np.array([[0x21, 0x43]], dtype=np.uint8)).tolist() == [[1, 2, 3, 4]]
    with pytest.raises(ValueError, match="whole bytes"):
        pack(np.zeros(3, dtype=np.uint8))


@given(SHAPES)
def test_every_scale_lies_where_the_formula_says(shape: tuple[int, int]) -> None:
    _, columns = shape
    row, k = np.indices(shape)
    tiles = -(-columns // 4)
    by_hand = row // 128 * tiles * 512 + k // 4 * 512 + row % 128 % 32 * 16 + row % 128 // 32 * 4 + k % 4
    assert np.array_equal(scale_offset(row, k, columns), by_hand)
    assert len(np.unique(by_hand)) == by_hand.size
