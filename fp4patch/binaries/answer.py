"""From what a GPU loads of every file to one answer: whether FP4 works, the evidence, and one next step.

A fact that was not read makes no answer better, and code for a GPU makes up for no other file that lacks it.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

from packaging.version import Version

from fp4patch.binaries import remedies
from fp4patch.binaries.fatbin import FIRST_WITH_FP4
from fp4patch.binaries.findings import Answer, Axis, Level, Observation
from fp4patch.binaries.report import (
    BinaryFile,
    BinaryReport,
    Fp4Code,
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

    @cached_property
    def rows(self) -> list[tuple[BinaryFile, Loading]]:
        judged = (file for file in self.report.files if not _PROFILER.search(file.name))
        return [(file, row) for file in judged for row in file.loading if row.gpu == self.gpu]

    @cached_property
    def loaded(self) -> list[Loading]:
        return [row for _, row in self.rows if row.loads != _NOTHING]

    @cached_property
    def reached(self) -> int:
        """Number of fatbins of which something loads."""
        return sum(row.fatbins for row in self.loaded)

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
        lost = sum(row.fatbins for row in self.missing)
        return bool(self.native.hardware and self.native.matrix) and lost < sum(row.fatbins for row in native)

    @cached_property
    def mostly_absent(self) -> bool:
        """Whether more fatbins are not built for this GPU than load, in as many files where FP4 works."""
        lost = [name for name, number in self.absent.items() if number > self.fatbins[name] / 2]
        files = {file.name for file, _ in self.rows}
        more = self.absent.total() > self.reached
        return more and not (self.mostly_native and 2 * len(lost) < len(files))

    @cached_property
    def native(self) -> Fp4Code:
        """All FP4 instructions of what loads and has any."""
        return total(row.code for row in self.of(LoadOutcome.NATIVE))

    def is_few(self, kernels: Collection[str]) -> bool:
        """Return whether kernels are fewer than those that load with FP4 instructions, and of less than half as many
        functions: one may have a dozen instances. PTX names none.
        """
        native = {name for _, row in self.rows for name in row.native}
        functions = [set(map(readable, names)) for names in (kernels, native)]
        return len(kernels) < len(native) and 2 * len(functions[0]) < len(functions[1])

    @cached_property
    def missing_axis(self) -> Axis:
        """The axis of what is missing: that of products where no conversion is known to be."""
        classes = {kind for row in self.missing for kernel in row.lost for kind in kernel.lost if not kernel.reason}
        return Axis.MULTIPLIES if classes == {"matrix"} else Axis.CONVERTS


def answer(gpu: Arch, gpus: Sequence[Arch], report: BinaryReport) -> Answer:
    """Return the answer for one GPU about all files of a report together. ``gpus``: all of the question."""
    about = _OneGpu(gpu, gpus, report)
    return Answer.of(gpu, *(found for axis in _AXES for found in axis(about)))


# --- the axes ---------------------------------------------------------------------------------------------------------


def _loads(about: _OneGpu) -> Iterator[Observation]:
    """Yield whether the driver takes the code; few fatbins that it does not take are exceptions."""
    if not about.rows:
        return
    observed = partial(Observation, Axis.LOADS)
    if not about.loaded:
        holders = listed(sorted({group.arch for file in about.report.files for group in file.images}))
        why = f"none of {counted(about.fatbins.total(), 'fatbin')} has code for {about.gpu}: {holders or 'nothing'}"
        yield observed(Level.RED, "nothing loads", (why,), _remedy(about, []))
        return
    names = [f"{n} of {counted(about.fatbins[name], 'fatbin')} of {name}" for name, n in about.absent.most_common()]
    absent = (f"nothing loads of {shortened(names)}",) if names else ()
    if lost := [file.name for file, _ in about.rows if _is_lost_library(file, about.gpu)]:
        has = f"{shortened(lost)} has code for its family, and none for {about.gpu}"
        yield observed(Level.RED, "a library does not load", (has, *absent), _remedy(about, []))
    elif about.mostly_absent:
        verdict = f"{about.absent.total():,} of {counted(about.fatbins.total(), 'fatbin')} do not load"
        yield observed(Level.RED, verdict, absent, _remedy(about, []))
    elif about.absent.total() >= about.reached:
        yield observed(Level.YELLOW, *absent)
    else:
        excepted = (counted(about.absent.total(), "fatbin"),) if names else ()
        by_driver = all(row.loads.endswith("(JIT)") for row in about.loaded)
        said = "it loads by the driver's compiler alone" if by_driver else "it loads"
        yield observed(Level.GREEN, said, absent, excepted=excepted)


def _converts(about: _OneGpu) -> Iterator[Observation]:
    """Yield how it converts to FP4, or that it has no FP4 code."""
    observed = partial(Observation, Axis.CONVERTS)
    native = about.of(LoadOutcome.NATIVE)
    hardware = (f"{_hardware(native)}, in {_targets(native)}",) if native else ()
    if software := about.of(LoadOutcome.SOFTWARE):
        names = [f"{name} ({counted(n, 'value')})" for name, n in total(row.code for row in software).encoders.items()]
        why = f"{', '.join(names)}, in {_targets(software)}"
        beside = [f"by hardware: {fact}" for fact in hardware]
        found = observed(Level.YELLOW, "software converts to FP4", (why, *beside), _remedy(about, software))
    elif number := about.native.hardware:
        found = observed(Level.GREEN, counted(number, "conversion"), hardware)
    elif native:
        verdict = "it multiplies in hardware, and converts nothing to FP4"
        verdict = verdict if about.native.matrix else "it converts from FP4 in hardware, and nothing to it"
        found = observed(Level.YELLOW, verdict, hardware)
    else:
        yield from _without_fp4(about)
        return
    yield from _with_lost(about, found)


def _multiplies(about: _OneGpu) -> Iterator[Observation]:
    """Yield whether it multiplies by FP4 matrix instructions, where it has any FP4 code."""
    if number := about.native.matrix:
        verdict = counted(number, "matrix instruction")
        yield from _with_lost(about, Observation(Axis.MULTIPLIES, Level.GREEN, verdict))
    elif about.of(LoadOutcome.NATIVE, LoadOutcome.SOFTWARE):
        converts = "converts in hardware, and " if about.native.hardware else ""
        verdict = f"it {converts}multiplies nothing in FP4"
        yield from _with_lost(about, Observation(Axis.MULTIPLIES, Level.YELLOW, verdict))


def _misses(about: _OneGpu) -> Iterator[Observation]:
    """Yield that the GPU does not get FP4 code, if that is not a small part of it."""
    if about.missing and about.loaded and not about.mostly_native:
        verdict = "FP4 code that it has is for other GPUs"
        todo = _remedy(about, about.missing)
        yield Observation(about.missing_axis, Level.RED, verdict, _missing_why(about), todo)


def _with_lost(about: _OneGpu, found: Observation) -> Iterator[Observation]:
    """Yield an observation with the kernels of its axis that lack something: few are exceptions, more a reservation."""
    kernels: dict[str, LostKernel] = {}
    for _, row in about.rows:
        if about.mostly_native or row.loads != _NOTHING or row.outcome not in (LoadOutcome.LOST, LoadOutcome.OTHER):
            kernels |= {one.name: one for one in row.lost if found.level is Level.OTHER or _axis(one) is found.axis}
    by_reason: dict[str, list[LostKernel]] = {}
    for kernel in kernels.values():
        by_reason.setdefault(kernel.reason, []).append(kernel)
    lost = by_reason.pop("", [])
    notes = [f"{_of_lost(intended)}, by design: {reason}" for reason, intended in by_reason.items()]
    why = [_of_lost(lost)] if lost else []
    excepted = [_named(lost)] if lost else []
    unwritten = about.of(LoadOutcome.UNWRITTEN) if found.axis is Axis.CONVERTS else []
    if unwritten:
        why.append(_unwritten(unwritten))
        excepted.append(f"{counted(sum(len(row.code.named) for row in unwritten), 'kernel')} named for FP4")
    if about.missing and about.mostly_native and about.missing_axis is found.axis:
        why += _missing_why(about)
        excepted += [] if lost else [f"{counted(sum(row.fatbins for row in about.missing), 'fatbin')} for other GPUs"]
    if about.is_few([*(kernel.name for kernel in lost), *(name for row in unwritten for name in row.code.named)]):
        yield replace(found, evidence=(*found.evidence, *why, *notes), excepted=tuple(excepted))
        return
    yield replace(found, evidence=(*found.evidence, *notes))
    if why:
        yield Observation(found.axis, Level.YELLOW, why[0], tuple(why[1:]), _remedy(about, about.loaded))


def _axis(kernel: LostKernel) -> Axis:
    return Axis.MULTIPLIES if "matrix" in kernel.lost else Axis.CONVERTS


def _named(kernels: Sequence[LostKernel]) -> str:
    """Return how many kernels, and the namespaces that they are of: ``6 kernels (vllm::minimax_m3)``."""
    spaces = Counter(readable(kernel.name).rpartition("::")[0] or readable(kernel.name) for kernel in kernels)
    return f"{counted(len(kernels), 'kernel')} ({shortened(space for space, _ in spaces.most_common())})"


def _without_fp4(about: _OneGpu) -> Iterator[Observation]:
    """Yield what it is where no FP4 instruction or encoder loads: emulated, stubs, or not made for FP4."""
    observed = partial(Observation, Axis.CONVERTS)
    stubs = [kernel for row in about.loaded for kernel in row.lost if kernel.idle]
    if unwritten := about.of(LoadOutcome.UNWRITTEN):
        yield observed(Level.RED, "FP4 is emulated or missing", (_unwritten(unwritten),), _remedy(about, unwritten))
    elif 10 * len(stubs) > about.reached:
        yield observed(Level.RED, "its FP4 kernels do nothing on it", (_of_lost(stubs),), _remedy(about, about.loaded))
    elif about.loaded and not about.missing:
        intended = about.of(LoadOutcome.DESIGN)
        why = "no FP4 instruction, encoder or kernel for any target"
        by_driver = all(row.loads.endswith("(JIT)") for row in about.loaded)
        said = "it loads by the driver's compiler alone, and has no FP4 code" if by_driver else ""
        said = said or f"it loads, and has no FP4 code for {about.gpu}"
        found = observed(Level.OTHER, said, () if intended else (why,))
        if stubs:  # few: PyTorch has 20 among the code of 544 fatbins
            yield replace(found, evidence=(_of_lost(stubs),), excepted=(_named(stubs),))
        else:
            yield from _with_lost(about, found)


def _tools(about: _OneGpu) -> Iterator[Observation]:
    """Yield which driver the PTX requires."""
    if jit := [row for _, row in about.rows if row.isa]:
        yield Observation(Axis.TOOLS, Level.GREEN, "the driver compiles PTX", (_first_use(jit),))


def _processor(about: _OneGpu) -> Iterator[Observation]:
    """Yield that it is for another processor than that of the GPU's machine."""
    if why := about.report.wrong_processor(about.gpu):
        yield Observation(Axis.PROCESSOR, Level.YELLOW, "it is for another processor", (why,))


