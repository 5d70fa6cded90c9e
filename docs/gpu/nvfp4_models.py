"""NVFP4 in NumPy as the kernels of TransformerEngine compute it: what they give on a GPU is compared with it.

The formats are those of ``fp4patch.reference``; blocks are 16 values of a row, each with an E4M3 scale.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from fp4patch.reference.formats import (
    E2M1_VALUES,
    E4M3_MAX,
    Codes,
    Floats,
    bfloat16,
    e2m1_encode,
    e2m1_encode_stochastic,
    e4m3_decode,
    e4m3_encode,
    pack,
)
from fp4patch.reference.quantize import BLOCK, peaks

_SIGNS = np.array([1, 1, 1, -1, 1, -1, -1, -1, -1, -1, -1, 1, -1, 1, -1, -1], dtype=np.float64)
"""``get_wgrad_sign_vector`` of ``pytorch/tensor/nvfp4_tensor.py``: the recipe's random signs are constants."""
_LARGEST = np.finfo(np.float32).max


@dataclass(frozen=True)
class Quantized:
    """A matrix of ``(rows, K)`` values in four bits each. A value is E2M1 x block scale x tensor scale."""

    packed: Codes
    """Codes in ``(rows, K / 2)`` bytes, the first of two values in the low nibble."""
    scales: Codes
    """E4M3 scales of the blocks, ``(rows, K / 16)``."""
    tensor_scale: float


def quantize_as_transformer_engine(
    x: Floats,
    *,
    random: NDArray[np.uint8] | None = None,
    squares: bool = False,
    sixth: Literal["divided", "multiplied"] = "multiplied",
) -> Quantized:
    """NVFP4 of a matrix ``(rows, K)`` along its rows, every step in float32 and in TransformerEngine's order.

    The tensor's encode scale is 448 * 6 / max|x|. A block's scale is its maximum times that, divided by 6, rounded to
    E4M3: ``divided`` before 2.14 (max / 6 * scale), ``multiplied`` from then on (max * (scale * 1/6)). Its values are
    multiplied by ``1 / (scale * 1 / encode scale)``, at most the largest float32. ``squares``: 16 x 16 values share a
    scale (the recipe's weights); else 16 of a row. ``random``: a byte for each value, stochastic rounding (its
    gradients). For the transpose, pass the transposed matrix. ValueError where the shape is no multiple of 16.

    Divisions are IEEE's: a build with -use_fast_math may differ from this by 1 ulp.
    """
    values = np.asarray(x).astype(np.float32)
    if values.ndim != 2 or values.shape[1] % BLOCK or (squares and values.shape[0] % BLOCK):
        raise ValueError(f"a matrix of blocks of {BLOCK}, and the shape is {values.shape}")
    six = E2M1_VALUES[-1]
    blocks = values.reshape(len(values), -1, BLOCK)
    peak = peaks(blocks)
    if squares:
        tall = peak.reshape(-1, BLOCK, peak.shape[1]).max(axis=1)
        peak = np.repeat(tall, BLOCK, axis=0)
    with np.errstate(all="ignore"):
        whole = np.float32(E4M3_MAX) * six / np.float32(peak.max(initial=0))
        encode = np.float32(1) if whole in (0, np.inf) else np.float32(whole)
        if peak.max(initial=0) > 0 and whole == np.inf:
            encode = _LARGEST
        wanted = peak / six * encode if sixth == "divided" else peak * (encode * (np.float32(1) / six))
        scales = e4m3_encode(np.minimum(wanted, _LARGEST))
        factors = np.minimum(np.float32(1) / (e4m3_decode(scales) * (np.float32(1) / encode)), _LARGEST)
        scaled = (blocks * factors[..., None]).reshape(values.shape)
    codes: Codes = e2m1_encode(scaled) if random is None else e2m1_encode_stochastic(scaled, random)
    return Quantized(pack(codes), scales, float(np.float32(1) / encode))


def hadamard_transform(x: Floats, *, signs: bool = True) -> NDArray[np.float32]:
    """Each 16 values of the last axis times TransformerEngine's 16 x 16 matrix: ``diag(signs) @ H / 4``, H Sylvester's.

    Orthogonal; its entries are 1/4 and -1/4. ``signs``: the recipe's; without them H alone. The sum is exact to
    float64 and then rounded to bfloat16, which is what a tensor core's float32 sum gives but for the rare sums
    within its own error of a tie. ValueError where the last axis is no multiple of 16.
    """
    values = np.asarray(x).astype(np.float64)
    if values.ndim == 0 or values.shape[-1] % BLOCK:
        raise ValueError(f"the last axis must be a multiple of {BLOCK}, and the shape is {values.shape}")
    matrix = np.ones((1, 1))
    while len(matrix) < BLOCK:
        matrix = np.block([[matrix, matrix], [matrix, -matrix]])
    if signs:
        matrix = _SIGNS[:, None] * matrix
    sums = (values.reshape(-1, BLOCK) @ matrix / 4).reshape(values.shape)
    return bfloat16(sums.astype(np.float32))
