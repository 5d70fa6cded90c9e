"""Run vLLM's Marlin for experts on a CPU: ``python docs/layers/marlin.py VLLM WORK ARCH SHAPE ...``.

VLLM is a tree as ``fp4patch fetch`` gets it, of 0.22 or later; ARCH is what nvcc compiles for, as 121a, or 80:121a for
the PTX of 8.0 that ptxas then translates for 12.1a (``--ptxas PTXAS`` names another one). A SHAPE is SMS,M,TOPK,N,K:
multiprocessors, tokens, experts of a token, columns and rows of a weight. Each runs with each of the kernel's tilings,
and one to four blocks a multiprocessor; ``--rows`` are the tokens of a block. The arrays are as large as ``ops.cu`` and
``marlin_moe.py`` make them, each alone in its address space, so that an access beyond an end is an error. Results are
compared with NumPy.
"""

import argparse
import hashlib
import re
import shutil
import struct
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT))  # a checkout is enough, nothing need be installed

from fp4patch.proof.toolchain import Toolchain, find_toolchain  # noqa: E402
from fp4patch.sass import Array, Cubin, Launch, SassError, read_cubin  # noqa: E402

# The kernel gives whole tiles to the blocks of the grid in turn, and divides K of the rest among them (STOCK). The
# change of vllm#56064 gives whole tiles only. How many a block gets if they do not come out even, we do not know.
STOCK = re.compile(r"  if \(global_mn_tiles > gridDim\.x\) \{\n(?:    .*\n)+?  \}\n")
WHOLE = {
    "down": "global_mn_tiles / gridDim.x",
    "up": "div_ceil(global_mn_tiles, gridDim.x)",
    "each": "div_ceil(global_mn_tiles - (int)blockIdx.x, gridDim.x)",
}
GROUP = 128
SHARED = 101_376
"""Shared memory that a block of SM12x can have (``cudaDevAttrMaxSharedMemoryPerBlockOptin``)."""

# Example: Li256ELi1ELi8ELi8ELb1E
_TILING = re.compile(r"Li(?P<threads>\d+)ELi\dELi(?P<n>\d+)ELi(?P<k>\d+)ELb[01]E")


def whole_tiles(vllm: Path, work: Path, tiles: str) -> Path:
    """A directory of headers whose kernel divides no tile, ahead of the tree's on the path of includes."""
    inside = "moe/marlin_moe_wna16"
    shutil.copytree(vllm / "csrc" / inside, work / "whole" / inside, dirs_exist_ok=True)
    header = work / "whole" / inside / "marlin_template.h"
    changed, count = STOCK.subn(f"  part2_mn_tiles = 0;\n  part1_mn_iters = {WHOLE[tiles]};\n", header.read_text())
    if count != 1:
        raise SystemExit(f"{header} divides its tiles in another way: {count} places")
    header.write_text(changed)
    return work / "whole"


def compiled(
    toolchain: Toolchain, vllm: Path, work: Path, arch: str, source: str, *given: str, ptxas: Path | None = None
) -> Cubin:
    """The kernels of a source beside this file, as nvcc makes them, or as a ptxas makes them of nvcc's PTX."""
    patch = ROOT / "patches/vllm/e2m1-asm"
    probes = patch / "probes"
    include = [
        patch / "layers/stand-ins",
        probes / "stubs",
        probes / "stubs-stable",
        probes / "stubs-cuda",
        vllm / "csrc",
    ]
    command = [toolchain.nvcc, *toolchain.flags, "-std=c++17", "-O3", "-w", "--expt-relaxed-constexpr", "-DNDEBUG"]
    command += [
        "-static-global-template-stub=false",
        "-DTORCH_TARGET_VERSION=0",
        *given,
        *(f"-I{path}" for path in include),
        HERE / source,
    ]
    virtual, colon, real = arch.partition(":")
    cubin = work / f"{source}.cubin"
    if colon:
        ptx = work / f"{source}.ptx"
        made = [*command, "-ptx", f"-arch=compute_{virtual}", "-o", ptx]
        subprocess.run([str(part) for part in made], check=True, env=dict(toolchain.environ))
        # Older assemblers take the same text as ISA 8.7, the one of CUDA 12.8: nothing in it is newer.
        ptx.write_text(re.sub(r"(?m)^\.version .*$", ".version 8.7", ptx.read_text()))
        assembler = ptxas or toolchain.nvcc.with_name("ptxas")
        steps = [[assembler, f"-arch=sm_{real}", ptx, "-o", cubin]]
    else:
        steps = [[*command, "-cubin", "-gencode", f"arch=compute_{virtual},code=sm_{virtual}", "-o", cubin]]
    for step in steps:
        subprocess.run([str(part) for part in step], check=True, env=dict(toolchain.environ))
    return read_cubin(cubin, nvdisasm=toolchain.nvdisasm)


