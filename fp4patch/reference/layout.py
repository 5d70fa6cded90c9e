"""Memory layout of codes and scales: two codes per byte, and scales in tiles of 128 rows by 4 columns."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

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
    tile = row // _ROWS * _tiles(columns, _COLUMNS) + k // _COLUMNS
    return tile * _TILE + row % 32 * 16 + row % _ROWS // 32 * 4 + k % _COLUMNS


def swizzle_scales(scales: Codes) -> Codes:
    """Return scales of ``(rows, columns)`` in the order that ``mma`` and cuBLAS read, zero-padded to whole tiles."""
    rows, columns = scales.shape
    tall, wide = _tiles(rows, _ROWS), _tiles(columns, _COLUMNS)
    padded = np.zeros((tall * _ROWS, wide * _COLUMNS), dtype=np.uint8)
    padded[:rows, :columns] = scales
    return padded.reshape(tall, 4, 32, wide, _COLUMNS).transpose(0, 3, 2, 1, 4).reshape(-1)


def unswizzle_scales(swizzled: Codes, rows: int, columns: int) -> NDArray[np.uint8]:
    """Undo ``swizzle_scales`` and remove the padding: ``(rows, columns)``. ValueError if the size does not match."""
    tall, wide = _tiles(rows, _ROWS), _tiles(columns, _COLUMNS)
    flat = np.asarray(swizzled, dtype=np.uint8).reshape(-1)
    if flat.size != tall * wide * _TILE:
        raise ValueError(
            f"{rows} x {columns} scales take {tall * wide * _TILE} bytes with their padding, not {flat.size}"
        )
    tiles = flat.reshape(tall, wide, 32, 4, _COLUMNS).transpose(0, 3, 2, 1, 4)
    return tiles.reshape(tall * _ROWS, wide * _COLUMNS)[:rows, :columns]


def _tiles(extent: int, size: int) -> int:
    return -(-extent // size)
