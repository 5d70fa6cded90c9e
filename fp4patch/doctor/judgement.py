"""From what a GPU loads of every file to one verdict, its reason, and what to do."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from fp4patch.model.doctor_binaries import BinaryFile, Fp4State, GpuVerdict, Loading, Outcome, total

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_BUILD = (
    "build it for {own}a, or for sm_120f, which serves both GPUs (CUDA 12.9 or later):"
    " `fp4patch doctor` on the source tree says how"
)


def judge(gpu: str, files: Sequence[BinaryFile]) -> GpuVerdict:
    """What all files together are worth to one GPU."""
    loading = [row for file in files for row in file.loading if row.gpu == gpu]
    for outcome, (state, reason) in _VERDICTS.items():
        if rows := [row for row in loading if row.outcome is outcome]:
            todo = "" if state is Fp4State.NATIVE else _BUILD.format(own=gpu)
            return GpuVerdict(gpu, state, reason(rows, loading), todo)
    nothing = "no FP4 instruction, encoder or kernel for any target" if files else "there is no device code"
    return GpuVerdict(gpu, Fp4State.NONE, nothing, "")


def _software(rows: Sequence[Loading], loading: Sequence[Loading]) -> str:
    which = ", ".join(
        f"{name} ({_counted(n, 'value')})" for name, n in total(row.code for row in rows).encoders.items()
    )
    beside = f"; beside it by hardware: {hardware}" if (hardware := _hardware(loading)) else ""
    return f"{which}, in {_targets(rows)}{beside}"


def _native(rows: Sequence[Loading], loading: Sequence[Loading]) -> str:
    native = f"{_hardware(rows)}, in {_targets(rows)}"
    unwritten = [row for row in loading if row.outcome is Outcome.UNWRITTEN]
    if unwritten and not total(row.code for row in loading).hardware:
        return f"{native}; nothing converts to E2M1, and {_unwritten(unwritten, loading)}"
    return native


def _unwritten(rows: Sequence[Loading], _: Sequence[Loading]) -> str:
    kernels = sum(len(row.code.named) for row in rows)
    return (
        f"{_counted(kernels, 'kernel')} named for FP4 in {_targets(rows)}, with neither an FP4 instruction nor a known"
        " encoder"
    )


def _other(rows: Sequence[Loading], _: Sequence[Loading]) -> str:
    return f"the FP4 code is for {_list(sorted({holder for row in rows for holder in row.held_by}))} alone"


def _lost(rows: Sequence[Loading], loading: Sequence[Loading]) -> str:
    lost = sum(row.units for row in rows)
    reached = sum(row.units for row in loading if row.outcome in (Outcome.NATIVE, Outcome.SOFTWARE))
    holders = _list(sorted({holder for row in rows for holder in row.held_by}))
    got = _list(sorted({_says(row.loads) for row in rows}))
    return f"{lost} of {lost + reached} units with FP4 code have it for {holders}; of them this GPU loads {got}"


def _says(loads: str) -> str:
    return loads if loads == "nothing" else f"{loads}, where it is not"


def _hardware(loading: Iterable[Loading]) -> str:
    code = total(row.code for row in loading)
    parts = [
        (code.hardware, "conversion to E2M1", "conversions to E2M1"),
        (code.decodes, "conversion from it", "conversions from it"),
        (code.fp4_mma, "FP4 matrix instruction", "FP4 matrix instructions"),
    ]
    return ", ".join(f"{number:,} {one if number == 1 else many}" for number, one, many in parts if number)


def _targets(rows: Iterable[Loading]) -> str:
    counted = Counter[str]()
    for row in rows:
        counted[row.loads] += row.units
    return _list([name for name, _ in counted.most_common()])


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def _list(names: Sequence[str]) -> str:
    return ", ".join(names[:-1]) + " and " + names[-1] if len(names) > 1 else "".join(names)


_VERDICTS = {
    # The first that occurs decides.
    Outcome.LOST: (Fp4State.MISSING, _lost),
    Outcome.SOFTWARE: (Fp4State.SOFTWARE, _software),
    Outcome.NATIVE: (Fp4State.NATIVE, _native),
    Outcome.UNWRITTEN: (Fp4State.MISSING, _unwritten),
    Outcome.OTHER: (Fp4State.MISSING, _other),
}
