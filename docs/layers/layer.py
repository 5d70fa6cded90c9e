"""Run a whole FP4 layer of vLLM on a CPU: ``python docs/layers/layer.py VLLM CUTLASS WORK ARCH M,N,K ...``.

VLLM and CUTLASS are trees as ``fp4patch fetch`` gets them, patched or not; ARCH is 120a, 120f or 121a. nvcc compiles
vLLM's sources as its build does, with stand-ins for PyTorch. Their host code runs, and ``recorder.c`` takes the place
of the CUDA runtime: it writes down each launch. ``fp4patch.sass`` executes the machine code of these kernels, and the
results are compared with NumPy, bit for bit. WORK keeps the objects; compiling takes minutes.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(ROOT), str(HERE.parent / "gpu")]  # a checkout is enough, nothing need be installed

from nvfp4_models import quantize_as_vllm  # noqa: E402

from fp4patch.proof.toolchain import Toolchain, find_toolchain  # noqa: E402
from fp4patch.reference.block_scaled import exact_product, product, swizzled  # noqa: E402
from fp4patch.sass import Array, Cubin, Launch, read_cubin  # noqa: E402

PROBES = ROOT / "patches/vllm/e2m1-asm/probes"
SOURCES = {"mm": "nvfp4_scaled_mm_sm120_kernels.cu", "quant": "nvfp4_quant_kernels.cu"}
TARGETS = {"120a": ("120a", "120a"), "120f": ("120f", "120"), "121a": ("121a", "121a")}


def compiled(toolchain: Toolchain, vllm: Path, cutlass: Path, work: Path, arch: str) -> tuple[Path, list[Cubin]]:
    """The host program, and the cubins of its objects."""
    stand_ins = [HERE / "stand-ins", PROBES / "stubs", PROBES / "stubs-stable", PROBES / "stubs-cuda"]
    include = [f"-I{path}" for path in (*stand_ins, vllm / "csrc", cutlass / "include", cutlass / "tools/util/include")]
    virtual, real = TARGETS[arch]
    objects = []
    for name, source in SOURCES.items():
        objects.append(work / f"{name}-{arch}.o")
        if not objects[-1].is_file():
            command = [
                toolchain.nvcc,
                *toolchain.flags,
                "-std=c++17",
                "-O3",
                "-w",
                "--expt-relaxed-constexpr",
                "-DNDEBUG",
            ]
            command += ["-gencode", f"arch=compute_{virtual},code=sm_{real}", *include]
            command += ["-c", vllm / "csrc/quantization/fp4" / source, "-o", objects[-1]]
            subprocess.run([str(part) for part in command], check=True, env=dict(toolchain.environ))
    host = [("g++", "-std=c++17", HERE / "layer.cpp"), ("gcc", "-std=gnu11", HERE / "recorder.c")]
    for compiler, language, own in host:
        objects.append(work / f"{own.stem}.o")
        subprocess.run([compiler, language, "-O1", "-w", *include, "-c", own, "-o", objects[-1]], check=True)
    program = work / f"layer-{arch}"
    subprocess.run(["g++", *objects, "-o", program], check=True)  # noqa: S607 - the compiler on PATH
    cubins = []
    for made in objects[:2]:
        folder = work / made.stem
        folder.mkdir(exist_ok=True)
        cuobjdump = toolchain.nvdisasm.with_name("cuobjdump")
        subprocess.run([cuobjdump, "-xelf", "all", made], cwd=folder, check=True, capture_output=True)
        cubins += [read_cubin(one, nvdisasm=toolchain.nvdisasm) for one in sorted(folder.glob("*.cubin"))]
    return program, cubins


def launches(
    program: Path, cubins: list[Cubin], work: Path, arguments: list[int]
) -> Iterator[tuple[Cubin, str, Launch]]:
    """What the host program launches, without its arrays."""
    of = {kernel: cubin for cubin in cubins for kernel in cubin.kernels}
    written, sizes = work / "launches", work / "parameters"
    written.unlink(missing_ok=True)
    rows = (f"{kernel} {' '.join(str(size) for _, size in one.parameters(kernel))}\n" for kernel, one in of.items())
    sizes.write_text("".join(rows))
    environ = os.environ | {"SASS_LAUNCHES": str(written), "SASS_PARAMETERS": str(sizes)}
    subprocess.run([program, *map(str, arguments)], check=True, env=environ)
    lines = written.read_text().splitlines()
    for head, content in zip(lines[::2], lines[1::2], strict=True):
        kernel, *numbers = head.split()
        x, y, z, bx, by, bz, shared = map(int, numbers)
        parameters = bytearray()
        for (offset, _), one in zip(of[kernel].parameters(kernel), content.split(), strict=True):
            parameters = parameters.ljust(offset, b"\0") + bytes.fromhex(one)
        yield of[kernel], kernel, Launch((x, y, z), (bx, by, bz), bytes(parameters), (), shared=shared)


def codes(packed: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Codes of packed bytes."""
    return np.stack([packed & 15, packed >> 4], -1).reshape(len(packed), -1)