def _read(about: _OneGpu) -> Iterator[Observation]:
    """Yield what was not read: sources that are compiled later decide where they are more than what is compiled."""
    report, sources = about.report, counted(about.report.sources, "CUDA source")
    fp4 = about.of(LoadOutcome.NATIVE, LoadOutcome.SOFTWARE, LoadOutcome.UNWRITTEN)
    observed = partial(Observation, Axis.READ)
    if not about.rows and not report.sources:
        verdict = "no device code was read" if report.unread else "there is no device code"
        if any(not file.loading for file in report.files):
            verdict = "its fatbins have no kernel, or code for the linker (LTO-IR) alone"
        if any(row.gpu == about.gpu for file in report.files for row in file.loading):
            verdict = "it has no device code but that of NVIDIA's profilers"
        yield observed(Level.NONE, verdict, (), remedies.of("no_code"))
    elif report.sources > (0 if fp4 else about.reached):
        why = f"{sources} that it may compile: not judged"
        if not fp4:
            verdict = f"it compiles {sources} when it runs"
            yield observed(Level.NONE, verdict, (), remedies.of("sources", gpu=about.gpu))
        elif report.sources < sum(row.fatbins for row in fp4):
            yield observed(Level.GREEN, "what is compiled was read", (why,), excepted=(sources,))
        else:
            yield observed(Level.YELLOW, why)


_AXES = (_loads, _misses, _converts, _multiplies, _tools, _processor, _read)


_CLASSES = {
    "nearest": "conversions to E2M1",
    "stochastic": "conversions with stochastic rounding",
    "decodings": "conversions from E2M1",
    "matrix": "FP4 matrix instructions",
}


def _unwritten(rows: Sequence[Loading]) -> str:
    named = counted(sum(len(row.code.named) for row in rows), "kernel")
    return f"{named} named for FP4 in {_targets(rows)}, with neither an FP4 instruction nor a known encoder"


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
