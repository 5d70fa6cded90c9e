"""From what a GPU loads of every file to one answer: whether FP4 works, the evidence, and one next step.

A fact that was not read makes no answer better, and code for a GPU makes up for no other file that lacks it.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from packaging.version import Version

from fp4patch.binaries import remedies
from fp4patch.binaries.fatbin import FIRST_WITH_FP4
from fp4patch.binaries.findings import Answer, Level
from fp4patch.binaries.report import (
    BinaryFile,
    BinaryReport,
    Loading,
    LoadOutcome,
    LostKernel,
    readable,
    total,
)
from fp4patch.core.arch import GB10, Arch
from fp4patch.core.cuda import ptx_needs
from fp4patch.core.wording import counted, listed, shortened

_NOTHING = "nothing"
_NOT_BUILT = (LoadOutcome.LOST, LoadOutcome.OTHER, LoadOutcome.ABSENT, LoadOutcome.UNWRITTEN)
_PROFILER = re.compile(r"(^|[/!])lib(cupti|nvperf|checkpoint)[\w.]*$")
"""NVIDIA's profilers hold one fatbin for each generation of GPUs: most load nowhere, and no model runs them."""


@dataclass(frozen=True)
class _OneGpu:
    """The part of a report that concerns one GPU."""

    gpu: Arch
    gpus: Sequence[Arch]
    """All GPUs of the question: a remedy serves them all, where one can."""
    report: BinaryReport
    reservations: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @cached_property
    def rows(self) -> list[tuple[BinaryFile, Loading]]:
        judged = (file for file in self.report.files if not _PROFILER.search(file.name))
        return [(file, row) for file in judged for row in file.loading if row.gpu == self.gpu]

    @cached_property
    def loaded(self) -> list[Loading]:
        return [row for _, row in self.rows if row.loads != _NOTHING]

    @cached_property
    def fatbins(self) -> Counter[str]:
        """Number of fatbins in each file."""
        return self._by_file(*LoadOutcome)

    @cached_property
    def absent(self) -> Counter[str]:
        """Number of fatbins in each file that would have been built for this GPU too, and were not."""
        return self._by_file(LoadOutcome.ABSENT)

    def _by_file(self, *outcomes: LoadOutcome) -> Counter[str]:
        numbers = Counter[str]()
        for file, row in self.rows:
            if row.outcome in outcomes:
                numbers[file.name] += row.fatbins
        return numbers

    def of(self, *outcomes: LoadOutcome) -> list[Loading]:
        return [row for _, row in self.rows if row.outcome in outcomes]

    @cached_property
    def missing(self) -> list[Loading]:
        """Rows whose FP4 code this GPU does not get, and no kernel of the same name elsewhere replaces."""
        elsewhere = {name for _, row in self.rows for name in row.native}
        found = self.of(LoadOutcome.LOST)
        for row in self.of(LoadOutcome.OTHER):
            lacking = {kernel.name for kernel in row.lost if not kernel.reason}
            alone = row.loads == _NOTHING or not self.of(LoadOutcome.NATIVE, LoadOutcome.SOFTWARE)
            if alone and not (lacking and lacking <= elsewhere):
                found.append(row)
        return found

    @cached_property
    def mostly_native(self) -> bool:
        """Whether FP4 works as a whole, and what is for other GPUs is less: that is a reservation then.

        A conversion alone does not make up for what is missing, nor does as much code in another file.
        """
        native = self.of(LoadOutcome.NATIVE)
        code = total(row.code for row in native)
        lost = sum(row.fatbins for row in self.missing)
        return bool(code.hardware and code.matrix) and lost < sum(row.fatbins for row in native)