def layer(program: Path, cubins: list[Cubin], work: Path, m: int, n: int, k: int) -> bool:
    """Execute a layer, print what differs, and return whether nothing does."""
    rng = np.random.default_rng(m * 1_000_003 + n * 1009 + k)
    matrices = [
        (rng.normal(size=(rows, k)) * scale).astype(ml_dtypes.bfloat16) for rows, scale in ((m, 1.0), (n, 0.05))
    ]
    scales = [np.float32(448 * 6 / np.abs(one.astype(np.float32)).max()) for one in matrices]
    alpha = np.float32(1) / (scales[0] * scales[1])
    blocks = -(-k // 64) * 4
    content = [*(one.tobytes() for one in (*matrices, *scales, alpha))]
    for rows in (m, n):
        content += [bytes(rows * k // 2), b"\xee" * (-(-rows // 128) * 128 * blocks)]
    content.append(bytes(2 * m * n))
    addresses = [(number + 1) << 32 for number in range(len(content))]
    for cubin, kernel, launch in launches(program, cubins, work, [m, n, k, *addresses]):
        arrays = tuple(Array(at, one, at > addresses[4]) for at, one in zip(addresses, content, strict=True))
        given = Launch(launch.grid, launch.block, launch.parameters, arrays, shared=launch.shared)
        content[5:] = cubin.execute(kernel, given)
    with np.errstate(all="ignore"):
        quantized = [
            quantize_as_vllm(one, scale, lambda v: np.float32(1) / v)
            for one, scale in zip(matrices, scales, strict=True)
        ]
    differ = []
    for (packed, of_blocks), got, got_scales in zip(quantized, content[5:9:2], content[6:9:2], strict=True):
        differ.append(int((np.frombuffer(got, np.uint8) != packed.ravel()).sum()))
        differ.append(int((np.frombuffer(got_scales, np.uint8) != swizzled(of_blocks)).sum()))
    (a, a_scales), (b, b_scales) = ((codes(packed), of_blocks) for packed, of_blocks in quantized)
    expected = (product(a, a_scales, b, b_scales) * alpha).astype(ml_dtypes.bfloat16)
    results = np.frombuffer(content[9], ml_dtypes.bfloat16).reshape(m, n)
    differ.append(int((expected.view(np.uint16) != results.view(np.uint16)).sum()))
    exact = exact_product(a, a_scales, b, b_scales) * np.float64(alpha)
    error = np.abs(results.astype(np.float64) - exact).max() / np.abs(exact).max()
    print(  # noqa: T201 - a script reports what it found
        f"{m} x {n} x {k}: {sum(differ)} of {m * k + n * k + m * n} values differ; error {error:.4f} of the largest"
    )
    return not any(differ)


def main() -> int:
    """Exit status 0 if every layer is equal to NumPy's."""
    vllm, cutlass, work = (Path(one).resolve() for one in sys.argv[1:4])
    work.mkdir(parents=True, exist_ok=True)
    program, cubins = compiled(find_toolchain(), vllm, cutlass, work, sys.argv[4])
    shapes = [tuple(map(int, shape.split(","))) for shape in sys.argv[5:]]
    equal = [layer(program, cubins, work, *shape) for shape in shapes]
    return int(not all(equal))


if __name__ == "__main__":
    sys.exit(main())
