"""Run all 2^32 float32 inputs through an encoder, on the host or on a GPU, and compare with the specification.

The C++ beside this module (``sweep/``) compares with the specification's list of intervals and knows nothing of
rounding.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from fp4patch.catalog.manifest import data_root
from fp4patch.catalog.rule import Promise
from fp4patch.core import process
from fp4patch.core.errors import ProofError
from fp4patch.core.store import key
from fp4patch.proof.cache import Cache, Dependency, Stored, files_read
from fp4patch.proof.gpu import Gpu
from fp4patch.proof.inputs import InputClass, Mismatch, NumericsReport, NumericsRow
from fp4patch.proof.specification import specification
from fp4patch.proof.toolchain import Toolchain
from fp4patch.proof.view import changed_since, file_digest

NVIDIA_REFERENCE = """\
#include <cuda_fp4.h>
namespace nvidia {
inline unsigned int e2m1(float x) { return __nv_cvt_float_to_fp4(x, __NV_E2M1, cudaRoundNearest); }
}
"""
"""The conversion that NVIDIA ships for hosts and GPUs without the instruction: the second witness."""

DEFINES = ('-DFP4PATCH_SUBJECTS="subjects.inc"', '-DFP4PATCH_NAMES="names.inc"', '-DFP4PATCH_INTERVALS="intervals.inc"')
"""Compiler flags of a program of ``sweep/``."""

_CLASSES = tuple(InputClass)


# --- on the host -----------------------------------------------------------------------------------------------------


def host_sweep(
    encoder: Path | str,
    function: str = "",
    *,
    subject: str = "",
    promise: Promise = Promise.EXACT,
    compiler: Path | str = "g++",
    include: Sequence[Path] = (),
    threads: int | None = None,
    cache: Cache | None = None,
) -> NumericsReport:
    """All 2^32 inputs through one value's encoder as the host's compiler builds it, on all cores.

    ``encoder`` is the path of a header of ours, or the text of any header; ``function`` is what to call,
    ``fp4patch_<name>::e2m1`` by default. ProofError if it does not compile or run.
    """
    name = subject or (encoder.stem if isinstance(encoder, Path) else function)
    text = encoder.read_text(encoding="utf-8") if isinstance(encoder, Path) else encoder
    called = Subject(name, 1, f"{function or f'fp4patch_{name}::e2m1'}(v[0])")
    (report,) = host_sweeps(
        text, (called,), promise=promise, compiler=compiler, include=include, threads=threads, what=name, cache=cache
    )
    return report


def host_sweeps(
    preamble: str,
    subjects: Sequence[Subject],
    *,
    promise: Promise = Promise.EXACT,
    compiler: Path | str = "g++",
    toolchain: Toolchain | None = None,
    include: Sequence[Path] = (),
    flags: Sequence[str] = (),
    threads: int | None = None,
    what: str = "the sweep",
    cache: Cache | None = None,
) -> tuple[NumericsReport, ...]:
    """All 2^32 inputs through each subject as host code, on all cores or ``threads`` of them.

    Each input goes through one lane. With a ``toolchain`` its nvcc compiles, as it compiles host code for users of
    headers that need it; else ``compiler`` does. What the ``cache`` has the output of is not compiled and not run
    again. ProofError if it does not compile or run.
    """
    started = time.monotonic()
    if toolchain:
        # Any architecture would do: there is no kernel in it.
        command, own = [str(toolchain.nvcc), *toolchain.flags], ["-x", "cu", "-cudart=static", "-w"]
        own += ["-Xcompiler", "-march=native,-pthread"]
        built_by = [native(toolchain.host_compiler), toolchain.info.nvcc, toolchain.info.cicc, toolchain.fingerprint]
        where = f"host, nvcc {toolchain.info.nvcc}"
    else:
        command, own, built_by = [str(compiler)], ["-march=native", "-pthread"], [native(compiler)]
        version = _run([str(compiler), "-dumpfullversion"], Path(), f"{compiler} does not state its version").strip()
        where = f"host, {Path(compiler).name} {version}"
    own += ["-std=c++17", "-O3", *flags, *DEFINES]
    files = program("host.cpp", preamble, subjects)
    anchors = {f"include {n}": path for n, path in enumerate(include)} | {"data": data_root().resolve()}
    if toolchain:
        anchors["toolkit"] = toolchain.root
    texts = (text.replace(str(anchors["data"]), "data") for file in files.items() for text in file)
    name = key("sweep", *built_by, *own, *texts, *map(_names, include))
    if cache and (known := cache.find(name, lambda file: file_digest(file.located(anchors)))):
        output = known.log
    else:
        begun = time.time()
        command += [*own, *(f"-I{path}" for path in include), "-MD", "-MF", "sweep.d", "host.cpp", "-o", "sweep"]
        with tempfile.TemporaryDirectory(prefix="fp4patch-numerics-") as folder:
            work = Path(folder)
            write(work, files)
            _run(command, work, f"{what} does not compile for the host", toolchain.environ if toolchain else None)
            read = [path for path in files_read(work / "sweep.d", work) if not path.is_relative_to(work)]
            sweep = [str(work / "sweep"), *([str(threads)] if threads else [])]
            output = _run(sweep, work, f"{what} did not run on the host")
        if cache and not any(changed_since(path, begun) for path in read):
            hashes = [(Dependency.of(path, anchors), file_digest(path) or "") for path in read]
            cache.store(name, hashes, Stored(b"", output))
    return _read(output, subjects, where=where, promise=promise, seconds=round(time.monotonic() - started, 3))


def native(compiler: Path | str) -> str:
    """Return what a host compiler states of itself, and of the processor for which it compiles here."""
    try:
        return process.run([compiler, "-march=native", "-E", "-v", "-x", "c++", "/dev/null"], limit=None).err
    except OSError:
        return ""  # the compilation reports why


def _names(folder: Path) -> str:
    """Return which files there are below a directory: a new one may be found before another."""
    return "\0".join(sorted(str(path.relative_to(folder)) for path in folder.rglob("*")))


# --- on a GPU --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Subject:
    """A function to sweep on a GPU: C++ whose value is the packed nibbles of ``v``, a ``const float (&)[lanes]``."""

    name: str
    lanes: int
    expression: str

    def __post_init__(self) -> None:
        if self.lanes not in (1, 2, 4, 8, 16):
            raise ValueError(f"{self.name}: {self.lanes} lanes do not divide 2^32 inputs, or do not fit 64 bits")


def encoder_subjects(encoder: Path) -> tuple[Subject, ...]:
    """Return every packing of one of our own encoder headers."""
    name = encoder.stem
    calls = {n: f"e2m1{f'_x{n}' if n > 1 else ''}({', '.join(f'v[{i}]' for i in range(n))})" for n in (1, 2, 4, 8, 16)}
    return tuple(Subject(f"{name} x{n}", n, f"fp4patch_{name}::{call}") for n, call in calls.items())


def device_sweep(
    preamble: str,
    subjects: Sequence[Subject],
    *,
    toolchain: Toolchain,
    gpu: Gpu,
    promise: Promise = Promise.EXACT,
    include: Sequence[Path] = (),
    flags: Sequence[str] = (),
) -> tuple[NumericsReport, ...]:
    """All 2^32 inputs through every lane of each subject, compiled for the GPU's bare target and run on it.

    A bare target has no E2M1 instruction, so what runs is the software path. ProofError if it does not compile or run.
    """
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="fp4patch-numerics-") as folder:
        work = Path(folder)
        write(work, program("device.cu", preamble, subjects))
        command = [str(toolchain.nvcc), *toolchain.flags, "-std=c++17", "-O3", f"-arch={gpu.arch}", "-cudart=static"]
        command += [f"-I{path}" for path in include]
        command += [*flags, *DEFINES, "device.cu", "-o", "sweep"]
        _run(command, work, "the sweep does not compile for the GPU", toolchain.environ)
        output = _run([str(work / "sweep")], work, f"the sweep did not run on {gpu.name}")
    return read_device(output, subjects, promise=promise, seconds=round(time.monotonic() - started, 3))


def read_device(
    output: str, subjects: Sequence[Subject], *, promise: Promise, seconds: float
) -> tuple[NumericsReport, ...]:
    """Return the reports in what a sweep program wrote; ProofError if a subject is missing or out of place."""
    device, _, rest = output.partition("subject ")
    where = device.removeprefix("device ").strip()
    found = f"subject {rest}" if rest else ""
    return _read(found, subjects, where=where, promise=promise, seconds=seconds, every_lane=True)


def _read(
    output: str, subjects: Sequence[Subject], *, where: str, promise: Promise, seconds: float, every_lane: bool = False
) -> tuple[NumericsReport, ...]:
    """Return a report for each subject. ``seconds`` is used for those that do not report their own."""
    _, *parts = output.split("subject ")
    names = [part.partition("\n")[0] for part in parts]
    if names != [subject.name for subject in subjects]:
        raise ProofError(f"the sweep on {where or 'the GPU'} ended after {len(names)} of {len(subjects)} subjects")
    return tuple(
        NumericsReport(
            subject=subject.name,
            where=where,
            lanes=subject.lanes,
            rows=tuple(row_of(line) for line in part.splitlines()[1:] if not line.startswith("seconds ")),
            promise=promise,
            seconds=next((float(s[8:]) for s in part.splitlines() if s.startswith("seconds ")), seconds),
            passes=subject.lanes if every_lane else 1,
        )
        for subject, part in zip(subjects, parts, strict=True)
    )


# --- the programs ----------------------------------------------------------------------------------------------------


def source(name: str) -> str:
    """Return a C++ file beside this module, in ``sweep/``."""
    return (resources.files("fp4patch.proof") / "sweep" / name).read_text(encoding="utf-8")


def program(main: str, preamble: str, subjects: Sequence[Subject]) -> dict[str, str]:
    """Return the files of a program that sweeps the subjects: ``main`` and what it includes.

    ``preamble`` is C++ text that makes the subjects' functions known. An expression may contain commas.
    """
    return {main: source(main), **subject_files(preamble, subjects), "intervals.inc": interval_lines()}


def subject_files(preamble: str, subjects: Sequence[Subject]) -> dict[str, str]:
    """Return the texts that a program includes to know its subjects, by file name."""
    described, named = [], []
    for index, subject in enumerate(subjects):
        known = f"{index}, {json.dumps(subject.name, ensure_ascii=False)}, {subject.lanes}"
        described.append(f"FP4PATCH_SUBJECT({known}, ({subject.expression}))")
        named.append(f"FP4PATCH_RUN({known})")
    return {"subjects.inc": "\n".join([preamble, *described, ""]), "names.inc": "\n".join([*named, ""])}


def interval_lines(form: str = "e2m1") -> str:
    """Return the specification as lines of a C++ initializer."""
    return "".join(f"{{{i.first:#x}, {i.last:#x}, {i.code}, {_CLASSES.index(i.cls)}}},\n" for i in specification(form))


def row_of(line: str) -> NumericsRow:
    """Return ``2 4278190080 3 1 3e800001:1:0``: class, inputs, mismatches, of the magnitude, the first of them."""
    cls, inputs, mismatches, magnitudes, *first = line.split()
    return NumericsRow(
        cls=_CLASSES[int(cls)],
        inputs=int(inputs),
        mismatches=int(mismatches),
        magnitudes=int(magnitudes),
        first=tuple(Mismatch(*(int(field, 16) for field in one.split(":"))) for one in first),
    )


def write(folder: Path, files: Mapping[str, str]) -> None:
    """Write the files of a program into a directory."""
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")


def _run(command: Sequence[str], folder: Path, failure: str, environ: Mapping[str, str] | None = None) -> str:
    """Return the output of the command; ProofError with its last error."""
    try:
        done = process.run(command, limit=None, folder=folder, environ=environ)
    except FileNotFoundError as error:
        raise ProofError(f"{failure}: there is no {command[0]}", help="install g++, or name a compiler") from error
    if done.status:
        raise ProofError(failure, help=done.said or f"it ended with status {done.status}")
    return done.out
