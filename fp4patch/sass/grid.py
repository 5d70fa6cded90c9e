"""Run whole grids of translated machine code on the host: warps whose threads exchange values, over arrays in memory.

What a kernel is launched with is all here: indices and sizes of the grid, constant bank 0, the arrays. Everything that
the launch does not define is poison, including registers that nothing wrote.
"""

import re
import struct
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Literal

from fp4patch.sass.error import SassError
from fp4patch.sass.program import (
    STRAY,
    STUCK,
    Kernel,
    compile_host,
    for_this_processor,
    processors,
    run_program,
)

Reciprocal = Literal["exact", "up", "down", "any"]
"""Result of MUFU.RCP: the rounded quotient, the float above or below it in magnitude, or any of the three."""

RECIPROCALS: tuple[Reciprocal, ...] = ("exact", "up", "down", "any")
_BANK = 0x2000
_LOCAL = 1024
WINDOW = 0x7EFF_0000_0000
"""Address of constant bank 0 in global memory, where kernels find tensor maps among their parameters."""


@dataclass(frozen=True)
class Array:
    """Global memory that a kernel may read, and write if ``writable``."""

    address: int
    content: bytes
    writable: bool = False


@dataclass(frozen=True)
class Launch:
    """A kernel's launch. ``parameters`` are its parameters as in memory."""

    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    parameters: bytes
    arrays: tuple[Array, ...]
    reciprocal: Reciprocal = "exact"
    poison: int = 0x2545F491
    shared: int = 0
    """Bytes of shared memory besides the kernel's own."""
    unwritten: bool = False
    """Whether a kernel may read shared memory that nothing wrote. Its content is poison, which must not matter."""
    races: bool = False
    """Whether two accesses to shared memory by different warps, one of them a store, are an error if nothing orders
    them: no barrier, no mbarrier, no atomic operation on one word. It takes several times as long."""


def build(
    folder: Path,
    kernel: Kernel,
    *,
    compiler: Path | str = "gcc",
    environ: Mapping[str, str] | None = None,
    quick: bool = False,
) -> Path:
    """Write the program to ``folder`` and compile it; SassError with the compiler's words where it does not.

    ``quick`` compiles in less time what runs in more.
    """
    here = resources.files("fp4patch.sass")
    names = ("grid.c", "runtime.h", "mma.h", "tensor_map.h")
    texts = {name: (here / name).read_text(encoding="utf-8") for name in names}
    texts["kernel.inc"] = kernel.c
    defined = [f"-DSASS_SHARED={kernel.layout.shared}", f"-DSASS_STACK={kernel.layout.stack}"]
    defined += [f"-DSASS_LOCAL={_LOCAL}"] if "sass_local_" in kernel.c else []
    options = ["-O0" if quick else "-Og", *for_this_processor(str(compiler)), *defined]
    compile_host(folder, texts, [str(compiler), *options, "grid.c", "-o", "grid", "-lm"], environ)
    return folder / "grid"


def run(program: Path, kernel: Kernel, launch: Launch) -> tuple[list[bytes], frozenset[int]]:
    """Return the writable arrays as the launch left them, and the lines of the conversions that were executed: see
    ``conversions``. SassError where the kernel leaves its memory, or crashes."""
    bank = _bank(kernel, launch)
    number = RECIPROCALS.index(launch.reciprocal)
    parts = [
        struct.pack("<8I", *launch.grid, *launch.block, number, launch.poison),
        struct.pack("<4I", _shared(kernel, launch), launch.unwritten, launch.races, len(bank)),
        bank,
    ]
    parts.append(struct.pack("<I", len(launch.arrays)))
    for array in launch.arrays:
        parts += [struct.pack("<QQI", array.address, len(array.content), array.writable), array.content]
    with tempfile.TemporaryDirectory(prefix="sass-") as folder:  # several may run at a time
        job, result = Path(folder, "launch"), Path(folder, "result")
        job.write_bytes(b"".join(parts))
        status, out, _ = run_program([program, job, result, str(processors())])
        if status in (STRAY, STUCK):
            raise _mistake(out, kernel)
        if status:
            raise SassError(f"the translated machine code did not run to its end: status {status}")
        content = result.read_bytes()
    found = []
    for array in launch.arrays:
        if array.writable:
            found.append(content[: len(array.content)])
            content = content[len(array.content) :]
    return found, conversions(kernel) & frozenset(struct.unpack(f"<{len(content) // 4}I", content))


