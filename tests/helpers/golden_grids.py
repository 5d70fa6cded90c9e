"""What the golden grids are launched with: the same here and where the GPU is (``golden/gpu_grids.py``)."""

from __future__ import annotations

import random
import struct
from typing import Any


def content(array: dict[str, Any]) -> bytes:
    """What an array holds at first: pseudo-random bytes, each word of 16 bits masked; what is said; or zeros."""
    if "seed" not in array:
        return bytes.fromhex(array["hex"]) if "hex" in array else bytes(array["bytes"])
    words = random.Random(array["seed"]).randbytes(array["bytes"])
    mask = array.get("mask", 0xFFFF)
    return bytes(a & b for a, b in zip(words, struct.pack("<H", mask) * (len(words) // 2), strict=True))


def parameter(one: list[Any], arrays: list[int]) -> bytes:
    """A parameter's bytes: a list of fields, each an array's number, or a format of ``struct`` and a value."""
    packed = [struct.pack("<Q", arrays[field]) if isinstance(field, int) else struct.pack(f"<{field[0]}", field[1])
              for field in one]  # fmt: skip
    return b"".join(packed)
