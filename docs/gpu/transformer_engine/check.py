"""Compare TransformerEngine's NVFP4 kernels with their model in NumPy, byte for byte, and measure their bandwidth.

Usage: check.py LIBRARY PRISTINE OUT: the libraries of the patched and of the pristine tree; OUT gets check.json and, of
what differs, differs.npz. Everything that is compared is computed from fixed seeds.
"""

from __future__ import annotations

import ctypes
import json
import subprocess
import sys
import time
import traceback
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import bridge
import draws
import numpy as np
import torch
from numpy.typing import NDArray
from nvfp4_models import hadamard_transform, quantize_as_transformer_engine

from fp4patch.reference.formats import e2m1_encode, e2m1_encode_stochastic, e4m3_decode, pack, random_bytes

SEED, OFFSET = 0x0123_4567_89AB_CDEF, 5
LARGEST = np.finfo(np.float32).max


@dataclass
class Tally:
    """Comparisons, and the arrays that differ."""

    rows: list[dict[str, Any]] = field(default_factory=list)
    kept: dict[str, NDArray[Any]] = field(default_factory=dict)

    def compare(self, name: str, got: NDArray[Any], expected: NDArray[Any]) -> None:
        """Count what differs, and keep it where it is small."""
        wrong = int((got != expected).sum()) if got.shape == expected.shape else -1
        self.rows.append({"name": name, "bytes": int(got.nbytes), "wrong": wrong})
        if wrong and len(self.kept) < 40 and got.nbytes <= 1 << 20:
            self.kept[f"{name}.got"], self.kept[f"{name}.expected"] = got, expected


def tensors() -> Iterator[tuple[str, NDArray[np.float32], torch.dtype]]:
    """Yield matrices as float32, each exact in its type."""
    random = np.random.default_rng(0)
    patterns = (random.permutation(1 << 16).astype(np.uint32) << np.uint32(16)).view(np.float32).reshape(256, 256)
    finite = np.where(np.isfinite(patterns), patterns, np.float32(0))
    normal = random.standard_normal((1024, 512), dtype=np.float32) * np.exp(
        random.standard_normal((1024, 1), dtype=np.float32)
    )
    yield "all 2^16 patterns", patterns, torch.bfloat16
    yield "all finite patterns", finite, torch.bfloat16
    yield "patterns below 1", np.where(np.abs(finite) < 1, finite, np.float32(0)), torch.bfloat16
    yield "normal", in_bfloat16(normal), torch.bfloat16
    yield "normal, 160 x 96", in_bfloat16(normal[:160, :96]), torch.bfloat16
    yield "zeros", np.zeros((128, 128), np.float32), torch.bfloat16
    yield "all 2^16 patterns", patterns, torch.float32
    yield "normal", normal, torch.float32
    yield "normal, 48 x 80", normal[:48, :80].copy(), torch.float32
    yield "bits", random.integers(0, 1 << 32, (512, 256), dtype=np.uint32).view(np.float32), torch.float32
    yield "normal", normal.astype(np.float16).astype(np.float32), torch.float16


def in_bfloat16(x: NDArray[np.float32]) -> NDArray[np.float32]:
    """Round to bfloat16."""
    rounded: NDArray[np.float32] = torch.from_numpy(x).bfloat16().float().numpy()
    return rounded


def on_device(x: NDArray[np.float32], dtype: torch.dtype) -> torch.Tensor:
    """Return the matrix in its type, by its bits, so that no NaN is changed on the way."""
    bits = np.ascontiguousarray(x).view(np.uint32)
    if dtype is torch.bfloat16:
        return torch.from_numpy((bits >> np.uint32(16)).astype(np.uint16).view(np.int16)).cuda().view(torch.bfloat16)
    if dtype is torch.float16:
        return torch.from_numpy(x.astype(np.float16)).cuda()
    return torch.from_numpy(bits.view(np.int32)).cuda().view(torch.float32)


def peak(x: NDArray[np.float32]) -> torch.Tensor:
    """Return the largest magnitude, without NaN."""
    return torch.tensor([np.abs(np.where(np.isnan(x), np.float32(0), x)).max()], dtype=torch.float32, device="cuda")


KERNELS = {
    "tuned": bridge.TUNED,
    "tuned, bfloat16 scales": bridge.TUNED_BF16_SCALES,
    "squares": bridge.SQUARES,
    "any input": bridge.ANY,
    "any input, squares": bridge.ANY_SQUARES,
}


def words(kernel: int, rows: int, columns: int, *, identity: bool, transpose: bool) -> tuple[draws.Words, draws.Words]:
    """Return the random words of a kernel for the matrix and its transpose."""
    if kernel in (bridge.TUNED, bridge.TUNED_BF16_SCALES):
        return draws.tuned(SEED, OFFSET, rows, columns, transpose=transpose)
    if kernel == bridge.SQUARES:
        return draws.squares(SEED, OFFSET, rows, columns, identity=identity, transpose=transpose)
    return draws.any_input(SEED, OFFSET, rows, columns, identity=identity, transpose=transpose)


