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


def main(folder: Path, results: Path) -> None:
    gpu = Gpu()
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
        blobs = [ctypes.create_string_buffer(parameter(one, held)) for one in job["parameters"]]
        pointers = (ctypes.c_void_p * len(blobs))(*(ctypes.addressof(blob) for blob in blobs))
        gpu("cuLaunchKernel", function, *job["grid"], *job["block"], 0, None, pointers, None)
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