def answer(gpu: Arch, gpus: Sequence[Arch], report: BinaryReport) -> Answer:
    """Return the answer for one GPU about all files of a report together. ``gpus``: all of the question."""
    about = _OneGpu(gpu, gpus, report)
    _collect(about)
    found = _decided(about)
    level, todo = found.level, found.todo
    if level is Level.GREEN and about.reservations:
        level = Level.YELLOW
    if level in (Level.YELLOW, Level.RED) and not todo and _lost_kernels(about):
        todo = _remedy(about, about.loaded)
    evidence = (*found.evidence, *about.reservations, *about.notes)
    return Answer(gpu, level, found.verdict, evidence, todo, len(about.reservations))


def _decided(about: _OneGpu) -> Answer:
    """Return the answer without the reservations."""
    gpu, rows = about.gpu, about.rows
    if not rows:
        return _without_code(about)
    fatbins = about.fatbins.total()
    if not about.loaded:
        holders = listed(sorted({group.arch for file in about.report.files for group in file.images}))
        why = f"none of {counted(fatbins, 'fatbin')} has code for {gpu}: {holders or 'nothing'}"
        return Answer(gpu, Level.RED, "nothing loads", (why,), _remedy(about, []))
    if about.missing and not about.mostly_native:
        verdict = "FP4 code that it has is for other GPUs"
        return Answer(gpu, Level.RED, verdict, _missing_why(about), _remedy(about, about.missing))
    lost = [file.name for file, _ in rows if _is_lost_library(file, gpu)]
    if lost:
        why = f"{shortened(lost)} has code for its family, and none for {gpu}"
        return Answer(gpu, Level.RED, "a library does not load", (why,), _remedy(about, []))
    absent = about.absent.total()
    reached = sum(row.fatbins for row in about.loaded)
    libraries = {file.name for file, _ in rows}
    lost_libraries = [name for name, number in about.absent.items() if number > about.fatbins[name] / 2]
    if absent > reached and not (about.mostly_native and 2 * len(lost_libraries) < len(libraries)):
        verdict = f"{absent:,} of {counted(fatbins, 'fatbin')} do not load"
        return Answer(gpu, Level.RED, verdict, (), _remedy(about, []))
    return _of_code(about)


def _of_code(about: _OneGpu) -> Answer:
    """Decide by the FP4 code that loads."""
    gpu, native, code = about.gpu, about.of(LoadOutcome.NATIVE), total(row.code for row in about.loaded)
    if software := about.of(LoadOutcome.SOFTWARE):
        names = [f"{name} ({counted(n, 'value')})" for name, n in total(row.code for row in software).encoders.items()]
        why = f"{', '.join(names)}, in {_targets(software)}"
        beside = (f"by hardware: {_hardware(native)}",) if native else ()
        return Answer(gpu, Level.YELLOW, "software converts to FP4", (why, *beside), _remedy(about, software))
    if not native:
        return _without_fp4(about)
    why = f"{_hardware(native)}, in {_targets(native)}"
    if not code.matrix:
        return Answer(gpu, Level.YELLOW, "it converts in hardware, and multiplies nothing in FP4", (why,))
    if not code.hardware:
        return Answer(gpu, Level.YELLOW, "it multiplies in hardware, and converts nothing to FP4", (why,))
    numbers = f"{counted(code.hardware, 'conversion')}, {counted(code.matrix, 'matrix instruction')}"
    return Answer(gpu, Level.GREEN, f"FP4 in hardware ({numbers})", (why,))


def _without_fp4(about: _OneGpu) -> Answer:
    """Decide where no FP4 instruction or encoder loads."""
    gpu = about.gpu
    if unwritten := about.of(LoadOutcome.UNWRITTEN):
        return Answer(gpu, Level.RED, "FP4 is emulated or missing", (), _remedy(about, unwritten))
    if about.report.sources > sum(row.fatbins for row in about.loaded):
        return _without_code(about)
    lacking = () if about.of(LoadOutcome.DESIGN) else ("no FP4 instruction, encoder or kernel for any target",)
    if all(row.loads.endswith("(JIT)") for row in about.loaded):
        verdict = "it loads by the driver's compiler alone, and has no FP4 code"
        return Answer(gpu, Level.YELLOW, verdict, lacking)
    return Answer(gpu, Level.YELLOW, f"it loads, and has no FP4 code for {gpu}", lacking)