def plus_zero(a: NDArray[np.float32], b: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return a * b + 0, rounded once: a product that is zero becomes +0, one that is too small keeps its sign."""
    return np.where((a == 0) | (b == 0), np.float32(0), a * b)


def expected(
    x: NDArray[np.float32], kernel: int, random: NDArray[np.uint8] | None
) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Return payload and scales of a matrix."""
    of = quantize_as_transformer_engine(x, random=random, squares=kernel in (bridge.SQUARES, bridge.ANY_SQUARES))
    if kernel != bridge.TUNED_BF16_SCALES:
        return of.packed, of.scales
    # The factor of a block is encode scale / block scale in bfloat16.
    with np.errstate(all="ignore"):
        largest = np.abs(np.where(np.isnan(x), np.float32(0), x)).max()
        whole = np.float32(448 * 6) / largest
        encode = np.float32(1) if largest == 0 or whole == 0 else min(whole, LARGEST)
        factors = np.fmin(encode / e4m3_decode(of.scales), np.float32(3.3895313892515355e38))
        scaled = plus_zero(x.reshape(len(x), -1, 16), in_bfloat16(factors)[..., None]).reshape(x.shape)
    return pack(e2m1_encode(scaled) if random is None else e2m1_encode_stochastic(scaled, random)), of.scales


def whole_kernels(library: Any, tally: Tally) -> None:
    """Run every kernel on every matrix that it takes."""
    state = bridge.random_state(SEED, OFFSET)
    for name, x, dtype in tensors():
        source, amax = on_device(x, dtype), peak(x)
        height, width = x.shape
        for title, kernel in KERNELS.items():
            if kernel < bridge.ANY and (dtype is not torch.bfloat16 or height % 32 or width % 32):
                continue
            for stochastic in (False, True):
                for columns, rows in ((True, True), (False, True), (True, False)):
                    if not rows and kernel in (bridge.TUNED, bridge.TUNED_BF16_SCALES):
                        continue
                    got = bridge.quantize(
                        library, kernel, source, amax, rows=rows, columns=columns, state=state if stochastic else None
                    )
                    torch.cuda.synchronize()
                    drawn = (
                        words(kernel, height, width, identity=rows, transpose=columns) if stochastic else (None, None)
                    )
                    label = f"{title} | {dtype} | {name} | {'stochastic' if stochastic else 'nearest'}"
                    for side, matrix, data, scales, bits in (
                        ("rows", x, got.data, got.scales, drawn[0]),
                        ("columns", np.ascontiguousarray(x.T), got.data_t, got.scales_t, drawn[1]),
                    ):
                        if data is None or scales is None:
                            continue
                        random = None if bits is None else draws.bytes_of(bits)
                        payload, block_scales = expected(matrix, kernel, random)
                        which = f"{label} | {side}{'' if rows and columns else ' alone'}"
                        tally.compare(f"{which} | payload", data.cpu().numpy(), payload)
                        kept = scales.cpu().numpy()[: block_scales.shape[0], : block_scales.shape[1]]
                        tally.compare(f"{which} | scales", kept, block_scales)


def distance(got: NDArray[np.float32], exact: NDArray[np.float32]) -> dict[str, Any]:
    """Return how many sums differ from the exact ones, rounded, and by what part of the largest of the sixteen."""
    largest = np.abs(exact.reshape(len(exact), -1, 16)).max(axis=-1, keepdims=True)
    errors = np.abs(got - exact).reshape(*largest.shape[:2], 16) / np.where(largest > 0, largest, np.float32(1))
    return {"differ": int((got != exact).sum()), "largest_relative_error": float(errors.max())}


def transformed(library: Any, tally: Tally) -> list[dict[str, Any]]:
    """Run the random Hadamard transform and the quantization of what it gives.

    A tensor core's sum is not exact, so the transform is measured, and what follows it is compared from its result on.
    """
    state, found = bridge.random_state(SEED, OFFSET), []
    for name, x, dtype in tensors():
        if dtype is not torch.bfloat16 or name.startswith("all") or x.shape[0] % 32 or x.shape[1] % 32:
            continue
        source = on_device(x, dtype)
        got = bridge.hadamard(library, source)
        reference = hadamard_transform(np.ascontiguousarray(x.T))
        result = got.float().cpu().numpy()
        found.append({"name": name, "values": result.size, **distance(result, reference)})
        after = peak(result)
        out = bridge.quantize(library, bridge.TUNED, got, after, columns=False, state=state)
        bits, _ = draws.tuned(SEED, OFFSET, *result.shape, transpose=False)
        payload, scales = expected(result, bridge.TUNED, draws.bytes_of(bits))
        assert out.data is not None
        assert out.scales is not None
        tally.compare(f"tuned | after the transform | {name} | payload", out.data.cpu().numpy(), payload)
        tally.compare(
            f"tuned | after the transform | {name} | scales",
            out.scales.cpu().numpy()[: scales.shape[0], : scales.shape[1]],
            scales,
        )
    return found


FUNCTIONS = (
    ("mul_cvt_bf16_to_fp4_4x, stochastic", 4, True, True, False),
    ("mul_cvt_bf16_to_fp4_4x, nearest", 4, True, False, False),
    ("mul_cvt_fp32_to_fp4_4x, stochastic", 4, False, True, False),
    ("mul_cvt_fp32_to_fp4_4x, nearest", 4, False, False, False),
    ("mul_cvt_bf16_to_fp4_8x, float scale, stochastic", 8, True, True, False),
    ("mul_cvt_bf16_to_fp4_8x, float scale, nearest", 8, True, False, False),
    ("mul_cvt_bf16_to_fp4_8x, bfloat16 scale, stochastic", 8, True, True, True),
    ("mul_cvt_bf16_to_fp4_8x, bfloat16 scale, nearest", 8, True, False, True),
)


def functions(library: Any, tally: Tally) -> None:
    """Call each function of ptx.cuh: all bfloat16 patterns 16 times in random lanes, or 2^20 float32 patterns."""
    random = np.random.default_rng(1)
    for scale in (1.0, 0.375, 2.0**-20):
        for number, (name, lanes, bf16, stochastic, adds_zero) in enumerate(FUNCTIONS):
            if bf16:
                half = np.concatenate([random.permutation(1 << 16) for _ in range(16)]).astype(np.uint16)
                x = (half.astype(np.uint32) << np.uint32(16)).view(np.float32)
                source = torch.from_numpy(half.view(np.int16)).cuda()
            else:
                # Half of them where E2M1 is: exponents from 2^-4 to 2^4.
                bits = random.integers(0, 1 << 32, 1 << 20, dtype=np.uint32)
                near = bits & np.uint32(0x807FFFFF) | (123 + bits[::-1] % 9).astype(np.uint32) << np.uint32(23)
                x = np.where(np.arange(1 << 20) % 2, bits, near).astype(np.uint32).view(np.float32)
                source = torch.from_numpy(x.view(np.int32)).cuda()
            count = len(x) // lanes
            rbits = random.integers(0, 1 << 32, len(x) // 4, dtype=np.uint32)
            out = torch.zeros(count, dtype=torch.int32, device="cuda")
            device_bits = torch.from_numpy(rbits.view(np.int32)).cuda()
            failed = library.te_call(
                number, *(ctypes.c_void_p(t.data_ptr()) for t in (source, device_bits)), ctypes.c_float(scale),
                ctypes.c_void_p(out.data_ptr()), count,
            )  # fmt: skip
            torch.cuda.synchronize()
            assert not failed, name
            with np.errstate(all="ignore"):
                factor = np.array([scale], dtype=np.float32)
                scaled = plus_zero(x, factor) if adds_zero else x * factor
            codes = e2m1_encode_stochastic(scaled, random_bytes(rbits)) if stochastic else e2m1_encode(scaled)
            width = np.dtype(f"<u{lanes // 2}")
            tally.compare(
                f"{name} | scale {scale}", out.cpu().numpy().view(np.uint32).astype(width), pack(codes).view(width)
            )


def drawn(library: Any, tally: Tally) -> None:
    """Compare the kernels' generator with Philox4x32-10 in NumPy, and that with the published test vector."""
    assert [hex(word) for word in draws.philox(0, 0, 1, 4)[0]] == [
        "0x6627e8d5",
        "0xe169c58d",
        "0xbc57ac4c",
        "0x9b00dbd8",
    ]
    out = torch.zeros(1 << 16, dtype=torch.int32, device="cuda")
    state = bridge.random_state(SEED, OFFSET)
    library.te_draw(ctypes.c_void_p(state.data_ptr()), 1 << 10, 64, ctypes.c_void_p(out.data_ptr()))
    torch.cuda.synchronize()
    tally.compare(
        "random words", out.cpu().numpy().view(np.uint32), draws.philox(SEED, OFFSET, 1 << 10, 64).reshape(-1)
    )


def seconds(call: Any, repeats: int = 20) -> float:
    """Return the least time of a call, of several."""
    for _ in range(20):
        call()
    best = float("inf")
    for _ in range(repeats):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        call()
        end.record()
        torch.cuda.synchronize()
        best = min(best, start.elapsed_time(end) / 1000)
    return best


def bandwidth(library: Any) -> list[dict[str, Any]]:
    """Time each kernel on 8192 x 8192 values, beside a copy by the driver that moves as many bytes."""
    size, state, found = 8192, bridge.random_state(SEED, OFFSET), []
    for title, kernel in KERNELS.items():
        for dtype in (torch.bfloat16, torch.float32):
            if kernel < bridge.ANY and dtype is not torch.bfloat16:
                continue
            x = torch.randn(size, size, device="cuda", dtype=dtype)
            amax = x.abs().max().float().reshape(1)
            for stochastic in (False, True):
                for columns in (False, True):
                    room = bridge.Output(
                        *bridge.outputs(size, size), *(bridge.outputs(size, size) if columns else (None, None))
                    )
                    moved = x.nbytes + sum(
                        t.nbytes for t in (room.data, room.scales, room.data_t, room.scales_t) if t is not None
                    )
                    source = torch.empty(moved // 2, dtype=torch.uint8, device="cuda")
                    target = torch.empty_like(source)
                    call = partial(bridge.quantize, library, kernel, x, amax, columns=columns, room=room)
                    of_copy = seconds(partial(target.copy_, source))
                    of_kernel = seconds(partial(call, state=state if stochastic else None))
                    found.append(
                        {
                            "kernel": title,
                            "input": str(dtype),
                            "rounding": "stochastic" if stochastic else "nearest",
                            "transpose": columns,
                            "bytes": moved,
                            "seconds": of_kernel,
                            "seconds_of_copy": of_copy,
                            "fraction_of_copy": of_copy / of_kernel,
                        }
                    )
    return found


def zeros(pristine: Any) -> dict[str, Any]:
    """Return what the pristine kernels write here, where as on SM12x the instruction is missing."""
    x = torch.randn(128, 128, device="cuda", dtype=torch.bfloat16)
    amax = x.abs().max().float().reshape(1)
    out = bridge.quantize(pristine, bridge.TUNED, x, amax, state=bridge.random_state(SEED, OFFSET))
    torch.cuda.synchronize()
    assert out.data is not None
    assert out.scales is not None
    return {
        "payload_bytes": out.data.numel(),
        "not_zero": int((out.data != 0).sum()),
        "scales_not_zero": int((out.scales != 0).sum()),
    }


PARTS: dict[str, Any] = {
    "drawn": lambda library, _, tally: drawn(library, tally),
    "functions": lambda library, _, tally: functions(library, tally),
    "kernels": lambda library, _, tally: whole_kernels(library, tally),
    "transformed": lambda library, _, tally: transformed(library, tally),
    "bandwidth": lambda library, _, _tally: bandwidth(library),
    "zeros": lambda _, pristine, _tally: zeros(pristine),
}


def say(*words: object) -> None:
    """Print a line at once."""
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


def part(name: str, library: str, pristine: str, out: str) -> None:
    """Do one part in this process; a kernel that fails takes the whole process along."""
    tally, found, start = Tally(), {}, time.monotonic()
    try:
        libraries = [bridge.loaded(Path(path)) for path in (library, pristine)]
        found["device"] = torch.cuda.get_device_name()
        found["result"] = PARTS[name](*libraries, tally)
    except Exception:  # what was compared before it is kept
        found["failed"] = traceback.format_exc()
    found |= {"seconds": round(time.monotonic() - start, 2), "cases": tally.rows}
    Path(out, f"{name}.part").write_text(json.dumps(found))
    if tally.kept:
        kept: dict[str, Any] = {name.replace("/", "-"): value for name, value in tally.kept.items()}
        np.savez_compressed(Path(out, f"differs-{name}.npz"), **kept)


def main(library: str, pristine: str, out: str) -> None:
    """Do all parts, each in a process of its own, and write what was found."""
    found: dict[str, Any] = {}
    for name in PARTS:
        try:
            command = [sys.executable, __file__, name, library, pristine, out]
            done = subprocess.run(command, timeout=100, capture_output=True, text=True, check=False)
            say(name, done.returncode, done.stdout[-2000:], done.stderr[-2000:])
        except subprocess.TimeoutExpired:
            say(name, "did not end within 100 s")
        written = Path(out, f"{name}.part")
        found[name] = json.loads(written.read_text()) if written.exists() else {"failed": "it wrote nothing"}
        written.unlink(missing_ok=True)
        cases = found[name].get("cases", [])
        found[name]["compared"] = {
            "cases": len(cases),
            "bytes": sum(case["bytes"] for case in cases),
            "wrong_bytes": sum(max(case["wrong"], 0) for case in cases),
            "wrong_cases": sum(case["wrong"] != 0 for case in cases),
        }
        say(name, found[name]["compared"], found[name].get("failed", ""))
        Path(out, "check.json").write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    (part if sys.argv[1] in PARTS else main)(*sys.argv[1:])
