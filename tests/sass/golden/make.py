"""Make the golden digests again: what a real GPU computes with the probes that the lifter must execute.

    python make.py build TREES WORK     here: compile for sm_90; TREES holds cutlass-4.2.1, cutlass-4.7.0, vllm-0.33.0
    python gpu.py WORK RESULTS           where the GPU is: it needs WORK, Python and the driver
    python make.py merge WORK RESULTS   here: golden.json and listings/, from the same cubins

    python make.py grids TREES WORK     the same of kernels whose threads exchange values: cubins and grids.json
    python gpu_grids.py WORK RESULTS    where the GPU is; RESULTS is a directory
    python make.py merge_grids WORK RESULTS

The trees are upstream's sources as ``fp4patch fetch`` gets them; they are copied, not changed.
"""

import gzip
import hashlib
import json
import re
import shutil
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from fp4patch.catalog.manifest import load
from fp4patch.core.arch import Arch
from fp4patch.core.process import Runner
from fp4patch.core.store import Store
from fp4patch.proof.probe import Compiler
from fp4patch.proof.toolchain import Toolchain, find_toolchain
from fp4patch.proof.view import Side, SourceView

HERE = Path(__file__).parent
ENCODERS = HERE.parents[2] / "encoders"
ARCH = Arch(9, 0)

# Values that a call converts, bytes of each, bytes that it stores.
PROBES = {
    "encode-float": (1, 4, 1),
    "encode-float-x8": (8, 4, 4),
    "encode-float-x16": (16, 4, 8),
    "encode-half-x8": (8, 2, 4),
    "encode-bfloat16-x8": (8, 2, 4),
    "float-to-e2m3-x4": (4, 4, 4),
    "e2m1-to-float-x8": (1, 4, 32),
    "e2m1-to-half-x8": (1, 4, 16),
    "float8-to-e2m1": (8, 4, 4),
    "float2x8-to-e2m1": (16, 4, 8),
}
TREES = {
    ("cutlass", "4.2.1", "pristine"): (
        "encode-float-x8",
        "encode-float-x16",
        "encode-float",
        "encode-half-x8",
        "encode-bfloat16-x8",
        "float-to-e2m3-x4",
        "e2m1-to-float-x8",
        "e2m1-to-half-x8",
    ),
    ("cutlass", "4.2.1", "next2"): ("encode-float-x8", "encode-float"),
    ("cutlass", "4.7.0", "pristine"): (
        "encode-float-x8",
        "encode-float",
        "encode-half-x8",
        "encode-bfloat16-x8",
        "float-to-e2m3-x4",
    ),
    ("cutlass", "4.7.0", "next3"): (
        "encode-float-x8",
        "encode-float-x16",
        "encode-float",
        "encode-half-x8",
        "encode-bfloat16-x8",
        "e2m1-to-float-x8",
        "e2m1-to-half-x8",
    ),
    ("vllm", "0.33.0", "next3"): ("float8-to-e2m1", "float2x8-to-e2m1"),
}
OWN = {
    **{
        f"encoder.{name}": ("encoders/encoder.cu", [f"-DENCODER={name}", f"-I{ENCODERS}"], (8, 4, 4))
        for name in ("half_pair", "predicate_sum", "threshold")
    },
    "encoder.cuda_fp4": ("encoders/cuda_fp4.cu", [], (2, 4, 1)),
    **{
        f"opcodes.{name}": (f"opcodes/{name}.cu", [], (1, 4, 4 * words))
        for name, words in {
            "single": 12,
            "xorsign": 8,
            "half": 16,
            "compare": 8,
            "integer": 16,
            "bits": 20,
            "double": 8,
        }.items()
    },
}
"""Sources of ours, how they are compiled, and the three numbers."""


THREADS = 16384


def _seeded(size: int, seed: int, mask: int = 0xFFFF) -> dict[str, int]:
    return {"bytes": size, "seed": seed, "mask": mask}


