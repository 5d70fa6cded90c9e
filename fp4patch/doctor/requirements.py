"""Requirements of a continuous integration: what compiled files must hold for a GPU, or the check fails."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from fp4patch.binaries.findings import Level
from fp4patch.binaries.report import BinaryFile, BinaryReport, GpuVerdict, Outcome, RequirementRow
from fp4patch.catalog.manifest import load
from fp4patch.catalog.variant import Variant
from fp4patch.core.arch import Arch
from fp4patch.core.wording import listed
from fp4patch.doctor.outlook import conversion_of
from fp4patch.doctor.result import Requirement

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


def as_made(report: BinaryReport, variant: Variant) -> BinaryReport:
    """Return the report with a red verdict for each GPU whose code a build of the variant does not make.

    Such code is software for a target for which no rule of the variant requires software, or no FP4 code at all.
    """
    return replace(report, verdicts=tuple(_as_made(verdict, report, variant) for verdict in report.verdicts))


def _as_made(verdict: GpuVerdict, report: BinaryReport, variant: Variant) -> GpuVerdict:
    rows = [row for file in report.files for row in file.loading if row.gpu == verdict.gpu]
    software = sorted({row.loads.removesuffix(_JIT) for row in rows if row.outcome is Outcome.SOFTWARE})
    targets = [load().target(name) for name in variant.targets]
    wrong = [
        arch
        for arch in software
        if not any(conversion_of(variant, target, Arch.parse(arch)) == "software" for target in targets)
    ]
    if wrong:
        reason = f"{variant.name} does not convert in software for {listed(wrong)}"
    elif not software and not any(row.outcome is Outcome.NATIVE for row in rows):
        reason = f"a build of {variant.name} has FP4 code for {verdict.gpu}"
    else:
        return verdict
    return replace(verdict, because=f"{verdict.because}; {reason}", level=Level.RED)


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
