"""Quantization as vLLM's, FlashInfer's and CUTLASS's kernels compute it: in the order of their operations."""

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from fp4patch.reference.blocks import NVFP4_BLOCK, peaks
from fp4patch.reference.formats import Codes, Floats, e2m1_encode, e4m3_decode, e4m3_encode
from fp4patch.reference.layout import pack

Reciprocal = Callable[[NDArray[np.float32]], NDArray[np.float32]]
"""Function like ``rcp.approx.ftz.f32`` on each element: within 1 ulp, in a direction that only hardware shows."""


def quantize_as_vllm(
    x: Floats, global_scale: Any, reciprocal: Reciprocal, *, zero: Literal["scale", "maximum"] = "scale"
) -> tuple[Codes, Codes]:
    """Return packed codes ``(rows, K / 2)`` and E4M3 scales ``(rows, K / 16)`` of half or bfloat16 ``(rows, K)``.

    vLLM's ``cvt_warp_fp16_to_fp4``: the maximum of 16, times an approximate 1/6, times ``global_scale`` (a float32, or
    one for each row: 448 * 6 / max|x|), rounded to E4M3; then each value times the approximate reciprocal of what that
    became. A block whose scale is zero is all zeros; with ``zero="maximum"``, as in FlashInfer's function of the same
    name, only one whose values are. NaN does not count for the maximum, unless there is nothing else.
    """
    whole = np.broadcast_to(np.asarray(global_scale, dtype=np.float32).reshape(-1, 1), (len(x), 1))
    blocks, peak = _blocks(x)
    with np.errstate(all="ignore"):
        scales = e4m3_encode(whole * (peak * _sixth(reciprocal)))
        values = e4m3_decode(scales)
        some = (values if zero == "scale" else peak) != 0
        factors = np.where(some, reciprocal(values * reciprocal(whole)), np.float32(0))
        return _packed(blocks * factors[..., None], x), scales


def quantize_to_powers_as_vllm(
    x: Floats, global_scale: float, reciprocal: Reciprocal, *, rounding: Literal["rounded", "truncated"]
) -> tuple[Codes, Codes]:
    """Quantize as ``quantize_as_vllm``, but with scales that are powers of two, one byte each, for blocks of 16.

    ``rounded``, as in 0.33: two binades below the maximum, which counts for the next one from 1.75 on; no global
    scale. ``truncated``, as up to 0.18: the power below the maximum times an approximate 1/6 times ``global_scale``.
    """
    blocks, peak = _blocks(x)
    whole = np.full((1, 1), global_scale, dtype=np.float32)
    with np.errstate(all="ignore"):
        if rounding == "rounded":
            binade = peak.view(np.uint32) + np.uint32(1 << 21) >> np.uint32(23) & np.uint32(255)
            codes = np.maximum(binade, np.uint32(2)) - np.uint32(2)
            values = (codes << np.uint32(23)).view(np.float32)
            factors = np.float32(1) / values
        else:
            codes = (whole * (peak * _sixth(reciprocal))).view(np.uint32) >> np.uint32(23)
            values = (codes << np.uint32(23)).view(np.float32)
            factors = reciprocal(values * reciprocal(whole))
        factors = np.where(values != 0, factors, np.float32(0)).astype(np.float32)
        return _packed(blocks * factors[..., None], x), codes.astype(np.uint8)


def quantize_for_allreduce(x: Floats, global_scale: float) -> tuple[Codes, Codes]:
    """Quantize as ``quantize_as_vllm``, but like FlashInfer's function for all-reduce: by a rounded 1/6, and by the
    quotient of ``global_scale`` and the block's scale."""
    blocks, peak = _blocks(x)
    whole = np.float32(global_scale)
    with np.errstate(all="ignore"):
        scales = e4m3_encode(whole * (peak * (np.float32(1) / np.float32(6))))
        values = e4m3_decode(scales)
        factors = np.where(values != 0, whole / values, np.float32(0))
        return _packed(blocks * factors[..., None], x), scales


def quantize_as_gemv(x: Floats, st: float) -> tuple[Codes, Codes]:
    """Return packed codes and E4M3 scales of float32 ``(rows, K)`` like CUTLASS's GemvEpilogueWithScalingFactor.

    The scale is max|x| of 16 times ``st / 6``; the values are multiplied by its reciprocal times ``st``. Every step is
    rounded as in IEEE 754.
    """
    blocks, peak = _blocks(x)
    whole = np.float32(st)
    with np.errstate(all="ignore"):
        scales = e4m3_encode(peak * (whole / np.float32(6)))
        factors = np.float32(1) / e4m3_decode(scales) * whole
        return _packed(blocks * factors[..., None], x), scales


def quantize_as_minimax(x: Floats, scale: float, reciprocal: Reciprocal) -> tuple[Codes, Codes]:
    """Return packed codes and E4M3 scales of half or bfloat16 ``(rows, K)`` like vLLM's storeNvfp4CacheElems.

    The block's scale is max|x| / 6 / ``scale``, at least 2^-9, and zero has no sign. ``scale`` is the dequantization
    scale. If it is 1, each value times the approximate reciprocal of the block's scale is rounded toward zero;
    otherwise the quotients are those of IEEE 754, of values up to 4096.
    """
    blocks, peak = _blocks(x)
    peak = np.where(np.isnan(peak), np.float32(0), peak)
    factor, sixth = np.float32(1) / np.float32(scale), np.float32(1) / np.float32(6)
    with np.errstate(all="ignore"):
        if factor == 1:
            scales = e4m3_encode(np.maximum(peak * sixth, np.float32(2**-9)))
            values = _toward_zero(blocks, reciprocal(e4m3_decode(scales))[..., None])
        else:
            largest = np.maximum(peak, np.float32(1e-12))
            scales = e4m3_encode(np.maximum(factor * np.minimum(largest / np.float32(6), largest * sixth), 2**-9))
            values = np.clip(blocks * factor, np.float32(-4096), np.float32(4096)) / e4m3_decode(scales)[..., None]
        codes = e2m1_encode(values).reshape(x.shape)
    return pack(np.where(codes == 8, np.uint8(0), codes)), scales


def _toward_zero(x: NDArray[np.float32], y: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the products rounded toward zero. In double precision they are exact."""
    exact = x.astype(np.float64) * y
    nearest = exact.astype(np.float32)
    return np.where(np.abs(nearest.astype(np.float64)) > np.abs(exact), np.nextafter(nearest, np.float32(0)), nearest)


def _blocks(x: Floats) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return ``x`` in blocks of 16, and the largest magnitude of each; NaN if a block has only NaN."""
    rows, columns = x.shape
    blocks = np.asarray(x).astype(np.float32).reshape(rows, columns // NVFP4_BLOCK, NVFP4_BLOCK)
    alone = np.isnan(blocks).all(axis=-1)
    return blocks, np.where(alone, np.uint32(0x7FFF0000).view(np.float32), peaks(blocks)).astype(np.float32)


def _sixth(reciprocal: Reciprocal) -> NDArray[np.float32]:
    return reciprocal(np.array([6], dtype=np.float32))


def _packed(values: NDArray[np.float32], x: Floats) -> Codes:
    return pack(e2m1_encode(values).reshape(x.shape))