def _without_code(about: _OneGpu) -> Answer:
    """Nothing was judged: there is no code, or it is compiled later."""
    if about.report.sources:
        verdict = f"it compiles {counted(about.report.sources, 'CUDA source')} when it runs"
        return Answer(about.gpu, Level.NONE, verdict, (), remedies.of("sources", gpu=about.gpu))
    verdict = "no device code was read" if about.report.unread else "there is no device code"
    if any(not file.loading for file in about.report.files):
        verdict = "its fatbins have no kernel, or code for the linker (LTO-IR) alone"
    if any(row.gpu == about.gpu for file in about.report.files for row in file.loading):
        verdict = "it has no device code but that of NVIDIA's profilers"
    return Answer(about.gpu, Level.NONE, verdict, (), remedies.of("no_code"))


# --- reservations and notes -------------------------------------------------------------------------------------------


def _collect(about: _OneGpu) -> None:
    """Note what is wrong with a part of the code, and what is as it should be."""
    groups: dict[str, list[LostKernel]] = {}
    for kernel in _lost_kernels(about, intended=True):
        groups.setdefault(kernel.reason, []).append(kernel)
    for reason, kernels in groups.items():
        said = _of_lost(kernels)
        (about.notes if reason else about.reservations).append(f"{said}, by design: {reason}" if reason else said)
    if unwritten := about.of(LoadOutcome.UNWRITTEN):
        named = sum(len(row.code.named) for row in unwritten)
        why = f"{counted(named, 'kernel')} named for FP4 in {_targets(unwritten)}, with neither an FP4 instruction"
        about.reservations.append(f"{why} nor a known encoder")
    if about.missing and about.mostly_native:
        about.reservations.append(" ".join(_missing_why(about)))
    names = [f"{n} of {counted(about.fatbins[name], 'fatbin')} of {name}" for name, n in about.absent.most_common()]
    if names and about.loaded:
        about.reservations.append(f"nothing loads of {shortened(names)}")
    if about.report.sources and about.rows:
        about.reservations.append(f"{counted(about.report.sources, 'CUDA source')} that it may compile: not judged")
    if about.gpu == GB10 and about.report.is_for_x86:
        about.reservations.append("the wheel is for x86-64, and machines with GB10 are arm64: check the aarch64 wheel")
    if jit := [row for _, row in about.rows if row.isa]:
        about.notes.append(_first_use(jit))


def _lost_kernels(about: _OneGpu, *, intended: bool = False) -> list[LostKernel]:
    """Return the kernels, each once, that load without their FP4 instructions, or are missing by design."""
    outcomes = (LoadOutcome.LOST, LoadOutcome.OTHER)
    rows = [row for _, row in about.rows if row.loads != _NOTHING or row.outcome not in outcomes]
    kernels = {kernel.name: kernel for row in rows for kernel in row.lost if intended or not kernel.reason}
    return list(kernels.values())


_CLASSES = {
    "nearest": "conversions to E2M1",
    "stochastic": "conversions with stochastic rounding",
    "decodings": "conversions from E2M1",
    "matrix": "FP4 matrix instructions",
}


def _of_lost(lost: Sequence[LostKernel]) -> str:
    shown = shortened(readable(kernel.name) for kernel in lost)
    classes = Counter(kind for kernel in lost for kind in kernel.lost)
    holders = listed(sorted({kernel.held_by for kernel in lost if kernel.held_by}))
    idle = Counter(kernel.idle.value for kernel in lost if kernel.idle)
    parts = [f"{number} without the {_CLASSES[kind]} of {holders}" for kind, number in sorted(classes.items())]
    parts += [f"{number} {what}" for what, number in sorted(idle.items())]
    return f"{counted(len(lost), 'kernel')} ({shown}): {', '.join(parts)}"


