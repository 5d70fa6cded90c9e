"""Quantize to NVFP4, and back: blocks along the last axis, each with a scale."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fp4patch.reference.formats import (
    E2M1_VALUES,
    E4M3_MAX,
    Codes,
    Floats,
    e2m1_decode,
    e2m1_encode,
    e4m3_decode,
    e4m3_encode,
)
from fp4patch.reference.layout import pack, unpack

NVFP4_BLOCK = 16
_E2M1_MAX = np.float32(E2M1_VALUES[-1])


@dataclass(frozen=True)
class Quantized:
    """A tensor of ``(..., K)`` values in four bits each. A value is E2M1 x block scale x tensor scale."""

    packed: Codes
    """Codes in ``(..., K / 2)`` bytes, the first of two values in the low nibble."""
    scales: Codes
    """Block scales ``(..., K / 16)``: E4M3."""
    tensor_scale: float
    """The second scale, a float32."""

    @property
    def block_scales(self) -> NDArray[np.float32]:
        """The value of each block's scale, without the tensor's."""
        return e4m3_decode(self.scales)


def quantize_nvfp4(x: Floats, tensor_scale: float | None = None) -> Quantized:
    """Quantize to NVFP4: blocks of 16 with E4M3 scales, and one float32 scale per tensor; every step in float32."""
    blocks = _blocks(x)
    peak = peaks(blocks)
    if tensor_scale is None:
        tensor_scale = float(np.float32(peak.max(initial=0)) / np.float32(E4M3_MAX * _E2M1_MAX)) or 1.0
        if not np.isfinite(tensor_scale):
            raise ValueError("the tensor holds infinities: name a tensor_scale")
    whole = np.float32(tensor_scale)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        scales = e4m3_encode(peak / _E2M1_MAX / whole)
        codes = _divided(blocks, e4m3_decode(scales) * whole)
    return Quantized(pack(codes.reshape(np.shape(x))), scales, float(whole))


def dequantize(quantized: Quantized) -> NDArray[np.float32]:
    """Return the values, ``(..., K)``: E2M1 x block scale x tensor scale, in this order, each product in float32."""
    codes = unpack(quantized.packed)
    blocks = e2m1_decode(codes).reshape(*quantized.scales.shape, NVFP4_BLOCK)
    values = blocks * quantized.block_scales[..., None] * np.float32(quantized.tensor_scale)
    return values.reshape(codes.shape)


def peaks(blocks: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the largest magnitude of each block, ignoring NaN; 0 if a block has only NaN."""
    found: NDArray[np.float32] = np.where(np.isnan(blocks), np.float32(0), np.abs(blocks)).max(axis=-1)
    return found


def _blocks(x: Floats) -> NDArray[np.float32]:
    x = np.asarray(x)
    if x.ndim == 0 or x.shape[-1] % NVFP4_BLOCK:
        raise ValueError(f"the last axis must be a multiple of {NVFP4_BLOCK}, and the shape is {x.shape}")
    return x.astype(np.float32).reshape(*x.shape[:-1], -1, NVFP4_BLOCK)


def _divided(blocks: NDArray[np.float32], scales: NDArray[np.float32]) -> Codes:
    """Return the codes of each block's values divided by its scale; zeros if the scale is zero."""
    usable = scales != 0
    quotients = blocks / np.where(usable, scales, np.float32(1))[..., None]
    return np.where(usable[..., None], e2m1_encode(quotients), np.uint8(0))
