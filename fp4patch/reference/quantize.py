"""NVFP4 in NumPy as vLLM's kernels compute it: blocks are 16 values of a row, each with an E4M3 scale."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fp4patch.reference.formats import Codes, Floats, e2m1_encode, e4m3_decode, e4m3_encode, pack

BLOCK = 16
Reciprocal = Callable[[NDArray[np.float32]], NDArray[np.float32]]
"""Function like ``rcp.approx.ftz.f32`` on each element: within 1 ulp, in a direction that only hardware shows."""


def peaks(blocks: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the largest magnitude of each block, ignoring NaN; 0 if a block has only NaN."""
    found: NDArray[np.float32] = np.where(np.isnan(blocks), np.float32(0), np.abs(blocks)).max(axis=-1)
    return found


def quantize(x: Floats, global_scale: Any, reciprocal: Reciprocal) -> tuple[Codes, Codes]:
    """Return packed codes ``(rows, K / 2)`` and E4M3 scales ``(rows, K / 16)`` of half or bfloat16 ``(rows, K)``.

    vLLM's ``cvt_warp_fp16_to_fp4``: the maximum of 16, times an approximate 1/6, times ``global_scale`` (a float32, or
    one for each row: 448 * 6 / max|x|), rounded to E4M3; then each value times the approximate reciprocal of what that
    became. A block whose scale is zero is all zeros. NaN does not count for the maximum, unless there is nothing else.
    """
    whole = np.broadcast_to(np.asarray(global_scale, dtype=np.float32).reshape(-1, 1), (len(x), 1))
    blocks = np.asarray(x).astype(np.float32).reshape(len(x), -1, BLOCK)
    alone = np.isnan(blocks).all(axis=-1)
    peak = np.where(alone, np.uint32(0x7FFF0000).view(np.float32), peaks(blocks)).astype(np.float32)
    with np.errstate(all="ignore"):
        scales = e4m3_encode(whole * (peak * reciprocal(np.array([6], dtype=np.float32))))
        values = e4m3_decode(scales)
        factors = np.where(values != 0, reciprocal(values * reciprocal(whole)), np.float32(0))
        return pack(e2m1_encode(blocks * factors[..., None]).reshape(x.shape)), scales
