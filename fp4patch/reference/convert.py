"""MXFP4 to NVFP4: keep the codes and fold the scales if that is exact, or quantize anew; and the error of both."""

import math

import numpy as np
from numpy.typing import NDArray

from fp4patch.reference.blocks import NVFP4_BLOCK, Quantized, dequantize, quantize_nvfp4
from fp4patch.reference.formats import e2m1_decode, e2m1_encode, e4m3_encode
from fp4patch.reference.layout import pack, unpack

_LARGEST, _SMALLEST = 8, -9  # 2^8 is the largest power of two in E4M3, 2^-9 the smallest, a denormal


def fold_mxfp4(quantized: Quantized) -> Quantized:
    """Return the same values as NVFP4: each block of 32 becomes two of 16, and its power of two an E4M3 scale.

    The tensor's scale, a power of two too, puts the largest block at 2^8. So it is exact, code by code, as long as the
    powers of the blocks with any nonzero value span at most 2^17; in blocks below, values are rounded to the steps of
    the smallest scale. A block whose scale is NaN keeps it.
    """
    codes = unpack(quantized.packed)
    blocks = codes.reshape(*quantized.scales.shape, quantized.block)
    lost = np.isnan(quantized.block_scales)
    holds = ((blocks & 7) != 0).any(axis=-1) & ~lost
    power = quantized.scales.astype(np.int32) - 127
    whole = max(int(power.max(where=holds, initial=-126)) - _LARGEST, -126)
    wanted = np.minimum(power - whole, _LARGEST)  # only blocks of zeros are above it
    kept = np.maximum(wanted, _SMALLEST)
    shifted = e2m1_encode(np.ldexp(e2m1_decode(blocks), np.maximum(wanted - kept, -64)[..., None]))
    blocks = np.where((wanted == kept)[..., None], blocks, shifted)
    scales = np.where(lost, np.nan, np.where(holds, np.ldexp(np.float32(1), kept), 0))
    halves = np.repeat(e4m3_encode(scales), quantized.block // NVFP4_BLOCK, axis=-1)
    return Quantized(pack(blocks.reshape(codes.shape)), halves, NVFP4_BLOCK, math.ldexp(1.0, whole))


def requantize_mxfp4(quantized: Quantized) -> Quantized:
    """Quantize the values of an MXFP4 tensor anew to NVFP4: other codes, scales that are no powers of two."""
    return quantize_nvfp4(dequantize(quantized))


def relative_error(of: NDArray[np.float32], to: NDArray[np.float32]) -> float:
    """Return the relative L2 error with respect to ``to``; 0 if both are zeros."""
    difference, size = (float(np.linalg.norm(np.asarray(a, dtype=np.float64))) for a in (of - to, to))
    return difference / size if size else difference
