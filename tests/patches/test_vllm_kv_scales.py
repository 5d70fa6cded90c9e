"""`vllm/kv-scales`: what attention kernels read in a KV cache that vLLM's kernel filled, before and after.

The kernel is compiled for SM121 and SM100 and executed on the host. The cache is decoded here, token by token, with the
block scales in the order of the tokens or where the kernels of SM100 look for them, as vLLM's own test does from 0.30
on (tests/kernels/attention/test_cache.py).
"""

import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from cubins import compile_cuda, disassembled
from numpy.typing import NDArray
from vllm_edits import run

from fp4patch.core.arch import Arch
from fp4patch.proof.toolchain import Toolchain
from fp4patch.reference.formats import e2m1_decode, e4m3_decode
from fp4patch.sass import grid
from fp4patch.sass.translate import translate

PATCHES = Path(__file__).parents[2] / "patches/vllm"
STUBS = [*(PATCHES / "e2m1-asm/probes").glob("stubs*"), PATCHES / "kv-scales/probes/stubs-aten"]
PAGES = 4
TOKENS = 16
HEADS = 2
HEAD = 128
SCALES = HEAD // 16
DATA = TOKENS * HEADS * HEAD // 2
GLOBAL = 0.01

Floats = NDArray[np.float32]
Bytes = NDArray[np.uint8]
Fill = Callable[[Floats, Floats, NDArray[np.int64], bool], Bytes]


def kernel(toolchain: Toolchain, tree: Path, text: str, arch: str, folder: Path) -> Fill:
    """Return the kernel of this text: it fills pages with the keys and the values of tokens, at their slots."""
    folder.mkdir()
    (folder / "nvfp4_kv_cache_kernels.cu").write_text(text)
    include = [folder, tree / "csrc/libtorch_stable", tree / "csrc", *STUBS]
    flags = ["-cubin", f"-arch={arch}", "--expt-relaxed-constexpr", "-DFROM=__nv_bfloat16", "-DTYPE=c10::BFloat16"]
    source = (PATCHES / "kv-scales/probes/pages.cu").read_text()
    cubin = compile_cuda(toolchain, source, folder / "probe.cubin", *flags, *(f"-I{place}" for place in include))
    target = Arch.parse(arch)
    sass = disassembled(toolchain, cubin.read_bytes())
    code = translate(sass, arch=(target.major, target.minor), kernel="probe", grid=True)
    program = grid.build(folder, code)

    def fill(key: Floats, value: Floats, slots: NDArray[np.int64], by_heads: bool) -> Bytes:
        contents = [(part.view(np.uint32) >> 16).astype(np.uint16).tobytes() for part in (key, value)]
        contents += [struct.pack("<ff", GLOBAL, GLOBAL), slots.tobytes(), bytes(PAGES * 2 * (DATA + DATA // 8))]
        arrays = tuple(grid.Array(1 << 40 | n << 32, content, n == 4) for n, content in enumerate(contents))
        parameters = grid.pointers(arrays) + struct.pack("<iiii", HEADS, HEAD, TOKENS, by_heads)
        ((pages,), _) = grid.run(program, code, grid.Launch((len(slots), 1, 1), (32, 1, 1), parameters, arrays))
        return np.frombuffer(pages, dtype=np.uint8).reshape(PAGES, 2, -1)

    return fill


def read(side: Bytes, token: int, head: int, by_heads: bool, swizzled: bool) -> Floats:
    """Return the values of a token's head among the keys, or the values, of a page."""

    def row(token: int) -> int:
        return head * TOKENS + token if by_heads else token * HEADS + head

    codes = side[:DATA].reshape(-1, HEAD // 2)[row(token)]
    scales = side[DATA:].reshape(-1, SCALES)
    found = []
    for s in range(SCALES):
        t, at = token, s
        if swizzled:
            t, at = token // 4 * 4 + s // (SCALES // 4), s % (SCALES // 4) * 4 + token % 4
        found.append(scales[row(t), at])
    values = e2m1_decode(np.stack([codes & 15, codes >> 4], axis=1).reshape(-1))
    return (values * np.repeat(e4m3_decode(np.array(found)), 16) * np.float32(GLOBAL)).astype(np.float32)


@pytest.mark.parametrize("version", ["0.22.1", "0.31.0"])
def test_kernels_of_sm121_read_the_values_back_and_those_of_sm100_as_before(
    pristine_tree: Callable[[str, str], Path], toolchain: Toolchain, tmp_path: Path, version: str
) -> None:
    tree = pristine_tree("vllm", version)
    ((path, edited),) = run("vllm/kv-scales", tree).files.items()
    sides = {"pristine": path.read_text(), "patched": edited.text}
    random = np.random.default_rng(8)
    slots = random.permutation(PAGES * TOKENS)[5:]

    def numbers() -> Floats:
        drawn = random.standard_normal((len(slots), HEADS, HEAD))
        sizes = random.uniform(0.1, 4, (len(slots), HEADS, SCALES)).repeat(16, axis=2)
        return (drawn * sizes).astype(np.float32)

    key, value = numbers(), numbers()

    def error(pages: Bytes, side: int, right: Floats, by_heads: bool, swizzled: bool = False) -> float:
        got = [
            [read(pages[slot // TOKENS, side], slot % TOKENS, head, by_heads, swizzled) for head in range(HEADS)]
            for slot in slots
        ]
        return float(np.linalg.norm(np.array(got) - right) / np.linalg.norm(right))

    for arch in ("sm_121a", "sm_100a"):
        for side, text in sides.items():
            fill = kernel(toolchain, tree, text, arch, tmp_path / f"{arch}-{side}")
            in_order = arch == "sm_121a" and side == "patched"
            for by_heads in (True, False):
                pages = fill(key, value, slots, by_heads)
                assert error(pages, 0, key, by_heads) == pytest.approx(0.095, abs=0.003)
                assert error(pages, 1, value, by_heads, swizzled=not in_order) == pytest.approx(0.095, abs=0.003)
                assert error(pages, 1, value, by_heads, swizzled=in_order) > 0.5
                # The same numbers: then all bytes of the values are those of the keys, for who reads both alike.
                alike = fill(key, key, slots, by_heads)
                assert np.array_equal(alike[:, 0], alike[:, 1]) == in_order
