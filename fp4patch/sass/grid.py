"""Run whole grids of translated machine code on the host: warps whose threads exchange values, over arrays in memory.

What a kernel is launched with is all here: indices and sizes of the grid, constant bank 0, the arrays. Everything that
the launch does not define is poison, including registers that nothing wrote.
"""

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Literal

from fp4patch.sass.error import SassError
from fp4patch.sass.program import STRAY, Kernel, compile_host, for_this_processor, run_program

Reciprocal = Literal["exact", "up", "down", "any"]
"""Result of MUFU.RCP: the rounded quotient, the float above or below it in magnitude, or any of the three."""

RECIPROCALS: tuple[Reciprocal, ...] = ("exact", "up", "down", "any")
_BANK = 0x2000


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
    texts = {name: (here / name).read_text(encoding="utf-8") for name in ("grid.c", "runtime.h")}
    texts["kernel.inc"] = kernel.c
    defined = [f"-DSASS_SHARED={kernel.layout.shared}", f"-DSASS_STACK={kernel.layout.stack}"]
    defined += ["-DSASS_LOCAL"] if "sass_local_" in kernel.c else []
    options = ["-O0" if quick else "-Og", *for_this_processor(str(compiler)), *defined]
    compile_host(folder, texts, [str(compiler), *options, "grid.c", "-o", "grid", "-lm"], environ)
    return folder / "grid"


def run(program: Path, kernel: Kernel, launch: Launch) -> tuple[list[bytes], frozenset[int]]:
    """Return the writable arrays as the launch left them, and the lines of the conversions that were executed: see
    ``conversions``. SassError where the kernel leaves its memory, or crashes."""
    bank = _bank(kernel, launch)
    number = RECIPROCALS.index(launch.reciprocal)
    parts = [struct.pack("<9I", *launch.grid, *launch.block, number, launch.poison, len(bank)), bank]
    parts.append(struct.pack("<I", len(launch.arrays)))
    for array in launch.arrays:
        parts += [struct.pack("<QQI", array.address, len(array.content), array.writable), array.content]
    job, result = program.parent / "launch", program.parent / "result"
    job.write_bytes(b"".join(parts))
    status, out, _ = run_program([program, job, result])
    if status == STRAY:
        raise SassError(out.strip())
    if status:
        raise SassError(f"the translated machine code did not run to its end: status {status}")
    content, found = result.read_bytes(), []
    for array in launch.arrays:
        if array.writable:
            found.append(content[: len(array.content)])
            content = content[len(array.content) :]
    return found, conversions(kernel) & frozenset(struct.unpack(f"<{len(content) // 4}I", content))


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
    bank[layout.parameters : layout.parameters + len(launch.parameters)] = launch.parameters
    return bytes(bank)


def pointers(arrays: Sequence[Array]) -> bytes:
    """Return the arrays' addresses, as parameters."""
    return struct.pack(f"<{len(arrays)}Q", *(array.address for array in arrays))
