"""The random bytes that each value gets from TransformerEngine's NVFP4 kernels: Philox4x32-10, and who draws when.

A thread has a sequence of its own and takes one word for four values, in the order in which it works. NumPy alone.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fp4patch.reference.formats import random_bytes

Words = NDArray[np.uint32]


def philox(seed: int, offset: int, sequences: int, count: int) -> Words:
    """Return the first ``count`` words of each sequence: ``(sequences, count)``. ``offset`` counts four words."""
    assert count % 4 == 0
    at = offset + np.arange(count // 4, dtype=np.uint64)[None, :]
    which = np.arange(sequences, dtype=np.uint64)[:, None]
    shape = np.broadcast_shapes(at.shape, which.shape)
    low, high = np.uint64(0xFFFFFFFF), np.uint64(32)
    c = [np.broadcast_to(part, shape).copy() for part in (at & low, at >> high, which & low, which >> high)]
    key = [seed & 0xFFFFFFFF, seed >> 32 & 0xFFFFFFFF]
    for _ in range(10):
        p0, p1 = c[0] * np.uint64(0xD2511F53), c[2] * np.uint64(0xCD9E8D57)
        c = [(p1 >> high) ^ c[1] ^ np.uint64(key[0]), p1 & low, (p0 >> high) ^ c[3] ^ np.uint64(key[1]), p0 & low]
        key = [(key[0] + 0x9E3779B9) & 0xFFFFFFFF, (key[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return np.stack(c, axis=-1).astype(np.uint32).reshape(sequences, count)


def tuned(seed: int, offset: int, rows: int, columns: int, *, transpose: bool) -> tuple[Words, Words]:
    """Return the words of ``quantize_transpose_nvfp4_tuned_1D_kernel`` for the matrix and for its transpose.

    128 threads have a chunk of 128 x 128 in four tiles of 64 x 64, across first. In each tile a thread has two blocks
    of 16 of rows 32 apart, halves of which are exchanged for every second half warp, then a block of two columns each.
    """
    t = np.arange(128)
    lane, warp = t % 32, t // 32
    calls = []
    for tile in range(4):
        y, x = tile // 2 * 64, tile % 2 * 64
        for again in range(2):
            for half in range(2):
                first = x + t % 4 * 16 + (half + lane // 16) % 2 * 8
                calls += [(False, y + t // 4 + 32 * again, first + 4 * four) for four in range(2)]
        if transpose:
            for column in range(2):
                first = y + (lane // 2 + warp) % 4 * 16
                calls += [
                    (True, x + lane * 2 + column, first + 8 * half + 4 * four) for half in range(2) for four in range(2)
                ]
    return _placed(calls, 128, seed, offset, rows, columns)


def squares(seed: int, offset: int, rows: int, columns: int, *, identity: bool, transpose: bool) -> tuple[Words, Words]:
    """Return the words of ``quantize_transpose_nvfp4_2D_kernel``.

    128 threads have a chunk of 128 x 128 in four tiles of 32 rows. In each a thread has its column first, two blocks of
    16, then two blocks of rows 16 apart, halves of which are exchanged for every second half warp.
    """
    t = np.arange(128)
    calls = []
    for tile in range(4):
        y = tile * 32
        if transpose:
            calls += [(True, t, y + 16 * block + 4 * four + 0 * t) for block in range(2) for four in range(4)]
        for again in range(2 if identity else 0):
            for half in range(2):
                first = t % 8 * 16 + (half + t % 32 // 16) % 2 * 8
                calls += [(False, y + t // 8 + 16 * again, first + 4 * four) for four in range(2)]
    return _placed(calls, 128, seed, offset, rows, columns)


def any_input(
    seed: int, offset: int, rows: int, columns: int, *, identity: bool, transpose: bool
) -> tuple[Words, Words]:
    """Return the words of ``block_scaled_1d_cast_transpose_kernel``.

    256 threads have a tile of 128 x 128: a thread has four blocks of rows 32 apart, then blocks of two columns each,
    64 apart.
    """
    t = np.arange(256)
    calls = []
    if identity:
        calls += [(False, t // 8 + 32 * again, t % 8 * 16 + 4 * four) for again in range(4) for four in range(4)]
    if transpose:
        calls += [
            (True, t // 8 * 2 + 64 * again + column, t % 8 * 16 + 4 * four)
            for again in range(2)
            for column in range(2)
            for four in range(4)
        ]
    return _placed(calls, 256, seed, offset, rows, columns)


def _placed(
    calls: list[tuple[bool, NDArray[np.int64], NDArray[np.int64]]],
    threads: int,
    seed: int,
    offset: int,
    rows: int,
    columns: int,
) -> tuple[Words, Words]:
    """Put the n-th word of each thread where its n-th four values are; in chunks of 128 x 128, across first."""
    high, wide = -(-rows // 128), -(-columns // 128)
    words = philox(seed, offset, high * wide * threads, -(-len(calls) // 4) * 4).reshape(high, wide, threads, -1)
    straight = np.zeros((high * 128, wide * 32), dtype=np.uint32)
    turned = np.zeros((wide * 128, high * 32), dtype=np.uint32)
    for y in range(high):
        for x in range(wide):
            for n, (transposed, row, value) in enumerate(calls):
                if transposed:
                    turned[x * 128 + row, y * 32 + value // 4] = words[y, x, :, n]
                else:
                    straight[y * 128 + row, x * 32 + value // 4] = words[y, x, :, n]
    return straight[:rows, : columns // 4], turned[:columns, : rows // 4]


def bytes_of(words: Words) -> NDArray[np.uint8]:
    """Return the byte of each value."""
    return random_bytes(words)
