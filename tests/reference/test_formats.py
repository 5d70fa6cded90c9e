"""E2M1 and E4M3 against ml_dtypes, over all 16-bit inputs, and at every boundary of 32-bit inputs."""

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

from fp4patch.proof.specification import specification
from fp4patch.reference.formats import (
    E2M1_VALUES,
    e2m1_decode,
    e2m1_encode,
    e4m3_decode,
    e4m3_encode,
    pack,
)

EVERY_CODE = np.arange(256, dtype=np.uint8)


def every_half(dtype: type) -> NDArray[np.generic]:
    return np.arange(1 << 16, dtype=np.uint16).view(dtype)


def without_nan(x: NDArray[np.generic]) -> NDArray[np.generic]:
    return x[~np.isnan(x.astype(np.float32))]


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_e2m1_agrees_with_ml_dtypes_on_every_half(dtype: type) -> None:
    x = without_nan(every_half(dtype))
    expected = x.astype(np.float32).astype(ml_dtypes.float4_e2m1fn).view(np.uint8)
    assert np.array_equal(e2m1_encode(x), expected)


def test_e2m1_agrees_with_the_specification_at_both_ends_of_every_interval() -> None:
    ends = [(bits, i.code) for i in specification() for bits in (i.first, i.last)]
    bits, codes = (np.array(column, dtype=np.uint32) for column in zip(*ends, strict=True))
    assert np.array_equal(e2m1_encode(bits.view(np.float32)), codes)


def test_a_double_is_rounded_once() -> None:
    just_above = np.nextafter(0.25, 1, dtype=np.float64)
    assert np.float32(just_above) == 0.25
    assert e2m1_encode(np.array([0.25, just_above])).tolist() == [0, 1]


def test_e2m1_codes_come_back() -> None:
    codes = np.arange(16, dtype=np.uint8)
    assert np.array_equal(e2m1_encode(e2m1_decode(codes)), codes)
    assert np.array_equal(e2m1_decode(codes[:8]), E2M1_VALUES)
    with pytest.raises(ValueError, match="four bits"):
        e2m1_decode(np.array([16], dtype=np.uint8))


def test_e4m3_agrees_with_ml_dtypes_on_every_bfloat16_and_at_every_border() -> None:
    values = e4m3_decode(EVERY_CODE[:127])
    borders = ((values[1:] + values[:-1]) / 2).astype(np.float32)
    near = np.concatenate([np.nextafter(borders, np.float32(0)), borders, np.nextafter(borders, np.float32(1e9))])
    x = np.concatenate([without_nan(every_half(ml_dtypes.bfloat16)).astype(np.float32), near, -near])
    expected = np.clip(x, -448, 448).astype(ml_dtypes.float8_e4m3fn).view(np.uint8)
    assert np.array_equal(e4m3_encode(x), expected)


def test_e4m3_decodes_as_ml_dtypes_does() -> None:
    expected = EVERY_CODE.view(ml_dtypes.float8_e4m3fn).astype(np.float32)
    assert np.array_equal(e4m3_decode(EVERY_CODE), expected, equal_nan=True)
    assert e4m3_encode(np.array([np.nan, -np.nan], dtype=np.float32)).tolist() == [0x7F, 0x7F]


def test_the_first_of_two_values_is_in_the_low_nibble() -> None:
    assert pack(np.array([[1, 2, 3, 4]], dtype=np.uint8)).tolist() == [[0x21, 0x43]]
    with pytest.raises(ValueError, match="whole bytes"):
        pack(np.zeros(3, dtype=np.uint8))
