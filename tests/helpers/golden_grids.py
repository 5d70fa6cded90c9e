"""Launch parameters of the golden grids, the same here and on the GPU machine (``golden/gpu_grids.py``)."""

import random
import struct
from collections.abc import Callable
from typing import Any


def content(array: dict[str, Any]) -> bytes:
    """Return the initial content of an array: masked pseudo-random 16-bit words, given content, or zeros."""
    if "seed" not in array:
        return bytes.fromhex(array["hex"]) if "hex" in array else bytes(array["bytes"])
    words = random.Random(array["seed"]).randbytes(array["bytes"])
    mask = array.get("mask", 0xFFFF)
    return bytes(a & b for a, b in zip(words, struct.pack("<H", mask) * (len(words) // 2), strict=True))


def parameter(one: list[Any], arrays: list[int], encoded: Callable[[dict[str, Any], int], bytes]) -> bytes:
    """Return a parameter's bytes: a list of fields.

    Each is an array's number, a tensor map of an array, or a format of ``struct`` and a value.
    """
    packed = []
    for field in one:
        if isinstance(field, dict):
            packed.append(encoded(field, arrays[field["array"]]))
        elif isinstance(field, int):
            packed.append(struct.pack("<Q", arrays[field]))
        else:
            packed.append(struct.pack(f"<{field[0]}", field[1]))
    return b"".join(packed)
