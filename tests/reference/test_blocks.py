"""NVFP4 and MXFP4: what a block loses, what it never loses, and how one becomes the other."""

import math

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from fp4patch.reference.blocks import dequantize, peaks, quantize_mxfp4, quantize_nvfp4
from fp4patch.reference.layout import unpack

ROWS = st.tuples(st.integers(1, 3), st.integers(1, 3).map(lambda n: n * 32))
NUMBERS = st.floats(-1e6, 1e6, width=32, allow_subnormal=False)
TENSORS = arrays.arrays(np.float32, ROWS, elements=NUMBERS)


@given(TENSORS)
def test_nvfp4_is_never_further_off_than_half_a_step_of_its_block(x: np.ndarray) -> None:
    quantized = quantize_nvfp4(x)
    step = (quantized.block_scales * quantized.tensor_scale).repeat(16, axis=-1)
    error = np.abs(dequantize(quantized) - x)
    # Half of E2M1's widest step is 1; E4M3 rounds the scale by 1/16 at most, so that 6 may saturate by as much, and
    # scales below 2^-6 by half of its smallest step, 2^-10, of the tensor's scale.
    assert np.all(error <= step + 6 / 16 * step + 6 * 2.0**-10 * quantized.tensor_scale * 1.001)


def test_the_steps_of_nvfp4_are_those_of_ml_dtypes() -> None:
    x = np.random.default_rng(1).standard_normal((64, 128)).astype(np.float32)
    quantized = quantize_nvfp4(x, 0.01)
    peak = np.abs(x.reshape(64, 8, 16)).max(-1)
    scales = (peak / np.float32(6) / np.float32(0.01)).astype(ml_dtypes.float8_e4m3fn)
    assert np.array_equal(quantized.scales, scales.view(np.uint8))
    quotients = x.reshape(64, 8, 16) / (scales.astype(np.float32) * np.float32(0.01))[..., None]
    codes = np.clip(quotients, -6, 6).astype(ml_dtypes.float4_e2m1fn).view(np.uint8)
    assert np.array_equal(unpack(quantized.packed), codes.reshape(64, 128))


def test_zeros_stay_zeros_and_a_block_too_small_for_its_scale_becomes_them() -> None:
    assert not dequantize(quantize_nvfp4(np.zeros((1, 16), dtype=np.float32))).any()
    x = np.concatenate([np.full((1, 16), 1e-9), np.full((1, 16), 1.0)], axis=-1)
    assert unpack(quantize_nvfp4(x).packed).tolist() == [[0] * 16 + [7] * 16]


def test_an_infinity_needs_a_tensor_scale_and_a_nan_becomes_six() -> None:
    x = np.ones((1, 16), dtype=np.float32)
    x[0, 3] = np.inf
    with pytest.raises(ValueError, match="tensor_scale"):
        quantize_nvfp4(x)
    assert unpack(quantize_nvfp4(x, 1.0).packed)[0].tolist() == [0, 0, 0, 7] + [0] * 12
    x[0, 3] = np.nan
    assert unpack(quantize_nvfp4(x, 1.0).packed)[0].tolist() == [7] * 16


def test_a_signalling_nan_does_not_count_for_the_maximum_either() -> None:
    bits = np.random.default_rng(5).integers(0, 1 << 32, (4096, 16), dtype=np.uint32)
    x = bits.view(np.float32)
    with np.errstate(invalid="ignore"):
        by_hand = [max((abs(v) for v in row if not math.isnan(v)), default=0.0) for row in x.tolist()]
    assert np.array_equal(peaks(x), np.array(by_hand, dtype=np.float32))


def test_the_last_axis_must_hold_whole_blocks() -> None:
    with pytest.raises(ValueError, match="multiple of 16"):
        quantize_nvfp4(np.zeros((2, 24), dtype=np.float32))
    with pytest.raises(ValueError, match="multiple of 32"):
        quantize_mxfp4(np.zeros((2, 48), dtype=np.float32))


@given(TENSORS)
def test_mxfp4_with_ceil_saturates_nothing(x: np.ndarray) -> None:
    quantized = quantize_mxfp4(x, scale="ceil")
    step = quantized.block_scales.repeat(32, axis=-1)
    assert np.all(np.abs(dequantize(quantized) - x) <= step)


def test_mxfp4_takes_the_power_that_the_standard_says() -> None:
    x = np.zeros((1, 32), dtype=np.float32)
    x[0, 0] = 7.9  # floor(log2 7.9) - 2 = 0: 7.9 saturates at 6
    quantized = quantize_mxfp4(x)
    assert (quantized.scales.tolist(), unpack(quantized.packed)[0, 0]) == ([[127]], 7)
    assert quantize_mxfp4(x, scale="ceil").scales.tolist() == [[128]]
