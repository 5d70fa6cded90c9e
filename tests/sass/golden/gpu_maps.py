"""Tensor maps that this machine's driver makes: ``python gpu_maps.py RESULT``, which is ``tensor_maps.json``.

Needs Python and the driver alone, and ``gpu.py`` beside it. What the driver refuses is left out.
"""

import ctypes
import json
import sys
from pathlib import Path
from typing import Any

from gpu import Gpu

PLAIN: dict[str, Any] = {
    **{"type": 6, "address": 0, "sizes": [100, 40], "strides": [208], "box": [16, 8], "steps": [1, 1]},
    **{"interleave": 0, "swizzle": 0, "promotion": 0, "fill": 0},
}
SIZES, STRIDES = [100, 41, 42, 43, 44], [208, 208 * 41, 208 * 41 * 42, 208 * 41 * 42 * 43]
ROWS: list[dict[str, Any]] = [
    {},
    *({"type": kind, "sizes": [1024, 40], "strides": [8192], "box": [32, 8]} for kind in range(16)),
    *(
        {"sizes": SIZES[:rank], "strides": STRIDES[: rank - 1], "box": [8, 5, 3, 2, 1][:rank], "steps": steps[:rank]}
        for rank in range(1, 6)
        for steps in ([1] * 5, [1, 2, 3, 4, 5])
    ),
    *({"swizzle": one} for one in (1, 2, 3)),
    *({"promotion": one} for one in (1, 2, 3)),
    {"fill": 1},
    *(
        {
            **{"interleave": one, "swizzle": one - 1, "sizes": [64, 40, 5], "strides": [4096, 1 << 18]},
            **{"box": [8 * one, 8, 2], "steps": [1] * 3},
        }
        for one in (1, 2)
    ),
    *({"strides": [stride]} for stride in (1 << 36, (1 << 39) + 16)),
    {"sizes": [1 << 32, 1 << 31], "strides": [1 << 33]},
    {"type": 0, "box": [256, 256]},
    {"steps": [8, 7]},
    {"address": 1 << 20},
]
"""How each differs from ``PLAIN``; of an address, by how much."""


def main(result: Path) -> None:
    gpu = Gpu()
    memory = gpu.allocate(1 << 24)
    found = []
    for row in ROWS:
        one = {**PLAIN, **row}
        one["address"] += memory
        rank = len(one["sizes"])
        buffer = ctypes.create_string_buffer(192)
        place = -(-ctypes.addressof(buffer) // 64) * 64
        try:
            gpu(
                "cuTensorMapEncodeTiled",
                *(ctypes.c_void_p(place), one["type"], rank, ctypes.c_void_p(one["address"])),
                *((ctypes.c_uint64 * rank)(*one["sizes"]), (ctypes.c_uint64 * rank)(*one["strides"])),
                *((ctypes.c_uint32 * rank)(*one["box"]), (ctypes.c_uint32 * rank)(*one["steps"])),
                *(one["interleave"], one["swizzle"], one["promotion"], one["fill"]),
            )
        except RuntimeError:
            continue
        found.append(one | {"content": ctypes.string_at(place, 128).hex()})
    lines = ",\n".join(f"  {json.dumps(one)}" for one in found)
    result.write_text(f'{{"gpu": {json.dumps(gpu.name)}, "maps": [\n{lines}\n]}}\n')


if __name__ == "__main__":
    main(Path(sys.argv[1]))
