"""Run kernels whose threads exchange values on this machine's GPU: ``python gpu_grids.py DIRECTORY RESULTS``.

DIRECTORY is what ``make.py grids`` made: cubins and ``grids.json``. RESULTS (a directory) gets what each wrote, and
``grids.json`` with the hashes. Needs Python and the driver alone;
``gpu.py`` and ``tests/helpers/golden_grids.py`` beside it.
"""

import ctypes
import hashlib
import json
import sys
import time
from pathlib import Path
from typing import Any

from golden_grids import content, parameter
from gpu import Gpu

KEPT: list[Any] = []
"""Memory that the driver reads at a launch."""


def aligned(content: bytes) -> int:
    """Return the address of these bytes, a multiple of 64."""
    buffer = ctypes.create_string_buffer(len(content) + 64)
    KEPT.append(buffer)
    address = -(-ctypes.addressof(buffer) // 64) * 64
    ctypes.memmove(address, content, len(content))
    return address


def main(folder: Path, results: Path) -> None:
    gpu = Gpu()

    def tensor_map(one: dict[str, Any], address: int) -> bytes:
        rank = len(one["sizes"])
        place = aligned(bytes(128))
        gpu(
            "cuTensorMapEncodeTiled",
            ctypes.c_void_p(place),
            one["type"],
            rank,
            ctypes.c_void_p(address),
            (ctypes.c_uint64 * rank)(*one["sizes"]),
            (ctypes.c_uint64 * rank)(*one["strides"]),
            (ctypes.c_uint32 * rank)(*one["box"]),
            (ctypes.c_uint32 * rank)(*[1] * rank),
            0,
            one["swizzle"],
            0,
            0,
        )
        return ctypes.string_at(place, 128)

    results.mkdir(parents=True, exist_ok=True)
    found: dict[str, Any] = {"gpu": gpu.name, "grids": {}}
    for name, job in json.loads((folder / "grids.json").read_text()).items():
        start = time.monotonic()
        cubin = (folder / f"{name}.cubin").read_bytes()
        function = gpu.function(cubin, "probe")
        held = []
        for array in job["arrays"]:
            pointer = gpu.allocate(array["bytes"])
            gpu("cuMemcpyHtoD_v2", ctypes.c_uint64(pointer), content(array), ctypes.c_size_t(array["bytes"]))
            held.append(pointer)
        blobs = [aligned(parameter(one, held, tensor_map)) for one in job["parameters"]]
        pointers = (ctypes.c_void_p * len(blobs))(*blobs)
        gpu("cuLaunchKernel", function, *job["grid"], *job["block"], job.get("shared", 0), None, pointers, None)
        written = [
            gpu.read(pointer, array["bytes"])
            for pointer, array in zip(held, job["arrays"], strict=True)
            if not {"seed", "hex"} & array.keys()
        ]
        for number, one in enumerate(written):
            (results / f"{name}.{number}").write_bytes(one)
        found["grids"][name] = job | {
            "cubin": hashlib.sha256(cubin).hexdigest(),
            "written": [hashlib.sha256(one).hexdigest() for one in written],
        }
        print(f"{name} {time.monotonic() - start:.2f} s", flush=True)  # noqa: T201 - a script reports its progress
    (results / "grids.json").write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
