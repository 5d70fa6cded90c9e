"""Memory layout of codes and scales: two codes per byte, and scales in tiles of 128 rows by 4 columns."""

from typing import Any

import numpy as np

from fp4patch.reference.formats import Codes

_ROWS, _COLUMNS = 128, 4
_TILE = _ROWS * _COLUMNS  # bytes


def pack(codes: Codes) -> Codes:
    """Pack two codes per byte along the last axis, the first in the low nibble: ``(..., K)`` to ``(..., K / 2)``."""
    codes = np.asarray(codes, dtype=np.uint8)
    if codes.shape[-1] % 2:
        raise ValueError(f"{codes.shape[-1]} codes do not fill whole bytes")
    return codes[..., 0::2] | codes[..., 1::2] << np.uint8(4)


def unpack(packed: Codes) -> Codes:
    """Return the codes of packed bytes: ``(..., K / 2)`` to ``(..., K)``."""
    packed = np.asarray(packed, dtype=np.uint8)
    return np.stack([packed & 15, packed >> 4], axis=-1).reshape(*packed.shape[:-1], -1)


def scale_offset(row: Any, k: Any, columns: int) -> Any:
    """Return the byte offset of the scale of block ``k`` of ``row``, where a row has ``columns`` scales.

    ``k`` and ``row`` are integers or arrays. Tiles of 128 x 4 scales are 512 bytes, those of the same rows follow one
    another; within a tile, rows 0, 32, 64 and 96 are side by side, since one thread of ``mma`` holds four (PTX ISA,
    block scaling; cuBLAS, "1D Block Scaling Factors Layout").
    """
    tile = row // _ROWS * -(-columns // _COLUMNS) + k // _COLUMNS
    return tile * _TILE + row % 32 * 16 + row % _ROWS // 32 * 4 + k % _COLUMNS