def packed(codes: NDArray[np.uint8]) -> bytes:
    """A weight of codes (k x n) in Marlin's order: ``marlin_weights`` of vLLM's ``marlin_utils_test.py``."""
    order = list[int]()
    for i in range(32):
        rows = [2 * (i % 4), 2 * (i % 4) + 1, 2 * (i % 4 + 4), 2 * (i % 4 + 4) + 1]
        one = [16 * row + i // 4 + 8 * half for half in (0, 1) for row in rows]
        order += [place + 256 * tile for tile in range(4) for place in one]
    places = np.array(order).reshape(-1, 8)[:, [0, 2, 4, 6, 1, 3, 5, 7]].ravel()
    k, n = codes.shape
    tiles = codes.reshape(k // 16, 16, n // 16, 16).transpose(0, 2, 1, 3).reshape(-1, 1024)[:, places]
    groups = tiles.reshape(-1, 8).astype(np.uint32)
    words: NDArray[np.uint32] = np.bitwise_or.reduce(groups << (4 * np.arange(8, dtype=np.uint32)), axis=1)
    return bytes(words.tobytes())


def ordered(scales: NDArray[ml_dtypes.bfloat16]) -> bytes:
    """Scales (k / 128 x n) in Marlin's order."""
    places = [i + 8 * j for i in range(8) for j in range(8)]
    return scales.reshape(-1, 64)[:, places].tobytes()


def experts(sms: int, m: int, topk: int, n: int, k: int, rows: int) -> tuple[list[Array], NDArray[np.float64]]:
    """The arrays of a launch, in the order of the kernel's parameters, and the exact results."""
    rng = np.random.default_rng([m, topk, n, k])
    pairs = m * topk  # of a token and an expert
    # In small blocks each pair has an expert of its own, as in the reports; larger ones are nearly full.
    count = pairs if rows <= 16 else max(topk, -(-pairs // (rows - 5)))
    x = rng.normal(size=(m, k)).astype(ml_dtypes.bfloat16)
    codes = rng.integers(0, 16, size=(count, k, n), dtype=np.uint8)
    scales = (rng.uniform(0.5, 1.5, size=(count, k // GROUP, n)) * 0.02).astype(ml_dtypes.bfloat16)
    exact = np.empty((pairs, n))
    for one in range(count):
        weight = (codes[one].astype(np.float32) - 8) * np.repeat(scales[one].astype(np.float32), GROUP, axis=0)
        its = np.arange(one, pairs, count)
        exact[its] = x[its // topk].astype(np.float64) @ weight.astype(ml_dtypes.bfloat16).astype(np.float64)
    sorted_ids = np.full((count, rows), pairs, np.int32)  # padding is the number of pairs
    sorted_ids.T[np.arange(pairs) // count, np.arange(pairs) % count] = np.arange(pairs)
    reduction = (2 if rows == 8 else 1) * min(n * sorted_ids.size, sms * 4 * rows * 256)  # max_c_tmp_size of ops.cu
    contents: list[bytes | None] = [x.tobytes(), b"".join(map(packed, codes))]
    contents += [bytes(2 * pairs * n), bytes(4 * reduction), None, None, b"".join(map(ordered, scales)), None, None]
    contents += [sorted_ids.tobytes(), np.arange(count, dtype=np.int32).tobytes(), struct.pack("<i", sorted_ids.size)]
    contents += [np.ones(pairs, np.float32).tobytes(), bytes(4 * 4 * sms)]
    return [
        Array((number + 1) << 36, content or b"", writable=number in (2, 3, 13))
        for number, content in enumerate(contents)
    ], exact


def needed(m: int, n: int, k: int, group: int, indices: int) -> int:
    """Bytes of shared memory of a tile: get_kernel_cache_size of ``ops.cu``, and the 512 that it keeps free.

    ``m`` is a multiple of 16. ``indices`` are the bytes for a block's tokens, which a dense layer has none of.
    """
    of_b, reduced = 4 * k * n // 2, m * (n + 8) * 2
    largest = max(of_b, reduced, min(of_b, reduced) + n * 2)
    return largest + 4 * m * k * 2 + 4 * n * 2 * -(-k // group) + indices + 512


def parameters(cubin: Cubin, kernel: str, arrays: list[Array], topk: int, m: int, n: int, k: int) -> bytes:
    """MARLIN_KERNEL_PARAMS of ``kernel.h``: 0.22 has two more, for act_order, which these kernels do not use."""
    values = [struct.pack("<Q", array.address) for array in arrays]
    numbers = [struct.pack("<i", one) for one in (m, n, k)]
    flags = [struct.pack("<?", flag) for flag in (False, False, True)]
    places = cubin.parameters(kernel)
    older = len(places) > 22
    given = [
        *values[:9],
        *([bytes(8)] if older else []),
        *values[9:13],
        struct.pack("<i", topk),
        struct.pack("<?", False),
    ]
    given += [*([struct.pack("<i", k // GROUP)] if older else []), *numbers, values[13], *flags]
    given += [struct.pack("<i", SHARED)] if len(places) > len(given) else []
    return placed(places, given)


def placed(places: Sequence[tuple[int, int]], given: list[bytes]) -> bytes:
    """Values at the kernel's offsets, each of the kernel's size."""
    result = bytearray()
    for (offset, size), one in zip(places, given, strict=True):
        if len(one) != size:
            raise SassError(f"a parameter at {offset} has {size} bytes, where {len(one)} were expected")
        result = result.ljust(offset, b"\0") + one
    return bytes(result)


def launched(
    head: str,
    cubin: Cubin,
    kernel: str,
    grid: tuple[tuple[int, int, int], tuple[int, int, int]],
    given: bytes,
    arrays: list[Array],
    shared: int,
    exact: NDArray[np.float64],
) -> bool:
    """Run one kernel, print what was found, and say whether its results are near the exact ones."""
    held = tuple(array for array in arrays if array.content)
    # Rows without a token are not copied to shared memory, and are read there. They must not matter.
    launches = [Launch(*grid, given, held, poison=poison, shared=shared, unwritten=True) for poison in (1, 2)]
    try:
        (results, reduction, locks), (other, _, _) = (cubin.execute(kernel, launch) for launch in launches)
    except SassError as error:
        print(f"{head}: {error}; {error.help}", flush=True)  # noqa: T201 - a script reports what it found
        return False
    got = np.frombuffer(results, ml_dtypes.bfloat16).astype(np.float64).reshape(exact.shape)
    error_of = np.abs(got - exact).max() / np.abs(exact).max()
    unused = len(reduction) - len(reduction.rstrip(b"\0"))
    digest = hashlib.sha256(results).hexdigest()[:12]
    found = f"error {error_of:.4f}, c_tmp {len(reduction):,} bytes, the last {unused:,} unused"
    found += ", locks are left" if any(locks) else ""
    found += ", and what nothing wrote matters" if results != other else ""
    print(f"{head}: {found}, {digest}", flush=True)  # noqa: T201
    return bool(error_of < 0.01) and not any(locks) and results == other


def run(cubin: Cubin, blocks_each: list[int], rows: int, sms: int, m: int, topk: int, n: int, k: int) -> bool:
    """Run a shape with every tiling, and print what was found."""
    arrays, exact = experts(sms, m, topk, n, k, rows)
    whole = True
    for kernel in cubin.kernels:
        tiling = _TILING.search(kernel)
        if tiling is None or n % (16 * int(tiling["n"])) or k % (16 * int(tiling["k"])):
            continue
        threads = int(tiling["threads"])
        for blocks in blocks_each:
            given = parameters(cubin, kernel, arrays, topk, m, n, k)
            shared = SHARED // blocks - 1024 if blocks > 1 else SHARED
            room = max(rows, 16)
            if needed(room, 16 * int(tiling["n"]), 16 * int(tiling["k"]), GROUP, 16 * room) > shared:
                continue
            grid = (sms * blocks, 1, 1), (threads, 1, 1)
            head = f"{sms},{m},{topk},{n},{k} tile {16 * int(tiling['n'])} x {16 * int(tiling['k'])}, {blocks} blocks"
            whole &= launched(head, cubin, kernel, grid, given, arrays, shared, exact)
    return whole


def main() -> int:
    """Exit status 0 if every launch stayed in its arrays and is near the exact results."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--ptxas", type=Path)
    parser.add_argument("--blocks", type=int, nargs="+", default=[1, 2, 3, 4], help="blocks a multiprocessor")
    parser.add_argument("--rows", type=int, choices=(8, 16, 32, 48, 64), default=8, help="tokens of a block")
    parser.add_argument("--whole-tiles", choices=WHOLE, help="divide no tile: the change of vllm#56064")
    for name in ("vllm", "work"):
        parser.add_argument(name, type=Path)
    parser.add_argument("arch")
    parser.add_argument("shapes", nargs="+")
    asked = parser.parse_args()
    asked.work.mkdir(parents=True, exist_ok=True)
    vllm = asked.vllm.resolve()
    given = [f"-DROWS={asked.rows}"]
    if asked.whole_tiles:
        given.append(f"-I{whole_tiles(vllm, asked.work, asked.whole_tiles)}")
    cubin = compiled(find_toolchain(), vllm, asked.work, asked.arch, "marlin.cu", *given, ptxas=asked.ptxas)
    whole = [run(cubin, asked.blocks, asked.rows, *map(int, shape.split(","))) for shape in asked.shapes]
    return int(not all(whole))


if __name__ == "__main__":
    sys.exit(main())
