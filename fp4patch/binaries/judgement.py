"""From what a GPU loads of every file to one verdict, its reason, and what to do."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

from packaging.version import Version

from fp4patch.binaries import remedies
from fp4patch.binaries.fatbin import FIRST_WITH_FP4
from fp4patch.binaries.findings import Level, worst
from fp4patch.binaries.report import (
    BinaryFile,
    Fp4State,
    GpuVerdict,
    JustInTime,
    Loading,
    LoadOutcome,
    LostKernel,
    Unread,
    readable_names,
    total,
)
from fp4patch.core.arch import Arch
from fp4patch.core.cuda import ptx_needs
from fp4patch.core.wording import counted, listed

_LEVELS = {
    Fp4State.NATIVE: Level.GREEN,
    Fp4State.SOFTWARE: Level.YELLOW,
    Fp4State.MISSING: Level.RED,
    Fp4State.NOTHING: Level.RED,
    Fp4State.UNKNOWN: Level.RED,
    Fp4State.NONE: Level.GREEN,
}


def judge(gpu: Arch, files: Sequence[BinaryFile], unread: Sequence[Unread] = (), driver_cuda: str = "") -> GpuVerdict:
    """Return what all files together are worth to one GPU. ``driver_cuda``: what its driver serves, if known."""
    loading = [row for file in files for row in file.loading if row.gpu == gpu]
    verdict = _of_units(gpu, files, loading, unread)
    lost = {kernel.name: kernel for row in loading for kernel in row.lost}
    verdict = _with_lost(verdict, list(lost.values())) if lost else verdict
    return _with_jit(verdict, [row for file in files for row in file.jit if row.gpu == gpu], driver_cuda)


def _with_jit(verdict: GpuVerdict, rows: Sequence[JustInTime], driver_cuda: str) -> GpuVerdict:
    """Return the verdict with what the driver compiles when it loads; RED where the driver is older than that."""
    if not rows:
        return verdict
    newest = max(rows, key=lambda row: Version(row.isa)).isa
    cuda, driver = ptx_needs(newest)
    needs = f"a driver for CUDA {cuda}{f' ({driver})' if driver else ''} or later"
    shown = readable_names(kernel for row in rows for kernel in row.kernels)
    fatbins = counted(sum(row.fatbins for row in rows), "fatbin")
    archs = listed(sorted({row.arch for row in rows}))
    why = (
        f"the driver compiles the PTX of {fatbins} when first used ({shown}): {archs},"
        f" PTX {newest}, {sum(row.size for row in rows) / 1e6:.1f} MB, which requires {needs}"
    )
    verdict = replace(verdict, because=f"{verdict.because}; {why}")
    if driver_cuda and Version(driver_cuda) < Version(cuda):
        why = f"{verdict.because}, and the installed one supports CUDA {driver_cuda}"
        return replace(verdict, because=why, todo=remedies.of("driver_for_ptx", driver=needs), level=Level.RED)
    return verdict


def _of_units(
    gpu: Arch, files: Sequence[BinaryFile], loading: Sequence[Loading], unread: Sequence[Unread]
) -> GpuVerdict:
    for outcome, (state, reason) in _VERDICTS.items():
        if rows := [row for row in loading if row.outcome is outcome]:
            todo = "" if state is Fp4State.NATIVE else _remedy(gpu, files, rows)
            return GpuVerdict(gpu, state, reason(rows, loading), todo, _LEVELS[state])
    if not loading:
        state = Fp4State.UNKNOWN if unread else Fp4State.NONE
        why = "no device code was read" if unread else "there is no device code"
        return GpuVerdict(gpu, state, why, "", Level.RED if unread else Level.YELLOW)
    if all(row.loads == "nothing" for row in loading):
        why = f"none of {counted(sum(row.fatbins for row in loading), 'fatbin')} has code for {gpu}"
        return GpuVerdict(gpu, Fp4State.NOTHING, why, _remedy(gpu, files, []), Level.RED)
    why = "no FP4 instruction, encoder or kernel for any target"
    return GpuVerdict(gpu, Fp4State.NONE, why, "", _LEVELS[Fp4State.NONE])


def _remedy(gpu: Arch, files: Sequence[BinaryFile], rows: Sequence[Loading]) -> str:
    if gpu.major < FIRST_WITH_FP4:
        return remedies.of("gpu_without_fp4", gpu=gpu)
    held_by = {holder for row in rows for holder in row.held_by}
    held = total(group.code for file in files for group in file.images if group.arch in held_by)
    if held.fp4_mma and not held.hardware and all(kind.startswith("UTC") for kind in held.mma):
        return remedies.of("tensor_memory", gpu=gpu)
    return remedies.of("code_for_other_targets", gpu=gpu)


_CLASSES = {
    "nearest": "conversions to E2M1",
    "stochastic": "conversions with stochastic rounding",
    "decodings": "conversions from E2M1",
    "matrix": "FP4 matrix instructions",
}


def _with_lost(verdict: GpuVerdict, lost: Sequence[LostKernel]) -> GpuVerdict:
    """Return the verdict, no better than the worst kernel without its FP4 instructions, and these."""
    groups: dict[str, list[LostKernel]] = {}
    for kernel in lost:
        groups.setdefault(kernel.reason, []).append(kernel)
    why = [f"{_of_lost(kernels)}{f', by design: {reason}' if reason else ''}" for reason, kernels in groups.items()]
    level = worst((verdict.level, *(kernel.level for kernel in lost)))
    todo = verdict.todo or ("" if level is Level.GREEN else remedies.of("code_for_other_targets", gpu=verdict.gpu))
    return replace(verdict, because="; ".join([verdict.because, *why]), todo=todo, level=level)


def _of_lost(lost: Sequence[LostKernel]) -> str:
    shown = readable_names(kernel.name for kernel in lost)
    classes = Counter(kind for kernel in lost for kind in kernel.lost)
    holders = listed(sorted({kernel.held_by for kernel in lost if kernel.held_by}))
    idle = Counter(kernel.idle.value for kernel in lost if kernel.idle)
    messages = dict.fromkeys(message for kernel in lost for message in kernel.messages)
    parts = [f"{number} without the {_CLASSES[kind]} of {holders}" for kind, number in sorted(classes.items())]
    parts += [f"{number} {what}" for what, number in sorted(idle.items())]
    parts += [f"{sum(bool(kernel.messages) for kernel in lost)} can print {next(iter(messages))!r}"] if messages else []
    return f"{counted(len(lost), 'kernel')} ({shown}): {', '.join(parts)}"


def _software(rows: Sequence[Loading], loading: Sequence[Loading]) -> str:
    which = ", ".join(f"{name} ({counted(n, 'value')})" for name, n in total(row.code for row in rows).encoders.items())
    beside = f"; by hardware: {hardware}" if (hardware := _hardware(loading)) else ""
    return f"{which}, in {_targets(rows)}{beside}"


def _native(rows: Sequence[Loading], loading: Sequence[Loading]) -> str:
    native = f"{_hardware(rows)}, in {_targets(rows)}"
    unwritten = [row for row in loading if row.outcome is LoadOutcome.UNWRITTEN]
    if unwritten and not total(row.code for row in loading).hardware:
        return f"{native}; nothing converts to E2M1, and {_unwritten(unwritten, loading)}"
    return native


def _unwritten(rows: Sequence[Loading], _: Sequence[Loading]) -> str:
    kernels = sum(len(row.code.named) for row in rows)
    return (
        f"{counted(kernels, 'kernel')} named for FP4 in {_targets(rows)}, with neither an FP4 instruction nor a known"
        " encoder"
    )


def _other(rows: Sequence[Loading], _: Sequence[Loading]) -> str:
    return f"the FP4 code is for {listed(sorted({holder for row in rows for holder in row.held_by}))} alone"


def _lost(rows: Sequence[Loading], loading: Sequence[Loading]) -> str:
    lost = sum(row.fatbins for row in rows)
    reached = sum(row.fatbins for row in loading if row.outcome in (LoadOutcome.NATIVE, LoadOutcome.SOFTWARE))
    holders = listed(sorted({holder for row in rows for holder in row.held_by}))
    got = listed(sorted({_says(row.loads) for row in rows}))
    return f"{lost} of {lost + reached} fatbins with FP4 code have it for {holders}; of them this GPU loads {got}"


def _says(loads: str) -> str:
    return loads if loads == "nothing" else f"{loads}, which does not have it"


def _hardware(loading: Iterable[Loading]) -> str:
    code = total(row.code for row in loading)
    parts = [
        (code.hardware, "conversion to E2M1", "conversions to E2M1"),
        (code.decodes, "conversion from it", "conversions from it"),
        (code.fp4_mma, "FP4 matrix instruction", "FP4 matrix instructions"),
    ]
    return ", ".join(counted(*part) for part in parts if part[0])


def _targets(rows: Iterable[Loading]) -> str:
    loads = Counter[str]()
    for row in rows:
        loads[row.loads] += row.fatbins
    return listed([name for name, _ in loads.most_common()])


_VERDICTS = {
    # The first that occurs decides.
    LoadOutcome.LOST: (Fp4State.MISSING, _lost),
    LoadOutcome.SOFTWARE: (Fp4State.SOFTWARE, _software),
    LoadOutcome.NATIVE: (Fp4State.NATIVE, _native),
    LoadOutcome.UNWRITTEN: (Fp4State.MISSING, _unwritten),
    LoadOutcome.OTHER: (Fp4State.MISSING, _other),
}
