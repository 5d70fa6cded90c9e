"""Run probes on this machine's GPU over all inputs: ``python gpu.py DIRECTORY RESULTS``.

DIRECTORY is the output of ``make.py build``: cubins and ``programs.json``. RESULTS (JSON) gets for each program the
digest of all outputs, that of every 61st group, and some outputs as they are. The driver loads the same bytes that the
lifter reads. The script needs only Python and the driver, so that it can run on a machine that has nothing else.
"""

# ruff: noqa: B023 - the functions inside the loop are called in their own turn of it
import ctypes
import hashlib
import json
import sys
import time
from pathlib import Path
from typing import Any

STRIDE = 61
"""Stride of the subset: prime, so that all low bits occur."""
SAMPLES = 128
"""Outputs that are kept, spread over all groups."""
CHUNK = 1 << 22
"""Groups at a time."""


class Gpu:
    """The driver's functions that are needed; RuntimeError where one fails."""

    def __init__(self) -> None:
        self._driver = ctypes.CDLL("libcuda.so.1")
        self("cuInit", 0)
        device, context = ctypes.c_int(), ctypes.c_void_p()
        self("cuDeviceGet", ctypes.byref(device), 0)
        self("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self("cuCtxSetCurrent", context)
        text = ctypes.create_string_buffer(256)
        self("cuDeviceGetName", text, len(text), device)
        version = ctypes.c_int()
        self("cuDriverGetVersion", ctypes.byref(version))
        self.name = f"{text.value.decode()}, driver for CUDA {version.value // 1000}.{version.value % 1000 // 10}"

    def __call__(self, function: str, *arguments: Any) -> None:
        status = getattr(self._driver, function)(*arguments)
        if status:
            raise RuntimeError(f"{function} gave {status}")

    def function(self, cubin: bytes, name: str) -> ctypes.c_void_p:
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        self("cuModuleLoadData", ctypes.byref(module), cubin)
        self("cuModuleGetFunction", ctypes.byref(function), module, name.encode())
        return function

    def allocate(self, size: int) -> int:
        pointer = ctypes.c_uint64()
        self("cuMemAlloc_v2", ctypes.byref(pointer), ctypes.c_size_t(size))
        return pointer.value

    def launch(self, function: ctypes.c_void_p, blocks: int, *arguments: int) -> None:
        values = [ctypes.c_uint64(argument) for argument in arguments]
        pointers = (ctypes.c_void_p * len(values))(*(ctypes.addressof(value) for value in values))
        self("cuLaunchKernel", function, blocks, 1, 1, 256, 1, 1, 0, None, pointers, None)

    def read(self, pointer: int, size: int) -> bytes:
        buffer = ctypes.create_string_buffer(size)
        self("cuMemcpyDtoH_v2", buffer, ctypes.c_uint64(pointer), ctypes.c_size_t(size))
        return buffer.raw


def main(folder: Path, results: Path) -> None:
    gpu = Gpu()
    harness = (folder / "harness.cubin").read_bytes()
    fill, digest = gpu.function(harness, "fill"), gpu.function(harness, "digest")
    source = gpu.allocate(CHUNK * 64)
    result = gpu.allocate(CHUNK * 128)
    total = gpu.allocate(8)
    found: dict[str, Any] = {"gpu": gpu.name, "programs": {}}
    for name, program in json.loads((folder / "programs.json").read_text()).items():
        cubin = (folder / f"{name}.cubin").read_bytes()
        probe = gpu.function(cubin, "probe")
        lanes = program["lanes"]
        value = program["value"]
        out = program["out"]
        groups = (1 << 8 * value) // lanes

        def run(first: int, count: int, stride: int) -> None:
            gpu.launch(fill, 2048, source, first, count, stride, groups, lanes, value)
            gpu.launch(probe, (count + 255) // 256, source, result)

        def swept(stride: int) -> str:
            gpu("cuMemsetD8_v2", ctypes.c_uint64(total), 0, ctypes.c_size_t(8))
            last = (groups + stride - 1) // stride
            for first in range(0, last, CHUNK):
                count = min(CHUNK, last - first)
                run(first * stride, count, stride)
                gpu.launch(digest, 2048, result, first * stride, count, stride, out, total)
            return f"{int.from_bytes(gpu.read(total, 8), 'little'):016x}"

        start = time.monotonic()
        sample = groups // SAMPLES - 1 | 1
        run(0, SAMPLES, sample)
        found["programs"][name] = program | {
            "cubin": hashlib.sha256(cubin).hexdigest(),
            "sample": gpu.read(result, SAMPLES * out).hex(),
            "all": swept(1),
            "subset": swept(STRIDE),
        }
        print(f"{name} {time.monotonic() - start:.2f} s", flush=True)  # noqa: T201 - a script reports its progress
    results.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