def _first_use(rows: Sequence[Loading]) -> str:
    archs = listed(sorted({row.loads.removesuffix(" (JIT)") for row in rows}))
    newest = max((row.isa for row in rows), key=Version)
    fatbins = counted(sum(row.fatbins for row in rows), "fatbin")
    cuda, driver = ptx_needs(newest)
    needs = f"a driver for CUDA {cuda}{f' ({driver})' if driver else ''} or later"
    return f"first use compiles {fatbins} from PTX: {archs}, PTX {newest}, which requires {needs}"


# --- words ------------------------------------------------------------------------------------------------------------


def _missing_why(about: _OneGpu) -> tuple[str, ...]:
    rows = about.missing
    lost = sum(row.fatbins for row in rows)
    reached = sum(row.fatbins for row in about.of(LoadOutcome.NATIVE, LoadOutcome.SOFTWARE))
    holders = listed(sorted({holder for row in rows for holder in row.held_by}))
    loads = listed(sorted({row.loads for row in rows} - {_NOTHING}))
    got = [f"{loads}, which does not have it"] if loads else []
    got += [_NOTHING] if any(row.loads == _NOTHING for row in rows) else []
    names = shortened(file.name for file, row in about.rows if any(row is one for one in rows))
    why = f"{lost} of {counted(lost + reached, 'fatbin')} with FP4 code have it for {holders} alone"
    kernels = shortened(readable(kernel.name) for row in rows for kernel in row.lost if not kernel.reason)
    where = f"in {names}" + (f": {kernels}" if kernels else "")
    return f"{why}; of them this GPU loads {listed(got)}", *([where] if names else ())


def _is_lost_library(file: BinaryFile, gpu: Arch) -> bool:
    """Return whether a file has code for the GPU's family, and the GPU loads none of its fatbins."""
    rows = [row for row in file.loading if row.gpu == gpu]
    family = any(re.fullmatch(rf"(sm|compute)_{gpu.major}\d[af]?", group.arch) for group in file.images)
    return bool(rows) and family and all(row.loads == _NOTHING and row.outcome is LoadOutcome.ABSENT for row in rows)


def _hardware(loading: Iterable[Loading]) -> str:
    code = total(row.code for row in loading)
    parts = [
        (code.hardware, "conversion to E2M1", "conversions to E2M1"),
        (code.decodings, "conversion from it", "conversions from it"),
        (code.matrix, "FP4 matrix instruction", "FP4 matrix instructions"),
    ]
    return ", ".join(counted(*part) for part in parts if part[0])


def _targets(rows: Iterable[Loading]) -> str:
    loads = Counter[str]()
    for row in rows:
        loads[row.loads] += row.fatbins
    return listed([name for name, _ in loads.most_common()])


def _remedy(about: _OneGpu, rows: Sequence[Loading]) -> str:
    """Return the next step that is true for this GPU, and for all of the question where one target serves them."""
    gpu = about.gpu
    if gpu.major < FIRST_WITH_FP4:
        return remedies.of("gpu_without_fp4", gpu=gpu)
    if any(re.fullmatch(rf"(sm|compute)_{gpu.major}\d[af]( \(JIT\))?", row.loads) for row in rows):
        return remedies.of("no_path", gpu=gpu)  # it is built for a target that has the instructions
    intended = about.of(LoadOutcome.DESIGN) and not about.of(*_NOT_BUILT)
    concerned = rows or [row for _, row in about.rows if row.loads == _NOTHING]
    of_others = gpu.major == GB10.major and concerned and all(row.tensor_memory for row in concerned)
    cause = "tensor_memory" if intended or of_others else "code_for_other_targets"
    return remedies.of(cause, gpu=gpu, **remedies.target_for(gpu, about.gpus))
