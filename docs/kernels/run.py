"""vLLM's own NVFP4 quantization kernels on a real GPU, byte for byte against a model in NumPy, and their speed.

    python docs/kernels/run.py --json docs/kernels/results.json TREE...

Each TREE is a vLLM that fp4patch has patched. Its kernels (quantize, SiLU-and-mul with quantize, experts) are compiled
by the PyTorch of this Python, with its own headers, for this machine's GPU, with software conversion
(-DFP4PATCH_FORCE_SOFTWARE). Needs PyTorch with CUDA, nvcc, ninja and a GPU from sm_80 on. Exit status 1 if a byte
differs.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.utils import cpp_extension

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parents[1]))  # a checkout is enough, nothing need be installed

from fp4patch.reference.block_scaled import scale_offset  # noqa: E402
from fp4patch.reference.quantize import quantize  # noqa: E402

SHAPES = ((1, 16), (3, 48), (127, 64), (129, 80), (200, 1040), (300, 1536))
"""Rows and columns; 128 rows and 64 columns are a tile of scales."""
GLOBAL_SCALES = (None, 1.0, 3e4, 1e-3)
"""None: 448 * 6 / max|x|, as vLLM chooses it."""
UNTOUCHED = 0xA5  # what output is filled with: a byte that a kernel forgets shows
BANDWIDTH_SHAPE = (16384, 8192)
REPEATS = 25
DTYPES = {"half": torch.float16, "bfloat16": torch.bfloat16}


# --- building --------------------------------------------------------------------------------------------------------


def build(tree: Path, work: Path) -> Any:
    """Compile the tree's kernels, and return them as a Python module."""
    fp4 = next(tree.glob("csrc/**/nvfp4_quant_kernels.cu")).parent
    texts = {path.name: path.read_text() for path in fp4.glob("*.cu*")}
    quant, experts = texts["nvfp4_quant_kernels.cu"], texts["nvfp4_experts_quant.cu"]
    fusion, utils = texts["activation_nvfp4_quant_fusion_kernels.cu"], texts["nvfp4_utils.cuh"]
    entry = re.search(r"void (scaled_fp4_experts_quant_\w+)\(", experts)
    assert entry, "the experts' entry point has another name"
    defines = {
        "FP4PATCH_FORCE_SOFTWARE": "1",
        "FP4PATCH_ACTIVATE": "compute_silu_mul" if "compute_silu_mul" in fusion + utils else "compute_silu",
        "FP4PATCH_PACKED_BY_WIDTH": str(int("PackedVec<Type, CVT_FP4_PACK16>" in utils)),
        "FP4PATCH_STABLE": str(int("torch::stable" in quant)),
        "FP4PATCH_LAYOUTS": str(int("is_sf_swizzled_layout" in quant)),
        "FP4PATCH_EXPERTS": entry[1],
        "FP4PATCH_FUSED_EXPERTS": str(int("silu_and_mul_scaled_fp4_experts_quant_sm1xxa(" in experts)),
        "FP4PATCH_WIDE_LOADS": str(int("ld256_cg_or_zero" in quant)),
        "USE_CUDA": "1",
    }
    usual = ["HALF_OPERATORS", "HALF_CONVERSIONS", "BFLOAT16_CONVERSIONS", "HALF2_OPERATORS"]
    flags = [
        *(f"-D{name}={value}" for name, value in defines.items()),
        *(f"-U__CUDA_NO_{what}__" for what in usual),
        *("-std=c++20", "--expt-relaxed-constexpr", "-O3", "-include", str(HERE / "before_sm100.cuh")),
    ]
    sources = [HERE / "binding.cu", HERE / "fusion.cu", fp4 / "nvfp4_quant_kernels.cu", fp4 / "nvfp4_experts_quant.cu"]
    sources += tree.glob("csrc/**/cuda_utils_kernels.cu")
    folder = work / tree.name
    folder.mkdir(parents=True, exist_ok=True)
    return cpp_extension.load(
        name=f"kernels_{re.sub(r'[^a-z0-9]', '_', tree.name)}",
        sources=[str(path) for path in sources],
        extra_include_paths=[str(fp4), str(tree / "csrc/libtorch_stable"), str(tree / "csrc")],
        extra_cflags=["-std=c++20"],
        extra_cuda_cflags=flags,
        build_directory=str(folder),
    )


# --- comparing -------------------------------------------------------------------------------------------------------


