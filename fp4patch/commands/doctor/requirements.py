"""Requirements of a continuous integration: what every compiled file must hold for a GPU, or the check fails."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fp4patch.inspect.code import Outcome, RequirementRow
from fp4patch.inspect.findings import Level

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from fp4patch.commands.doctor.result import Requirement
    from fp4patch.core.arch import Arch
    from fp4patch.inspect.code import BinaryFile, BinaryReport

_JIT = " (JIT)"
_NOT_NATIVE = {
    Outcome.LOST: "fatbins without the FP4 code that another target has",
    Outcome.SOFTWARE: "fatbins that convert in software",
    Outcome.UNWRITTEN: "fatbins with kernels named for FP4 and no FP4 instruction",
}


def judge(report: BinaryReport, required: Sequence[Requirement], *, strict: bool) -> tuple[RequirementRow, ...]:
    """Return one row for each requirement. A report without device code meets none."""
    rows = []
    for requirement in required:
        reasons = [f"{file.name}: {reason}" for file in report.files for reason in _missing(file, requirement, strict)]
        if strict:
            gpus = [one.gpu for one in required]
            reasons += [f"{file.name}: {reason}" for file in report.files for reason in _extra(file, gpus)]
        loading = [row for file in report.files for row in file.loading if row.gpu == requirement.gpu]
        if not loading:
            reasons.append("there is no device code")
        elif requirement.native and not any(row.outcome is Outcome.NATIVE for row in loading):
            reasons.append("no file has FP4 instructions for it")
        rows.append(RequirementRow(str(requirement), not reasons, tuple(reasons)))
    return tuple(rows)


def _missing(file: BinaryFile, required: Requirement, strict: bool) -> Iterator[str]:
    rows = [row for row in file.loading if row.gpu == required.gpu]
    if rows and all(row.loads == "nothing" for row in rows):
        yield "nothing loads"
    elif strict and (missing := sum(row.fatbins for row in rows if row.loads == "nothing" or row.loads.endswith(_JIT))):
        yield f"{missing} of {file.fatbins} fatbins have no machine code for it"
    for outcome, what in _NOT_NATIVE.items() if required.native else ():
        if number := sum(row.fatbins for row in rows if row.outcome is outcome):
            yield f"{number} {what}"
    useless = {kernel.name for row in rows for kernel in row.lost if kernel.level is Level.RED}
    if required.native and useless:
        yield f"{len(useless)} kernels that compute nothing on it"


def _extra(file: BinaryFile, gpus: Sequence[Arch]) -> Iterator[str]:
    loaded = {row.loads.removesuffix(_JIT) for row in file.loading if row.gpu in gpus}
    if extra := dict.fromkeys(group.arch for group in file.images if group.arch not in loaded):
        yield f"code that no required GPU loads: {', '.join(extra)}"
