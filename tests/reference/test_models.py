"""The models of TransformerEngine's and vLLM's kernels: scales, squares, the transform; the GPU runs have the rest."""

import hashlib
import json
import math
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from golden_grids import content
from hypothesis import given
from hypothesis import strategies as st
from nvfp4_models import (
    Quantized,
    hadamard_transform,
    quantize_as_transformer_engine,
)

from fp4patch.reference.block_scaled import scale_offset
from fp4patch.reference.formats import e2m1_decode, e4m3_decode
from fp4patch.reference.quantize import peaks, quantize

# --- scales ----------------------------------------------------------------------------------------------------------


def codes_of(quantized: Quantized) -> np.ndarray:
    packed = quantized.packed
    return np.stack([packed & 15, packed >> 4], axis=-1).reshape(*packed.shape[:-1], -1)


def dequantize(quantized: Quantized) -> np.ndarray:
    scales = e4m3_decode(quantized.scales).repeat(16, axis=-1)
    return e2m1_decode(codes_of(quantized)) * scales * np.float32(quantized.tensor_scale)


@pytest.mark.parametrize("sixth", ["divided", "multiplied"])
def test_no_value_is_further_off_than_half_a_step_of_its_block(sixth: str) -> None:
    x = np.random.default_rng(0).normal(size=(32, 64)).astype(np.float32)
    quantized = quantize_as_transformer_engine(x, sixth=sixth)  # type: ignore[arg-type]
    step = e4m3_decode(quantized.scales).repeat(16, axis=-1) * np.float32(quantized.tensor_scale)
    # Half of E2M1's widest step is 1; E4M3 rounds the scale by 1/16 at most, so that 6 may saturate by as much.
    assert np.all(np.abs(dequantize(quantized) - x) <= step * (1 + 6 / 16))


def test_squares_share_a_scale_and_quantize_the_transpose_alike() -> None:
    x = np.random.default_rng(1).normal(size=(48, 32)).astype(np.float32)
    across, down = quantize_as_transformer_engine(x, squares=True), quantize_as_transformer_engine(x.T, squares=True)
    assert (across.scales.reshape(3, 16, 2) == across.scales.reshape(3, 16, 2)[:, :1]).all()
    assert np.array_equal(codes_of(across), codes_of(down).T)
    assert len(np.unique(across.scales)) > 1


def test_stochastic_rounding_of_a_matrix_is_unbiased_where_nearest_is_not() -> None:
    x = np.full((16, 64), 0.3, dtype=np.float32)
    x[:, ::16] = 6.0
    random = np.random.default_rng(2).integers(0, 256, (400, 16, 64)).astype(np.uint8)
    mean = np.mean([dequantize(quantize_as_transformer_engine(x, random=one)) for one in random], axis=0)
    assert abs(mean[:, 1:16].mean() - 0.3) < 0.003
    assert abs(dequantize(quantize_as_transformer_engine(x))[:, 1:16].mean() - 0.3) > 0.15


@pytest.mark.parametrize("value", [0.0, 1e-42, np.inf])
def test_a_tensor_without_a_finite_scale_has_that_of_the_kernels(value: float) -> None:
    quantized = quantize_as_transformer_engine(np.full((16, 16), value, dtype=np.float32))
    expected = float(np.float32(1) / np.finfo(np.float32).max) if value == 1e-42 else 1.0
    assert quantized.tensor_scale == expected


def test_shapes_that_are_no_blocks_are_refused() -> None:
    with pytest.raises(ValueError, match="16"):
        quantize_as_transformer_engine(np.zeros((16, 24)))
    with pytest.raises(ValueError, match="16"):
        quantize_as_transformer_engine(np.zeros((8, 16)), squares=True)
    with pytest.raises(ValueError, match="16"):
        hadamard_transform(np.zeros(8))


def test_a_signalling_nan_does_not_count_for_the_maximum() -> None:
    x = np.random.default_rng(5).integers(0, 1 << 32, (4096, 16), dtype=np.uint32).view(np.float32)
    with np.errstate(invalid="ignore"):
        by_hand = [max((abs(v) for v in row if not math.isnan(v)), default=0.0) for row in x.tolist()]
    assert np.array_equal(peaks(x), np.array(by_hand, dtype=np.float32))


# --- transform -------------------------------------------------------------------------------------------------------