def tensors(rows: int, columns: int, dtype: torch.dtype, seed: int) -> Iterator[tuple[str, torch.Tensor]]:
    """Return inputs by name, on the GPU: typical activations, and values that break kernels."""
    random = np.random.default_rng(seed)
    normal = random.standard_normal((rows, columns))
    outliers = normal * np.where(random.random(columns) < 0.02, 60, 1)  # a few channels are large, as in transformers
    yield "normal", to_gpu(normal, dtype)
    yield "outlier channels", to_gpu(outliers, dtype)
    yield "zeros", to_gpu(np.where(random.random((rows, columns)) < 0.5, 0.0, -0.0), dtype)
    bits = torch.from_numpy(random.integers(0, 1 << 16, (rows, columns)).astype(np.int32)).to(torch.int16)
    yield "every pattern of bits", bits.cuda().view(dtype)
    # Blocks of one kind each: denormals, the largest numbers, infinities, NaN, values next to a rounding boundary.
    tiny, huge = torch.finfo(dtype).smallest_normal, torch.finfo(dtype).max
    kinds = [
        normal * tiny / 4,
        np.sign(normal) * huge,
        np.where(random.random((rows, columns)) < 0.2, np.inf * np.sign(normal), normal),
        np.where(random.random((rows, columns)) < 0.2, np.nan, normal),
        np.full((rows, columns), np.nan),
        np.sign(normal) * random.choice([0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5, 6], (rows, columns)),
    ]
    kind = random.integers(0, len(kinds), (rows, columns // 16)).repeat(16, axis=-1)
    yield "adversarial blocks", to_gpu(np.choose(kind, kinds), dtype)


def to_gpu(values: np.ndarray, dtype: torch.dtype) -> torch.Tensor:
    """Round once, from the float32 in which the values are drawn."""
    return torch.from_numpy(values.astype(np.float32)).to(dtype).cuda()


def global_scale(x: torch.Tensor, said: float | None) -> float:
    """Return vLLM's global scale: ``said``, or the scale with which the largest number uses all of E4M3 and E2M1."""
    if said is not None:
        return said
    finite = x[x.isfinite()].abs().float()
    peak = float(finite.max()) if finite.numel() else 0.0
    return min(448 * 6 / peak, 3e38) if peak else 1.0


class Comparison:
    """Caller of one build's kernels that counts the bytes that differ from the reference."""

    def __init__(self, kernels: Any) -> None:
        self.kernels = kernels
        self.found: dict[str, dict[str, Any]] = {}

    def reciprocal(self, x: np.ndarray) -> np.ndarray:
        """Compute rcp.approx.ftz on the GPU: the one operation that no document specifies to the last bit."""
        flat = torch.from_numpy(np.ascontiguousarray(x, dtype=np.float32).reshape(-1)).cuda()
        return self.kernels.reciprocal(flat).cpu().numpy().reshape(x.shape)  # type: ignore[no-any-return]

    def all(self) -> dict[str, dict[str, Any]]:
        """Run every kernel on every input, and return the numbers of compared and wrong bytes by kernel."""
        for dtype in DTYPES.values():
            for seed, (rows, columns) in enumerate(SHAPES):
                for name, x in tensors(rows, columns, dtype, seed):
                    for said in GLOBAL_SCALES:
                        self.plain(name, x, global_scale(x, said))
                    self.fused(name, x)
                    for experts in (3, 16):
                        self.experts(name, x, experts)
        return self.found

    def plain(self, name: str, x: torch.Tensor, scale: float) -> None:
        """Run the kernel that only quantizes."""
        out, scales = outputs(*x.shape)
        self.kernels.quantize(out, scales, x, torch.tensor([scale], device="cuda"))
        self.check("quantize", name, x, np.float32(scale), out, scales)

    def fused(self, name: str, x: torch.Tensor) -> None:
        """Run SiLU, product and quantization in one; a kernel of ours that calls vLLM's function shows the first
        half."""
        other = x.flip(0).contiguous()
        activated = self.kernels.activate(x, other)
        scale = global_scale(activated, None)
        out, scales = outputs(*x.shape)
        both = torch.cat([x, other], dim=1)
        self.kernels.silu_and_mul_quantize(out, scales, both, torch.tensor([scale], device="cuda"))
        self.check("silu_and_mul_quantize", name, activated, np.float32(scale), out, scales)

    def experts(self, name: str, x: torch.Tensor, count: int) -> None:
        """Deal rows to experts at random, some to none; each has a scale of its own and its scales in whole tiles."""
        rows, columns = x.shape
        borders = np.sort(np.random.default_rng(count).integers(0, rows + 1, count - 1))
        borders = np.concatenate([[0], borders, [rows]]).astype(np.int32)
        sizes = np.diff(borders)
        starts = np.concatenate([[0], np.cumsum(-(-sizes // 128) * 128)]).astype(np.int32)
        given = np.array([global_scale(x, None) * 2.0**-i for i in range(count)], dtype=np.float32)
        where = [torch.from_numpy(a).cuda() for a in (given, borders, starts)]
        place = starts[:-1].repeat(sizes) + np.arange(rows) - borders[:-1].repeat(sizes)
        for kernel in ("quantize_experts", "silu_and_mul_quantize_experts"):
            if not hasattr(self.kernels, kernel):
                continue
            quantized, source = x, x
            if kernel.startswith("silu"):
                other = x.flip(0).contiguous()
                source, quantized = torch.cat([x, other], dim=1), self.kernels.activate(x, other)
            out, scales = outputs(rows, columns, scale_rows=int(starts[-1]))
            getattr(self.kernels, kernel)(out, scales, source, *where)
            self.check(kernel, name, quantized, given.repeat(sizes), out, scales, place)

    def check(
        self,
        kernel: str,
        name: str,
        x: torch.Tensor,
        scale: Any,
        out: torch.Tensor,
        scales: torch.Tensor,
        place: np.ndarray | None = None,
    ) -> None:
        """Count the differences. ``place``: the row of the scales' tiles that each row of the tensor has."""
        rows, columns = x.shape
        packed, expected = quantize(x.float().cpu().numpy(), scale, self.reciprocal)
        row = (np.arange(rows) if place is None else place)[:, None]
        at = scale_offset(row, np.arange(columns // 16)[None, :], columns // 16)
        flat = scales.view(torch.uint8).cpu().numpy().reshape(-1)
        wrong = int((out.cpu().numpy() != packed).sum()), int((flat[at] != expected).sum())
        rest = np.delete(flat, at.reshape(-1))
        one = self.found.setdefault(
            kernel, {"payload bytes": 0, "scale bytes": 0, "wrong payload": 0, "wrong scales": 0, "padding": []}
        )
        one["payload bytes"] += packed.size
        one["scale bytes"] += expected.size
        one["wrong payload"] += wrong[0]
        one["wrong scales"] += wrong[1]
        state = "zeros" if not rest.any() else "untouched" if (rest == UNTOUCHED).all() else "mixed"
        if rest.size and state not in one["padding"]:
            one["padding"].append(state)
        if any(wrong):
            one.setdefault("first", f"{name}, {tuple(x.shape)}, {x.dtype}, global scale {np.ravel(scale)[0]}")


def outputs(rows: int, columns: int, scale_rows: int | None = None) -> tuple[torch.Tensor, torch.Tensor]:
    """Allocate codes (rows, columns / 2) and scales in whole tiles, as vLLM does."""
    tall = -(-(rows if scale_rows is None else scale_rows) // 128) * 128
    wide = -(-columns // 64)
    out = torch.full((rows, columns // 2), UNTOUCHED, dtype=torch.uint8, device="cuda")
    return out, torch.full((tall, wide * 4), UNTOUCHED, dtype=torch.uint8, device="cuda").view(torch.int32)


# --- measuring -------------------------------------------------------------------------------------------------------


def bandwidths(builds: dict[str, Any]) -> dict[str, Any]:
    """Measure GB/s, read and written: each build's quantize kernel and a copy, all in turn in each repeat."""
    rows, columns = BANDWIDTH_SHAPE
    x = torch.randn(rows, columns, device="cuda").to(torch.bfloat16)
    target = torch.empty_like(x)
    out, scales = outputs(rows, columns)
    scale = torch.tensor([global_scale(x, None)], device="cuda")
    moved = x.numel() * 2 + out.numel() + rows * columns // 16
    works: dict[str, tuple[Callable[[], Any], int]] = {"copy": (lambda: target.copy_(x), 2 * x.numel() * 2)}
    for name, kernels in builds.items():
        works[name] = (lambda k=kernels: k.quantize(out, scales, x, scale), moved)  # type: ignore[misc]
    rates: dict[str, list[float]] = {name: [] for name in works}
    for repeat in range(REPEATS + 3):
        for name, (work, size) in works.items():
            begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            begin.record()
            work()
            end.record()
            end.synchronize()
            if repeat >= 3:  # the first ones warm up
                rates[name].append(size / begin.elapsed_time(end) / 1e6)
    copies = np.array(rates["copy"])
    return {
        name: {
            "GB/s": round(float(np.median(found)), 1),
            "of copy": round(float(np.median(np.array(found) / copies)), 3),
            "spread": [round(float(np.quantile(found, q)), 1) for q in (0.05, 0.95)],
        }
        for name, found in rates.items()
    }


# --- the whole -------------------------------------------------------------------------------------------------------


def main() -> int:
    """Build, compare and measure; the exit status is 0 if every byte was right."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("trees", nargs="+", type=Path)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--work", type=Path, default=Path("build/kernels"), help="where to compile")
    arguments = parser.parse_args()
    if not torch.cuda.is_available():
        print("run.py: there is no CUDA GPU that this PyTorch can use", file=sys.stderr)  # noqa: T201 - a script
        return 2
    major, minor = torch.cuda.get_device_capability()
    os.environ["TORCH_CUDA_ARCH_LIST"] = f"{major}.{minor}"
    trees = [tree.resolve() for tree in arguments.trees]
    with ThreadPoolExecutor(len(trees)) as pool:
        builds = dict(zip((t.name for t in trees), pool.map(lambda t: build(t, arguments.work), trees), strict=True))
    found = {name: Comparison(kernels).all() for name, kernels in builds.items()}
    document = {
        "gpu": torch.cuda.get_device_name(),
        "torch": torch.__version__,
        "shapes": SHAPES,
        "dtypes": list(DTYPES),
        "bytes": found,
        "bandwidth": {"shape": BANDWIDTH_SHAPE, "dtype": "bfloat16", "rates": bandwidths(builds)},
    }
    text = json.dumps(document, indent=1)
    if arguments.json:
        arguments.json.write_text(text + "\n")
    print(text)  # noqa: T201 - a script
    return int(any(one["wrong payload"] or one["wrong scales"] for each in found.values() for one in each.values()))


if __name__ == "__main__":
    sys.exit(main())
