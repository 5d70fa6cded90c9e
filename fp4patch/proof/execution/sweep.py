"""The program that runs translated machine code on every input: its files, its compilation, and what it writes."""

import platform
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import NamedTuple

from fp4patch.catalog.probe import BITS, Executes, stored_bits
from fp4patch.core.errors import ProofError
from fp4patch.core.process import Runner
from fp4patch.proof.execution.result import Ran
from fp4patch.proof.specification import interval_lines
from fp4patch.sass.immediates import corners
from fp4patch.sass.program import STRAY, Kernel, compile_host, for_this_processor
from fp4patch.sass.translate import RUNTIME, runtime

# A loop over threads becomes vectors where no jump is left in it: without the threading of jumps predicated
# instructions stay selections. The exceptions that a comparison raises are not used. Code with jumps of its own never
# becomes vectors.
_FAST = ("-O3", "-fno-trapping-math")
_STRAIGHT = ("-fno-thread-jumps",)
_WIDE = ("-mprefer-vector-width=512",) if platform.machine() in ("x86_64", "AMD64") else ()
_INPUTS = {"float32": 32, "float16": 16, "bfloat16": 8}

CORNERS_ALONE = 1 << 31
"""A stride that leaves one block of the sweep."""


class Swept(NamedTuple):
    """What a program found: at the boundaries, of which each goes through every lane, and in the sweep."""

    corners: Ran
    sweep: Ran


def build(
    folder: Path,
    kernel: Kernel,
    executes: Executes,
    *,
    compiler: Path | str = "gcc",
    environ: Mapping[str, str] | None = None,
    quick: bool = False,
) -> Path:
    """Write the program to ``folder`` and compile it; SassError with the compiler's words where it does not.

    ``quick`` compiles in less time what runs in more: for a few inputs.
    """
    texts = {
        "sweep.c": (resources.files("fp4patch.proof.execution") / "sweep.c").read_text(encoding="utf-8"),
        RUNTIME: runtime(),
        "immediates.inc": "".join(f"{word:#x}u,\n" for word in corners(kernel.listing, 32)),
        "intervals.inc": interval_lines(executes.output),
        "kernel.inc": kernel.c,
    }
    defines = (
        f"-DFP4PATCH_LANES={executes.lanes}",
        f"-DFP4PATCH_INPUT={_INPUTS[executes.input]}",
        f"-DFP4PATCH_BITS={stored_bits(executes.output)}",
        f"-DFP4PATCH_SIGN={1 << BITS[executes.output] - 1}",
        f"-DFP4PATCH_PARAMETERS={kernel.layout.parameters}",
        f"-DFP4PATCH_BLOCK_SIZE={kernel.layout.block_size}",
    )
    straight = () if "goto " in kernel.c else _STRAIGHT
    how = ("-O0",) if quick else (*_FAST, *for_this_processor(str(compiler)), *_WIDE, *straight)
    compile_host(folder, texts, [str(compiler), *how, *defines, "sweep.c", "-o", "sweep", "-lm"], environ)
    return folder / "sweep"


def run(runner: Runner, program: Path, *, threads: int = 1, stride: int = 1, turns: Sequence[int] = (0,)) -> Swept:
    """Return its output over all inputs, or over every so many blocks of 1024 threads.

    Inputs run once for each of ``turns``, rotated by so many lanes. ProofError if the kernel leaves its memory or
    crashes.
    """
    command = [str(program), *map(str, (threads, stride, ",".join(map(str, turns))))]
    status, written, _ = runner.run(command, scratch=program.parent)
    lines = written.splitlines()
    if status == STRAY:
        raise ProofError(lines[-1])
    if status != 0 or not lines or lines[-1] != "end":
        raise ProofError(f"the translated machine code did not run to its end: status {status}")
    corners, swept = map(_counts, lines[:-1])
    return Swept(corners, swept)


def _counts(line: str) -> Ran:
    """Return the counts of a line: ``sweep 4294967296 3 1 3e800001 1 0``, the last three in hexadecimal if any."""
    _, inputs, wrong, signs, *first = line.split()
    text = "0x{0} gives 0x{2}, not 0x{1}".format(*first) if first else ""
    return Ran("inputs", int(inputs), int(wrong), int(signs), text)
