"""Run vLLM's Marlin for dense NVFP4 layers on a CPU: ``python docs/layers/marlin_dense.py VLLM WORK ARCH SHAPE ...``.

VLLM, WORK and ARCH are those of ``marlin.py`` beside this file. A SHAPE is SMS,M,N,K: multiprocessors, tokens (up to
64, or a multiple of 64: what ``marlin.cu`` gives one launch), columns and rows of the weight. Each runs with each of
the kernel's tilings for as many tokens. The arrays are as large as ``marlin.cu`` and ``marlin_utils_fp4.py`` make them,
each alone in its address space, so that an access beyond an end is an error. Results are compared with NumPy.
"""

import argparse
import re
import struct
import sys
from pathlib import Path

import ml_dtypes
import numpy as np
from marlin import SHARED, compiled, launched, needed, packed, placed
from numpy.typing import NDArray

from fp4patch.proof.toolchain import find_toolchain
from fp4patch.sass import Array, Cubin

GROUP = 16
GLOBAL_SCALE = 0.0625
VALUES = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6], np.float32)

# Example: Li256ELi1ELi8ELi8ELb1E
_TILING = re.compile(r"Li(?P<threads>\d+)ELi(?P<m>\d+)ELi(?P<n>\d+)ELi(?P<k>\d+)ELb(?P<rows_8>[01])E")


def scales_as_stored(scales: NDArray[ml_dtypes.float8_e4m3fn]) -> bytes:
    """Scales (k / 16 x n) in Marlin's order and its format without a sign: ``nvfp4_marlin_process_scales``.

    The largest one must be 448 / 2 or more: below, vLLM would multiply all scales by a power of two first.
    """
    places = [i + 8 * j for i in range(8) for j in range(8)]
    values = scales.astype(np.float16).reshape(-1, 64)[:, places].reshape(-1, 4)[:, [0, 2, 1, 3]] * np.float16(2**7)
    values[values < 2] = 0
    return ((values.view(np.uint16) << 1) >> 8).astype(np.uint8).tobytes()


def layer(sms: int, m: int, n: int, k: int) -> tuple[list[Array], NDArray[np.float64]]:
    """The arrays of a launch, in the order of the kernel's parameters, and the exact results."""
    rng = np.random.default_rng([m, n, k])
    x = rng.normal(size=(m, k)).astype(ml_dtypes.bfloat16)
    codes = rng.integers(0, 16, size=(k, n), dtype=np.uint8)
    scales = rng.uniform(0.5, 448, size=(k // GROUP, n)).astype(ml_dtypes.float8_e4m3fn)
    scales[0, 0] = 448
    weight = VALUES[codes & 7] * np.where(codes & 8, -1, 1) * np.repeat(scales.astype(np.float32), GROUP, axis=0)
    exact = x.astype(np.float64) @ weight.astype(np.float64) * GLOBAL_SCALE
    reduction = sms * min(-(-m // 16) * 16, 64) * 256  # max_c_tmp_size of marlin.cu
    contents = [
        x.tobytes(),
        packed(codes),
        bytes(2 * m * n),
        bytes(4 * reduction),
        b"",  # bias
        b"",  # scales of A
        scales_as_stored(scales),
        struct.pack("<f", GLOBAL_SCALE * 2.0 ** (126 - 7)),  # nvfp4_marlin_process_global_scale, for bfloat16
        b"",  # zero points
        bytes(4 * sms),  # locks
    ]
    return [
        Array((number + 1) << 36, content, writable=number in (2, 3, 9)) for number, content in enumerate(contents)
    ], exact


def parameters(cubin: Cubin, kernel: str, arrays: list[Array], m: int, n: int, k: int) -> bytes:
    """MARLIN_KERNEL_PARAMS of ``kernel.h``: no bias, no atomics, a reduction in float32."""
    addresses = [struct.pack("<Q", array.address) for array in arrays]
    sizes = [struct.pack("<i", one) for one in (m, n, k, k)]
    flags = [struct.pack("<?", flag) for flag in (False, False, True)]
    given = [*addresses[:9], *sizes, addresses[9], *flags, struct.pack("<i", SHARED)]
    return placed(cubin.parameters(kernel), given)


def run(cubin: Cubin, sms: int, m: int, n: int, k: int) -> bool:
    """Run a shape with every tiling of its number of rows, and print what was found."""
    if m > 64 and m % 64:
        raise SystemExit(f"{m} tokens: a launch has up to 64, or a multiple of 64")
    arrays, exact = layer(sms, m, n, k)
    whole = True
    for kernel in cubin.kernels:
        tiling = _TILING.search(kernel)
        if tiling is None:
            continue
        rows, columns, depth = (16 * int(tiling[one]) for one in "mnk")
        if (tiling["rows_8"] == "1") != (m <= 8) or rows != min(-(-m // 16) * 16, 64):
            continue
        if n % columns or k % depth or needed(rows, columns, depth, GROUP, 0) > SHARED:
            continue
        grid = (sms, 1, 1), (int(tiling["threads"]), 1, 1)
        given = parameters(cubin, kernel, arrays, m, n, k)
        head = f"{sms},{m},{n},{k} tile {rows} x {columns} x {depth}"
        whole &= launched(head, cubin, kernel, grid, given, arrays, SHARED, exact)
    return whole


def main() -> int:
    """Exit status 0 if every launch stayed in its arrays and is near the exact results."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--ptxas", type=Path)
    for name in ("vllm", "work"):
        parser.add_argument(name, type=Path)
    parser.add_argument("arch")
    parser.add_argument("shapes", nargs="+")
    asked = parser.parse_args()
    asked.work.mkdir(parents=True, exist_ok=True)
    vllm = asked.vllm.resolve()
    cubin = compiled(find_toolchain(), vllm, asked.work, asked.arch, "marlin_dense.cu", ptxas=asked.ptxas)
    whole = [run(cubin, *map(int, shape.split(","))) for shape in asked.shapes]
    return int(not all(whole))


if __name__ == "__main__":
    sys.exit(main())