def test_the_transform_is_orthogonal_and_its_signs_come_before_it() -> None:
    identity = np.eye(16)
    with_signs, alone = hadamard_transform(identity), hadamard_transform(identity, signs=False)
    assert np.array_equal(with_signs @ with_signs.T, identity)
    assert np.array_equal(alone @ alone, identity)
    # Row i of the matrix, as transformer_engine/pytorch/tensor/nvfp4_tensor.py writes it out: row 3, with its sign.
    assert (alone[3] * 4).tolist() == [1, -1, -1, 1] * 4
    assert np.array_equal(with_signs[3], -alone[3])


def test_the_sum_is_rounded_to_bfloat16_once() -> None:
    x = np.random.default_rng(3).normal(size=(64, 32)).astype(ml_dtypes.bfloat16)
    out = hadamard_transform(x)
    assert np.array_equal(out, out.astype(ml_dtypes.bfloat16).astype(np.float32))
    exact = x.astype(np.float64).reshape(-1, 16) @ hadamard_transform(np.eye(16)).astype(np.float64)
    assert np.array_equal(out.reshape(-1, 16), exact.astype(np.float32).astype(ml_dtypes.bfloat16).astype(np.float32))


# --- vLLM's order ---


def exact(x: np.ndarray) -> np.ndarray:
    with np.errstate(divide="ignore"):
        return (np.float32(1) / x).astype(np.float32)


def test_where_reciprocals_are_exact_the_steps_are_those_of_ml_dtypes() -> None:
    random = np.random.default_rng(4)
    x = random.uniform(-6, 6, (64, 256)).astype(np.float16)
    x[:, ::16] = 6 * 2.0 ** random.integers(0, 4, (64, 16))  # the block's maximum makes its scale a power of two
    packed, scales = quantize(x, 32.0, exact)
    blocks = x.astype(np.float32).reshape(64, 16, 16)
    expected = (np.abs(blocks).max(axis=-1) / 6 * 32).astype(ml_dtypes.float8_e4m3fn)
    assert np.array_equal(scales, expected.view(np.uint8))
    quotients = np.clip(blocks / (expected.astype(np.float32)[..., None] / 32), -6, 6)
    codes = quotients.astype(ml_dtypes.float4_e2m1fn).view(np.uint8).reshape(64, 256)
    assert np.array_equal(codes_of(Quantized(packed, scales, 1.0)), codes)


def test_a_block_of_zeros_is_zeros_and_one_of_nan_is_nan() -> None:
    x = np.zeros((1, 48), dtype=np.float16)
    x[0, 16:32] = np.nan
    x[0, 32:] = np.inf
    packed, scales = quantize(x, 1.0, exact)
    assert scales.tolist() == [[0, 0x7F, 0x7E]]
    assert packed.tolist() == [[0] * 8 + [0x77] * 16]


def test_a_global_scale_for_each_row() -> None:
    x = np.ones((2, 16), dtype=np.float16)
    both = quantize(x, [1.0, 4.0], exact)
    for row, scale in enumerate((1.0, 4.0)):
        packed, scales = quantize(x[row : row + 1], scale, exact)
        assert np.array_equal(both[0][row : row + 1], packed)
        assert np.array_equal(both[1][row : row + 1], scales)


@pytest.mark.parametrize(("form", "scale"), [("half", 32.0), ("bf16", 0.25)])
def test_it_gives_what_the_gpu_gave(form: str, scale: float) -> None:
    golden = json.loads((Path(__file__).parents[1] / "sass/golden/grids.json").read_text())["grids"]
    job = golden[f"vllm-0.33.0.next3.{form}-block-to-nvfp4"]
    bits = np.frombuffer(content(job["arrays"][0]), dtype=np.uint16).reshape(-1, 16)
    values = bits.view(np.float16) if form == "half" else (bits.astype(np.uint32) << np.uint32(16)).view(np.float32)
    made = quantize(values, scale, exact)
    assert [hashlib.sha256(one.tobytes()).hexdigest() for one in made] == job["written"]


@given(st.tuples(st.integers(1, 300), st.integers(1, 20)))
def test_every_scale_lies_where_the_formula_says(shape: tuple[int, int]) -> None:
    _, columns = shape
    row, k = np.indices(shape)
    tiles = -(-columns // 4)
    by_hand = row // 128 * tiles * 512 + k // 4 * 512 + row % 128 % 32 * 16 + row % 128 // 32 * 4 + k % 4
    assert np.array_equal(scale_offset(row, k, columns), by_hand)
    assert len(np.unique(by_hand)) == by_hand.size
