"""Products of NVFP4 matrices: the layout of the scales, and sums as the tensor cores of SM12x add them.

A product is computed here in integers and exact powers of two, apart from the executor's C (``sass/mma.h``), by the
same published rules: MMA-Sim (Xie et al., arXiv 2511.10909), ``m16n8k64`` with block scales.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fp4patch.reference.formats import E2M1_VALUES, Codes, e2m1_decode, e4m3_decode

BLOCK = 16
"""Values with one scale."""
STEP = 64
"""Values of a row that one instruction multiplies."""
FRACTION = 35
"""Bits of fraction to which the terms are aligned, and cut off."""
_NOTHING = -100_000
"""Exponent of a term that is zero."""


def scale_offset(row: Any, k: Any, columns: int) -> Any:
    """Return the byte offset of the scale of block ``k`` of ``row``, where a row has ``columns`` scales.

    ``k`` and ``row`` are integers or arrays. Tiles of 128 x 4 scales are 512 bytes, those of the same rows follow one
    another; within a tile, rows 0, 32, 64 and 96 are side by side, since one thread of ``mma`` holds four (PTX ISA,
    block scaling; cuBLAS, "1D Block Scaling Factors Layout").
    """
    tile = row // 128 * -(-columns // 4) + k // 4
    return tile * 512 + row % 32 * 16 + row % 128 // 32 * 4 + k % 4


def swizzled(scales: Codes) -> Codes:
    """Return scales ``(rows, K / 16)`` in the order of ``scale_offset``, with zeros to whole tiles."""
    rows, columns = scales.shape
    found = np.zeros(-(-rows // 128) * -(-columns // 4) * 512, dtype=np.uint8)
    row, k = np.indices(scales.shape)
    found[scale_offset(row, k, columns)] = scales
    return found


def exact_product(a: Codes, a_scales: Codes, b: Codes, b_scales: Codes) -> NDArray[np.float64]:
    """Return A times B transposed, of codes ``(rows, K)`` and E4M3 scales ``(rows, K / 16)``, without rounding."""
    one, other = (
        e2m1_decode(codes).astype(np.float64) * np.repeat(e4m3_decode(scales).astype(np.float64), BLOCK, axis=1)
        for codes, scales in ((a, a_scales), (b, b_scales))
    )
    found: NDArray[np.float64] = one @ other.T
    return found


def product(a: Codes, a_scales: Codes, b: Codes, b_scales: Codes) -> NDArray[np.float32]:
    """Return the same as tensor cores of SM12x add it: 64 values of a row after the other, each step cut off.

    Scales are UE4M3, of which the sign does not count. A row whose length is no multiple of 64 ends in zeros.
    """
    rest = -a.shape[1] % STEP
    a, b = (np.pad(codes, ((0, 0), (0, rest))) for codes in (a, b))
    a_scales, b_scales = (np.pad(scales, ((0, 0), (0, rest // BLOCK))) for scales in (a_scales, b_scales))
    total = np.zeros((len(a), len(b)), dtype=np.float32)
    for first in range(0, a.shape[1], STEP):
        blocks = slice(first // BLOCK, first // BLOCK + STEP // BLOCK)
        values = slice(first, first + STEP)
        total = _step(total, a[:, values], a_scales[:, blocks], b[:, values], b_scales[:, blocks])
    return total


def _step(c: NDArray[np.float32], a: Codes, a_scales: Codes, b: Codes, b_scales: Codes) -> NDArray[np.float32]:
    twice = np.concatenate([E2M1_VALUES * 2, E2M1_VALUES * -2]).astype(np.int64)
    one, other = (twice[codes].reshape(len(codes), -1, BLOCK) for codes in (a, b))
    (sig_a, exp_a), (sig_b, exp_b) = map(_scale, (a_scales, b_scales))
    sums = np.einsum("mgk,ngk->gmn", one, other) * np.einsum("mg,ng->gmn", sig_a, sig_b)  # in units of 2^-8
    exponents = exp_a.T[:, :, None] + exp_b.T[:, None, :]
    fraction, power = np.frexp(c.astype(np.float64))
    addend = np.ldexp(fraction, 24).astype(np.int64)  # 2^(power - 1) times 23 bits of fraction
    terms = np.concatenate([sums << FRACTION - 8, (addend << FRACTION - 23)[None]])
    powers = np.concatenate([exponents, np.maximum(power - 1, -126)[None]])
    # A subnormal accumulator keeps the exponent -126.
    terms[-1] >>= np.maximum(-126 - (power - 1), 0)
    powers = np.where(terms == 0, _NOTHING, powers)
    largest = powers.max(axis=0)
    cut = np.sign(terms) * (np.abs(terms) >> np.minimum(largest - powers, 63))
    return _toward_zero(np.ldexp(cut.sum(axis=0).astype(np.float64), np.maximum(largest, _NOTHING // 2) - FRACTION))


def _scale(codes: Codes) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return significands, in eighths, and exponents of UE4M3."""
    magnitude = codes.astype(np.int64) & 0x7F
    field, fraction = magnitude >> 3, magnitude & 7
    return np.where(field > 0, fraction + 8, fraction), np.maximum(field, 1) - 7


def _toward_zero(x: NDArray[np.float64]) -> NDArray[np.float32]:
    with np.errstate(over="ignore"):
        nearest = x.astype(np.float32)
    beyond = (np.abs(nearest.astype(np.float64)) > np.abs(x)) & (np.abs(x) < 2.0**128)
    return np.where(beyond, np.nextafter(nearest, np.float32(0)), nearest) + np.float32(0)
