"""Nibbles both ways, and the offsets of scales against whole tiles."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fp4patch.reference import pack, scale_offset, unpack

SHAPES = st.tuples(st.integers(1, 300), st.integers(1, 20))


def test_the_first_of_two_values_is_in_the_low_nibble() -> None:
    assert pack(np.array([[1, 2, 3, 4]], dtype=np.uint8)).tolist() == [[0x21, 0x43]]
    assert unpack(np.array([[0x21, 0x43]], dtype=np.uint8)).tolist() == [[1, 2, 3, 4]]
    with pytest.raises(ValueError, match="whole bytes"):
        pack(np.zeros(3, dtype=np.uint8))


@given(SHAPES)
def test_every_scale_lies_where_whole_tiles_put_it(shape: tuple[int, int]) -> None:
    tall, wide = -(-shape[0] // 128), -(-shape[1] // 4)
    places = np.arange(tall * wide * 512).reshape(tall, wide, 32, 4, 4).transpose(0, 3, 2, 1, 4)
    row, k = np.indices(shape)
    assert np.array_equal(scale_offset(row, k, shape[1]), places.reshape(tall * 128, wide * 4)[row, k])
