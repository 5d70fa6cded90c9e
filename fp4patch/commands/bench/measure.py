"""Speed of encoders on a GPU: build one program from all of them, run it, read its measurements.

Each group of functions is a translation unit of its own, so that two releases of one library, or a library before and
after its patches, are in one program and are measured in turn.
"""

import json
import re
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median

from fp4patch.commands.bench.result import BenchReport, BenchRow, Rate
from fp4patch.core import process
from fp4patch.core.arch import Arch
from fp4patch.core.errors import ProofError
from fp4patch.proof import numerics
from fp4patch.proof.gpu import Gpu
from fp4patch.proof.numerics import Subject
from fp4patch.proof.toolchain import Toolchain

REFERENCE = "predicate_sum"
"""Reference of all ratios: the encoder that CUTLASS 4.7 and others have independently."""

LANES = 8

NVIDIA_SUBJECT = numerics.Subject("cuda_fp4.hpp", LANES, "fp4patch_nvidia_x8(v)")
NVIDIA_PREAMBLE = """\
#include <cuda_fp4.h>
__device__ inline unsigned int fp4patch_nvidia_x8(const float (&v)[8]) {
  unsigned int packed = 0;
#pragma unroll
  for (int i = 0; i < 8; i += 2) {
    const float2 pair = make_float2(v[i], v[i + 1]);
    packed |= static_cast<unsigned int>(__nv_cvt_float2_to_fp4x2(pair, __NV_E2M1, cudaRoundNearest)) << 4 * i;
  }
  return packed;
}
"""
"""NVIDIA's own software conversion, from the toolkit's header."""

_VERSION = "1"
_PARTS = ('-DFP4PATCH_GROUPS="groups.inc"', '-DFP4PATCH_HEAD="head.inc"')
_NO_SOFTWARE = re.compile(r"not supported on \.target")


@dataclass(frozen=True)
class Group:
    """Functions of eight values that one translation unit makes known."""

    label: str
    """Owner of the functions, for messages."""
    preamble: str
    subjects: tuple[Subject, ...]
    include: tuple[Path, ...] = ()
    flags: tuple[str, ...] = ()


def build(
    groups: Sequence[Group], *, toolchain: Toolchain, arch: Arch, program: Path, fp4patch: str, jobs: int = 2
) -> tuple[str, ...]:
    """Write the program to ``program``: statically linked but for the driver, so that another machine can run it.

    A group that this target has no software for is left out; the notes state this, here and in what the program writes.
    ProofError if anything else does not compile.
    """
    with tempfile.TemporaryDirectory(prefix="fp4patch-bench-") as folder:
        work = Path(folder)
        numerics.write(work, {"bench.h": numerics.source("bench.h")})
        with ThreadPoolExecutor(max_workers=jobs) as pool:
            units_of = partial(_unit, work, toolchain, arch)
            built = list(pool.map(units_of, range(len(groups)), groups))
        notes = tuple(note for note in built if isinstance(note, str))
        units = [unit for unit in built if isinstance(unit, Path)]
        head = [("fp4patch-bench", _VERSION, fp4patch, toolchain.info.nvcc), *(("note", note) for note in notes)]
        literals = (json.dumps("\t".join(line) + "\n", ensure_ascii=False) for line in head)
        files = {
            "head.inc": "\n".join([*literals, ""]),
            "groups.inc": "".join(f"FP4PATCH_GROUP(fp4patch_{unit.parent.name})\n" for unit in units),
            "bench.cu": numerics.source("bench.cu"),
        }
        numerics.write(work, files)
        command = [*_compiler(toolchain, arch), *_PARTS, "bench.cu", *map(str, units)]
        command += ["-cudart=static", "-o", str(program)]
        done = process.run(command, limit=None, folder=work, environ=toolchain.environ)
        if done.status:
            raise ProofError("the bench program does not compile", help=done.said)
    return notes


def _unit(work: Path, toolchain: Toolchain, arch: Arch, index: int, group: Group) -> Path | str:
    """Return the group's object file, or why it is left out."""
    folder = work / f"group{index}"
    folder.mkdir()
    texts = numerics.subject_files(group.preamble, group.subjects)
    texts |= {"intervals.inc": numerics.interval_lines(), "group.cu": numerics.source("bench_group.cu")}
    numerics.write(folder, texts)
    command = [
        *(*_compiler(toolchain, arch), *numerics.DEFINES, f"-DFP4PATCH_GROUP=fp4patch_group{index}"),
        *(f"-I{path}" for path in (work, *group.include)),
        *(*group.flags, "-w", "-c", "group.cu", "-o", "group.o"),
    ]
    done = process.run(command, limit=None, folder=folder, environ=toolchain.environ)
    if done.status == 0:
        return folder / "group.o"
    if _NO_SOFTWARE.search(done.said):
        return f"{group.label} has the instruction only, and {arch} has not: nothing to measure"
    raise ProofError(f"{group.label} does not compile for {arch}", help=done.said)


def run(program: Path, gpu: Gpu) -> BenchReport:
    """Run the program on this machine's GPU; ProofError if it fails."""
    done = process.run([program], limit=None)
    if done.status:
        raise ProofError(f"the bench program did not run on {gpu.name}", help=done.err.strip())
    return read(done.out)


def read(text: str) -> BenchReport:
    """Parse the output of the program, from this or another machine; ProofError if it is wrong or incomplete."""
    lines = [line.split("\t") for line in text.splitlines()]
    if not lines or lines[0][:2] != ["fp4patch-bench", _VERSION]:
        raise ProofError("this is not what a bench program of this fp4patch wrote", help="run the program again")
    if lines[-1] != ["end"]:
        raise ProofError("the bench program ended early", help="run it again, and keep all of its output")
    try:
        (device,) = (line for line in lines if line[0] == "device")
        checks = {name: tuple(map(int, counts)) for kind, name, *counts in lines[1:-1] if kind == "check"}
        rates = {
            how: {name: tuple(map(float, values)) for kind, name, *values in lines[1:-1] if kind == how}
            for how in ("registers", "memory")
        }
        right = {name for name, (wrong, *_) in checks.items() if not wrong}
        if any(set(by_name) != right for by_name in rates.values()):
            raise ValueError("not every encoder that is right has its rates, or others have")
        rows = [
            BenchRow(name, wrong, nans, signs, *(_rate(rates[how], name) for how in ("registers", "memory")))
            for name, (wrong, nans, signs) in checks.items()
        ]
        rows.sort(key=lambda row: -(row.registers.median if row.registers else 0))
        return BenchReport(
            device=device[1],
            arch=device[2],
            multiprocessors=int(device[3]),
            fp4patch=lines[0][2],
            nvcc=lines[0][3],
            repeats=min((len(values) for by_name in rates.values() for values in by_name.values()), default=0),
            rows=tuple(rows),
            notes=tuple(line[1] for line in lines if line[0] == "note"),
        )
    except (ValueError, IndexError, KeyError, ZeroDivisionError) as error:
        raise ProofError(f"the bench program's output is damaged: {error}", help="run the program again") from error


def _rate(rates: dict[str, tuple[float, ...]], name: str) -> Rate | None:
    if name not in rates:
        return None
    values, reference = rates[name], rates[REFERENCE]
    quotients = [mine / theirs for mine, theirs in zip(values, reference, strict=True)]
    return Rate(median(values), min(values), max(values), median(quotients))


def _compiler(toolchain: Toolchain, arch: Arch) -> list[str]:
    return [str(toolchain.nvcc), *toolchain.flags, "-std=c++17", "-O3", f"-arch={arch}"]
