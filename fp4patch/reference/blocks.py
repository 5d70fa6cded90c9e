"""Quantize to NVFP4 and MXFP4, and back: blocks along the last axis, each with a scale."""

from dataclasses import dataclass
from typing import Literal

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
    ue8m0_decode,
    ue8m0_encode,
)
from fp4patch.reference.layout import pack, unpack

NVFP4_BLOCK: Literal[16] = 16
MXFP4_BLOCK: Literal[32] = 32
_E2M1_MAX = np.float32(E2M1_VALUES[-1])


@dataclass(frozen=True)
class Quantized:
    """A tensor of ``(..., K)`` values in four bits each. A value is E2M1 x block scale x tensor scale."""

    packed: Codes
    """Codes in ``(..., K / 2)`` bytes, the first of two values in the low nibble."""
    scales: Codes
    """Block scales ``(..., K / block)``: E4M3 for NVFP4, UE8M0 for MXFP4."""
    block: Literal[16, 32]
    """16 is NVFP4, 32 is MXFP4."""
    tensor_scale: float = 1.0
    """NVFP4's second scale, a float32; MXFP4 has none."""

    @property
    def block_scales(self) -> NDArray[np.float32]:
        """The value of each block's scale, without the tensor's."""
        return e4m3_decode(self.scales) if self.block == NVFP4_BLOCK else ue8m0_decode(self.scales)


def quantize_nvfp4(x: Floats, tensor_scale: float | None = None) -> Quantized:
    """Quantize to NVFP4: blocks of 16 with E4M3 scales, and one float32 scale per tensor; every step in float32."""
    blocks = _blocks(x, NVFP4_BLOCK)
    peak = peaks(blocks)
    if tensor_scale is None:
        tensor_scale = float(np.float32(peak.max(initial=0)) / np.float32(E4M3_MAX * _E2M1_MAX)) or 1.0
        if not np.isfinite(tensor_scale):
            raise ValueError("the tensor holds infinities: name a tensor_scale")
    whole = np.float32(tensor_scale)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        scales = e4m3_encode(peak / _E2M1_MAX / whole)
        codes = _divided(blocks, e4m3_decode(scales) * whole)
    return Quantized(pack(codes.reshape(np.shape(x))), scales, NVFP4_BLOCK, float(whole))


def quantize_mxfp4(x: Floats, *, scale: Literal["floor", "ceil"] = "floor") -> Quantized:
    """Quantize to MXFP4: blocks of 32 with a power of two each.

    ``floor``: 2^(floor(log2 max|x|) - 2), as in OCP MX 1.0 (6.3); values up to a quarter beyond 6 saturate. ``ceil``:
    the smallest power that lets nothing saturate, max|x| / 6 rounded up, as ``cvt.rp`` gives it.
    """
    blocks = _blocks(x, MXFP4_BLOCK)
    peak = peaks(blocks).astype(np.float64)
    scales = ue8m0_encode(peak / 4, rounding="down") if scale == "floor" else ue8m0_encode(peak / 6)
    with np.errstate(invalid="ignore"):
        codes = _divided(blocks, ue8m0_decode(scales))
    return Quantized(pack(codes.reshape(np.shape(x))), scales, MXFP4_BLOCK)


def dequantize(quantized: Quantized) -> NDArray[np.float32]:
    """Return the values, ``(..., K)``: E2M1 x block scale x tensor scale, in this order, each product in float32."""
    codes = unpack(quantized.packed)
    blocks = e2m1_decode(codes).reshape(*quantized.scales.shape, quantized.block)
    values = blocks * quantized.block_scales[..., None] * np.float32(quantized.tensor_scale)
    return values.reshape(codes.shape)


def peaks(blocks: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the largest magnitude of each block, ignoring NaN; 0 if a block has only NaN."""
    found: NDArray[np.float32] = np.where(np.isnan(blocks), np.float32(0), np.abs(blocks)).max(axis=-1)
    return found


def _blocks(x: Floats, size: int) -> NDArray[np.float32]:
    x = np.asarray(x)
    if x.ndim == 0 or x.shape[-1] % size:
        raise ValueError(f"the last axis must be a multiple of {size}, and the shape is {x.shape}")
    return x.astype(np.float32).reshape(*x.shape[:-1], -1, size)


def _divided(blocks: NDArray[np.float32], scales: NDArray[np.float32]) -> Codes:
    """Return the codes of each block's values divided by its scale; zeros if the scale is zero."""
    usable = scales != 0
    quotients = blocks / np.where(usable, scales, np.float32(1))[..., None]
    return np.where(usable[..., None], e2m1_encode(quotients), np.uint8(0))