def _plain(arrays: list[dict[str, Any]], threads: int = THREADS) -> dict[str, Any]:
    """One thread a record, the arrays' addresses as parameters."""
    return {
        "grid": [threads // 256, 1, 1],
        "block": [256, 1, 1],
        "parameters": [[number] for number in range(len(arrays))],
        "arrays": arrays,
    }


def _block(scale: float, seed: int, mask: int) -> dict[str, Any]:
    scales = {"bytes": 4, "hex": struct.pack("<f", scale).hex()}
    return _plain([_seeded(16 * THREADS, seed, mask), scales, {"bytes": 4 * THREADS}, {"bytes": THREADS // 2}])


def _gemv(st: float, seed: int, mask: int) -> dict[str, Any]:
    columns, batches = 64, 4
    parameters = [
        1,
        ["q", 0],
        2,
        ["f", 1.0],
        ["f", 0.0],
        ["f", st],
        ["I", 0],
        ["q", columns * 128],
        ["q", columns * 16],
    ]
    arrays = [
        _seeded(columns * batches * 64, seed, mask),
        {"bytes": columns * batches * 8},
        {"bytes": columns * batches * 128},
    ]
    return {"grid": [columns, 1, batches], "block": [8, 16, 1], "parameters": [parameters, [0]], "arrays": arrays}


def _tensors(kind: int, width: int, box: int, swizzle: int, seed: int) -> dict[str, Any]:
    """Boxes of 16 lines of a tensor of 40, at places in it, at its edges and outside."""
    pitch, blocks = 208, 16
    size = {0: 1, 6: 2, 2: 4}[kind]
    bytes_of_box, step = 16 * box * size, 16 // size
    columns = -(-width // step)
    steps = [(0, 0), (1, 3), (-1, 2), (columns - 1, 30), (2, -9), (columns, 0), (0, 40), (-box // step, -16)]
    places = [(step * x, y) for x, y in steps + [(n - 3, 5 * n - 11) for n in range(8)]]
    tensor = {"type": kind, "strides": [pitch], "box": [box, 16], "swizzle": swizzle}
    return {
        "grid": [blocks, 1, 1],
        "block": [64, 1, 1],
        "shared": bytes_of_box + 1024,
        "parameters": [
            [0],
            [2],
            [tensor | {"array": 1, "sizes": [width, 40]}],
            [tensor | {"array": 3, "sizes": [width, 64 * blocks]}],
        ],
        "arrays": [
            {"bytes": 8 * blocks, "hex": b"".join(struct.pack("<2i", *place) for place in places).hex()},
            _seeded(40 * pitch, seed),
            {"bytes": blocks * bytes_of_box},
            {"bytes": 64 * blocks * pitch},
        ],
    }


def _maps(kind: int, size: int, box: int, seed: int) -> dict[str, Any]:
    """Boxes of a tensor that the kernel puts into a tensor map in place of another one."""
    pitch, blocks, step = 208, 16, 16 // size
    width, line = 192 // size, box * size
    places = [(step * (n * 5 % 15 - 2), 3 * n - 4) for n in range(blocks)]
    tensor = {"type": kind, "strides": [pitch], "box": [box, 4], "swizzle": 0, "array": 3, "sizes": [width // 2, 7]}
    return {
        "grid": [blocks, 1, 1],
        "block": [32, 1, 1],
        "shared": 16 * line + 1024,
        "parameters": [[0], [1], [2], [3], [tensor]],
        "arrays": [
            {"bytes": 8 * blocks, "hex": b"".join(struct.pack("<2i", *place) for place in places).hex()},
            {"bytes": blocks * (16 * line + 256)},
            {"bytes": 128 * blocks},
            _seeded(40 * pitch + 16 * blocks, seed),
        ],
    }


PRODUCTS: tuple[str, ...] = (
    "f16-k16",
    "f16-k8",
    "bf16-k16",
    "bf16-k8",
    "tf32-k8",
    "tf32-k4",
    "f16-f16",
    "s8",
    "u8-s8-sat",
)
PRODUCTS += ("e4m3-e5m2-k32", "e5m2-e4m3-k16", "e4m3-f16")
FLAGS = {
    **{f"grids.products-{name}": ("grids/products.cu", [f"-DFORM={form}"]) for form, name in enumerate(PRODUCTS)},
    "grids.tensors": ("grids/tensors.cu", ["-DBYTES=1024"]),
    "grids.tensors-128": ("grids/tensors.cu", ["-DBYTES=2048"]),
    "grids.tensors-64": ("grids/tensors.cu", ["-DBYTES=1024"]),
    "grids.tensors-32": ("grids/tensors.cu", ["-DBYTES=512"]),
    **{
        f"grids.maps-{name}": ("grids/maps.cu", ["-arch=sm_90a", *(f"-D{macro}" for macro in macros.split())])
        for name, macros in {
            "u8": "TYPE=0 SIZE=1 WIDTH=192 LINE=64 SWIZZLE=2",
            "f16": "TYPE=6 SIZE=2 WIDTH=96 LINE=128 SWIZZLE=3",
            "bf16": "TYPE=10 SIZE=2 WIDTH=96 LINE=32 SWIZZLE=1",
        }.items()
    },
}
"""Sources of grids that have not their name, and flags."""
GRIDS: dict[str, dict[str, Any]] = {
    "grids.shuffles": _plain([_seeded(4 * 4096, 1), _seeded(8 * 4096, 2), {"bytes": 32 * 4096}], 4096),
    "grids.divide": _plain([_seeded(8 * THREADS, 3), {"bytes": 32 * THREADS}]),
    "grids.halves": _plain([_seeded(16 * THREADS, 4), {"bytes": 80 * THREADS}]),
    "grids.reciprocal": _plain([{"bytes": 40}, {"bytes": 1 << 21}], 1 << 18),
    "grids.votes": _plain([_seeded(8 * 2048, 10), {"bytes": 64 * 2048}], 2048),
    "grids.matrices": _plain([_seeded(2048 * 24, 11), {"bytes": 128 * 32 * 24}], 24 * 256) | {"block": [32, 1, 1]},
    "grids.copies": _plain([_seeded(4096 * 8, 12), {"bytes": 8192 * 8}], 8 * 256) | {"block": [64, 1, 1]},
    "grids.pipeline": {
        "grid": [8, 1, 1],
        "block": [96, 1, 1],
        "parameters": [[0], [1], [["i", 17]]],
        "arrays": [_seeded(8 * 17 * 256, 13), {"bytes": 8 * 96 * 4}],
    },
    "grids.atomics": _plain([_seeded(4 * 256 * 16, 14), {"bytes": 1024 + 64 * 16}], 256 * 16),
    **{
        f"grids.products-{name}": _plain([_seeded(64 * 4096, 20 + form, mask), {"bytes": 16 * 4096}], 4096)
        for form, (name, mask) in enumerate(
            zip(PRODUCTS, (0xBFFF, 0xFFFF, 0xBFFF, 0xBF8F, 0xBFFF, 0xFFFF, 0xBBFF, *(0xFFFF,) * 5), strict=True)
        )
    },
    "grids.tensors": _tensors(0, 200, 64, 0, 40),
    "grids.tensors-128": _tensors(6, 100, 64, 3, 41),
    "grids.tensors-64": _tensors(2, 50, 16, 2, 42),
    "grids.tensors-32": _tensors(0, 200, 32, 1, 43),
    "grids.maps-u8": _maps(0, 1, 64, 44),
    "grids.maps-f16": _maps(6, 2, 64, 45),
    "grids.maps-bf16": _maps(9, 2, 16, 46),
    "vllm-0.33.0.next3.half-block-to-nvfp4": _block(32.0, 5, 0xBFFF),
    "vllm-0.33.0.next3.bf16-block-to-nvfp4": _block(0.25, 6, 0xC0FF),
    "vllm-0.33.0.next3.bf16-block-to-mxfp4": _block(1.0, 7, 0xC7FF),
    "cutlass-4.2.1.pristine.encode-gemv-epilogue": _gemv(1.0, 8, 0xC3FF),
    "cutlass-4.2.1.next3.encode-gemv-epilogue": _gemv(0.37, 9, 0xFFFF),
}
"""Kernels whose threads exchange values, and what they are launched with."""


def grids(trees: Path, work: Path) -> None:
    """Cubins and ``grids.json``, in ``work``."""
    toolchain = find_toolchain()
    work.mkdir(exist_ok=True)
    for name in GRIDS:
        if name.startswith("grids."):
            source, flags = FLAGS.get(name, (f"{name.replace('.', '/')}.cu", []))
            own(toolchain, HERE / source, flags, work / f"{name}.cubin")
            continue
        target, version, variant, probe = re.fullmatch(r"(\w+)-([\d.]+)\.(\w+)\.(\S+)", name).groups()  # type: ignore[union-attr]
        for found, cubin, _ in upstream(trees, toolchain, {(target, version, variant): (probe,)}):
            assert found == name
            (work / f"{name}.cubin").write_bytes(cubin)
    (work / "grids.json").write_text(json.dumps(GRIDS, indent=1) + "\n")


def merge_grids(work: Path, results: Path) -> None:
    """The GPU's results, beside those of kernels that did not run again; the listings; how far off reciprocals are."""
    toolchain = find_toolchain()
    kept = json.loads((HERE / "grids.json").read_text())
    found = json.loads((results / "grids.json").read_text())
    for name, grid in found["grids"].items():
        cubin = work / f"{name}.cubin"
        assert hashlib.sha256(cubin.read_bytes()).hexdigest() == grid["cubin"], f"the GPU ran another {name}"
        listing(toolchain, cubin)
        kept["grids"][name] = grid | {"gpu": found["gpu"]}
    if (results / "grids.reciprocal.0").is_file():
        counts = struct.unpack("<5Q", (results / "grids.reciprocal.0").read_bytes())
        names = ("as rounded", "one above", "one below", "further off", "at an edge")
        kept["reciprocal"] = dict(zip(names, counts, strict=True))
    (HERE / "grids.json").write_text(json.dumps(kept, indent=1) + "\n")


def build(trees: Path, work: Path) -> None:
    """Cubins, ``programs.json`` and the harness, in ``work``."""
    toolchain = find_toolchain()
    work.mkdir(exist_ok=True)
    programs = {}
    for name, (source, flags, numbers) in OWN.items():
        own(toolchain, HERE / source, flags, work / f"{name}.cubin")
        programs[name] = numbers
    for name, cubin, numbers in upstream(trees, toolchain):
        (work / f"{name}.cubin").write_bytes(cubin)
        programs[name] = numbers
    own(toolchain, HERE / "harness.cu", [], work / "harness.cubin")
    described = {name: dict(zip(("lanes", "value", "out"), numbers, strict=True)) for name, numbers in programs.items()}
    (work / "programs.json").write_text(json.dumps(described, indent=1) + "\n")


def own(toolchain: Toolchain, source: Path, flags: list[str], cubin: Path) -> None:
    """Compile a source that is defined in this file."""
    arch = [] if any(flag.startswith("-arch") for flag in flags) else [f"-arch={ARCH}"]
    command = [toolchain.nvcc, *toolchain.flags, "-cubin", *arch, "-std=c++17", "-O3", *flags]
    command += [f"-I{toolchain.root / 'include/cccl'}", source, "-o", cubin]
    subprocess.run([str(part) for part in command], check=True, env=dict(toolchain.environ))


def upstream(
    trees: Path, toolchain: Toolchain, what: Mapping[tuple[str, str, str], Sequence[str]] = TREES
) -> Iterator[tuple[str, bytes, tuple[int, int, int]]]:
    """Probes of CUTLASS and vLLM, with and without a variant."""
    catalog = load()
    for (target, version, variant), wanted in what.items():
        with tempfile.TemporaryDirectory() as scratch:
            tree = trees / f"{target}-{version}"
            if variant != "pristine":
                copy = Path(scratch) / tree.name
                shutil.copytree(tree, copy)
                command = [sys.executable, "-m", "fp4patch", "apply", "--variant", variant, "--target-version", version]
                subprocess.run([*command, str(copy)], check=True)
                tree = copy
            compiler = Compiler(toolchain, catalog.target(target), Runner(toolchain.environ), Store(Path(scratch)))
            side = Side(SourceView(tree), catalog.target(target), Path(scratch))
            for patch in catalog.patches.values():
                for probe in patch.probes:
                    if probe.id.startswith(f"{target}/") and probe.name in wanted:
                        made = compiler.compile(probe, Path(patch.directory) / probe.source, ARCH, side)
                        assert not made.error, made.error
                        yield (
                            f"{target}-{version}.{variant}.{probe.name}",
                            made.content,
                            PROBES.get(probe.name, (0, 0, 0)),
                        )


def merge(work: Path, results: Path) -> None:
    """The GPU's results and the listings of the cubins that it ran."""
    toolchain = find_toolchain()
    found = json.loads(results.read_text())
    (HERE / "listings").mkdir(exist_ok=True)
    for name, program in found["programs"].items():
        cubin = work / f"{name}.cubin"
        assert hashlib.sha256(cubin.read_bytes()).hexdigest() == program["cubin"], f"the GPU ran another {name}"
        listing(toolchain, cubin)
    (HERE / "golden.json").write_text(json.dumps(found, indent=1) + "\n")


def listing(toolchain: Toolchain, cubin: Path) -> None:
    """Store the disassembler's JSON of a cubin."""
    command = [str(toolchain.nvdisasm), "-c", str(cubin)]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    (HERE / "listings" / f"{cubin.stem}.txt.gz").write_bytes(gzip.compress(text.encode(), mtime=0))


if __name__ == "__main__":
    {"build": build, "merge": merge, "grids": grids, "merge_grids": merge_grids}[sys.argv[1]](
        Path(sys.argv[2]), Path(sys.argv[3])
    )