_LIMITS = {(7, 5): 64, (8, 0): 163, (8, 6): 99, (8, 7): 163, (8, 9): 99}
"""Shared memory of a block in KB (CUDA C++ Programming Guide, "Technical Specifications per Compute Capability")."""


def _shared(kernel: Kernel, launch: Launch) -> int:
    """Return the bytes of shared memory of a block; SassError if there are not so many."""
    arch = kernel.listing.arch
    limit = _LIMITS.get(arch, 99 if arch[0] == 12 else 227) << 10
    size = -(-kernel.shared // 16) * 16 + launch.shared
    if size > limit:
        raise SassError(f"{size:,} bytes of shared memory for a block", help=f"sm_{arch[0]}{arch[1]} has {limit:,}")
    return size


def _mistake(out: str, kernel: Kernel) -> SassError:
    """Return an error with the instructions that the program names by line or address."""
    first, place, behind = (*out.strip().splitlines(), "", "", "")[:3]
    texts = {one.address: f"{one.address:#06x} {one.text}" for one in kernel.listing.instructions}
    if found := _LINE.fullmatch(place):
        where = f"{_instruction(kernel, int(found['line']), texts)}, block {found['block']}, thread {found['thread']}"
        if other := _BEHIND.fullmatch(behind):
            where = f"{_instruction(kernel, int(other['line']), texts)}, warp {other['warp']}; then {where}"
        return SassError(first, help=where)
    waits = [
        f"block {found['block']}, warp {found['warp']}: {found['threads']} threads wait at "
        f"{texts.get(int(found['at'], 16), found['at'])}"
        for found in map(_STUCK.fullmatch, out.strip().splitlines())
        if found
    ]
    return SassError("all threads wait for one another", help="\n".join(waits[:20]))


def _instruction(kernel: Kernel, line: int, texts: Mapping[int, str]) -> str:
    """Return the instruction that a line of the translation is about."""
    above = map(_COMMENT.search, reversed(kernel.c.splitlines()[:line]))
    comment = next(filter(None, above), None)
    return texts.get(int(comment["address"], 16), "") if comment else ""


# Example: behind line 12 warp 1
_BEHIND = re.compile(r"behind line (?P<line>\d+) warp (?P<warp>\d+)")
# Example: line 12 block 0 0 0 thread 3 0 0
_LINE = re.compile(r"line (?P<line>\d+) block (?P<block>[\d ]+) thread (?P<thread>[\d ]+)")
# Example: /* 0x0120 STG.E desc[UR4][R2.64], R5 */
_COMMENT = re.compile(r"/\* (?P<address>0x[0-9a-f]+) .*\*/")
# Example: stuck block 0 0 0 warp 1 threads 32 at 0x120
_STUCK = re.compile(r"stuck block (?P<block>[\d ]+) warp (?P<warp>\d+) threads (?P<threads>\d+) at (?P<at>0x[0-9a-f]+)")


def conversions(kernel: Kernel) -> frozenset[int]:
    """Return the lines of the translation that convert to E2M1; to E4M3 where none does."""
    lines = list(enumerate(kernel.c.splitlines(), start=1))
    found = (frozenset(n for n, line in lines if f"sass_to_{form}(" in line) for form in ("e2m1", "e4m3"))
    return next(filter(None, found), frozenset())


def _bank(kernel: Kernel, launch: Launch) -> bytes:
    """Constant bank 0 as the driver lays it out; poison where the launch does not define it."""
    words = [(launch.poison + at) * 0x9E3779B1 & 0xFFFF_FFFF for at in range(_BANK // 4)]
    bank = bytearray(struct.pack(f"<{len(words)}I", *words))
    layout = kernel.layout
    struct.pack_into("<3I", bank, layout.block_size, *launch.block)
    struct.pack_into("<3I", bank, layout.grid_size, *launch.grid)
    if layout.window is not None:
        struct.pack_into("<Q", bank, layout.window, WINDOW + layout.parameters)
    if layout.cluster is not None:
        struct.pack_into("<3I4x3f4x3II", bank, layout.cluster, 1, 1, 1, 1.0, 1.0, 1.0, *launch.grid, 1)
    bank[layout.parameters : layout.parameters + len(launch.parameters)] = launch.parameters
    return bytes(bank)


def pointers(arrays: Sequence[Array]) -> bytes:
    """Return the arrays' addresses, as parameters."""
    return struct.pack(f"<{len(arrays)}Q", *(array.address for array in arrays))
