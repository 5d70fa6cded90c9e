"""Stochastic rounding against exact fractions and its moments; TransformerEngine's scales, squares and transform."""

from fractions import Fraction
from itertools import pairwise

import ml_dtypes
import numpy as np
import pytest

from fp4patch.proof.specification import MAGNITUDES
from fp4patch.reference.blocks import dequantize, quantize_nvfp4
from fp4patch.reference.formats import E2M1_VALUES, e2m1_decode, e2m1_encode_stochastic, random_bytes
from fp4patch.reference.layout import unpack
from fp4patch.reference.transformer_engine import hadamard_transform, quantize_as_transformer_engine

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


# --- scales ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sixth", ["divided", "multiplied"])
def test_a_matrix_with_a_scale_for_each_sixteen_is_nvfp4(sixth: str) -> None:
    x = np.random.default_rng(0).normal(size=(32, 64)).astype(np.float32)
    mine, plain = quantize_as_transformer_engine(x, sixth=sixth), quantize_nvfp4(x)  # type: ignore[arg-type]
    assert np.mean(mine.scales == plain.scales) > 0.99  # the order of operations may differ in a last place
    assert np.abs(dequantize(mine) - x).max() <= np.abs(dequantize(plain) - x).max() * 1.05


def test_squares_share_a_scale_and_quantize_the_transpose_alike() -> None:
    x = np.random.default_rng(1).normal(size=(48, 32)).astype(np.float32)
    across, down = quantize_as_transformer_engine(x, squares=True), quantize_as_transformer_engine(x.T, squares=True)
    assert (across.scales.reshape(3, 16, 2) == across.scales.reshape(3, 16, 2)[:, :1]).all()
    assert np.array_equal(unpack(across.packed), unpack(down.packed).T)
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
