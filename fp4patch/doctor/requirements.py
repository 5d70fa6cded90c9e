"""Requirements of a continuous integration: what compiled files must hold for a GPU, or the check fails."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase

from fp4patch.binaries.findings import Axis, Level
from fp4patch.binaries.report import BinaryFile, BinaryReport, Loading, LoadOutcome, RequirementRow
from fp4patch.catalog.manifest import load
from fp4patch.catalog.variant import Variant
from fp4patch.core.arch import Arch
from fp4patch.core.wording import joined, listed
from fp4patch.doctor.result import Question, Requirement
from fp4patch.doctor.tree_answers import conversion_of

_NOT_NATIVE = {
    LoadOutcome.LOST: "fatbins without the FP4 code that another target has",
    LoadOutcome.SOFTWARE: "fatbins that convert in software",
    LoadOutcome.UNWRITTEN: "fatbins with kernels named for FP4 and no FP4 instruction",
}


_OF_RELEASE = (Axis.DEFECTS, Axis.TOOLS)
"""Axes that do not follow from the files alone."""


def judge(report: BinaryReport, question: Question) -> tuple[RequirementRow, ...]:
    """Return one row for each requirement. A report without device code, or without the files in question, meets none.

    A file that could not be read fails all of them, whether it is one in question or not.
    """
    return tuple(
        RequirementRow(requirement.text, not reasons, tuple(reasons))
        for requirement in question.required
        for reasons in [list(_reasons(_of_files(report, requirement), requirement))]
    )


def _of_files(report: BinaryReport, required: Requirement) -> BinaryReport:
    """Return the report on the files that a requirement concerns."""
    from fp4patch.binaries.answer import answer  # noqa: PLC0415 - it loads NumPy

    files = tuple(file for file in report.files if _concerns(required, file.name))
    concerned = replace(report, files=files)
    gpus = [one.gpu for one in report.answers]
    beside = {one.gpu: [seen for seen in one.observations if seen.axis in _OF_RELEASE] for one in report.answers}
    answers = (answer(gpu, gpus, concerned).beside(*beside[gpu]) for gpu in gpus)
    return replace(concerned, answers=tuple(answers))


def _concerns(required: Requirement, name: str) -> bool:
    """Return whether a requirement concerns a file: a pattern fits its path, or the end of it."""

    def fits(patterns: Sequence[str]) -> bool:
        return any(fnmatchcase(name, pattern) or fnmatchcase(name, f"*/{pattern}") for pattern in patterns)

    return (not required.only or fits(required.only)) and not fits(required.excepted)


def _reasons(report: BinaryReport, required: Requirement) -> Iterator[str]:
    """Yield each reason why a requirement is not met. A variant's is one of all files together, since vLLM has files
    for other GPUs alone, and not of the processor: one build may be for a GB10 and others.
    """
    loading = [row for file in report.files for row in file.loading if row.gpu == required.gpu]
    if not required.variant and (why := report.wrong_processor(required.gpu)):
        yield why
    if not loading:
        yield "there is no device code"
    elif required.fp4:
        yield from _without_fp4(report, loading, required.gpu)
    elif required.variant:
        yield from _as_made(report, loading, required.gpu, load().variant(required.variant))
    else:
        for file in report.files:
            yield from (f"{file.name}: {reason}" for reason in _missing(file, required.gpu, native=required.native))
        if required.native and not any(row.outcome is LoadOutcome.NATIVE for row in loading):
            yield "no file has FP4 instructions for it"


def _without_fp4(report: BinaryReport, loading: Sequence[Loading], gpu: Arch) -> Iterator[str]:
    """Yield each axis that is *no* or *not judged*; and that there is no FP4 instruction, if so."""
    for judged in (one for one in report.answers if one.gpu == gpu):
        for seen in judged.observations:
            if seen.level in (Level.RED, Level.NONE):
                yield joined(f"{seen.axis}: {seen.sentence}", "; ".join(seen.evidence), by=": ")
    if not any(row.code.hardware or row.code.matrix for row in loading if row.outcome is LoadOutcome.NATIVE):
        yield "no file converts to FP4 or multiplies it in hardware"


def _missing(file: BinaryFile, gpu: Arch, *, native: bool) -> Iterator[str]:
    rows = [row for row in file.loading if row.gpu == gpu]
    if rows and all(row.loads == "nothing" for row in rows):
        yield "nothing loads"
    if not native:
        return
    for outcome, what in _NOT_NATIVE.items():
        if number := sum(row.fatbins for row in rows if row.outcome is outcome):
            yield f"{number} {what}"
    if useless := {kernel.name for row in rows for kernel in row.lost if kernel.idle and not kernel.reason}:
        yield f"{len(useless)} kernels that compute nothing on it"


def _as_made(report: BinaryReport, loading: Sequence[Loading], gpu: Arch, variant: Variant) -> Iterator[str]:
    """Yield each reason why the code of a GPU is not what a build of the variant makes.

    Such code is red in any case, or software for a target for which no rule of the variant requires software, or has
    no FP4 code at all.
    """
    for judged in report.answers:
        if judged.gpu == gpu and judged.level is Level.RED:
            yield joined(judged.verdict, judged.because, by=": ")
    software = sorted({row.loads.removesuffix(" (JIT)") for row in loading if row.outcome is LoadOutcome.SOFTWARE})

    def is_meant(arch: str) -> bool:
        made = (conversion_of(load(), variant.name, name, Arch.parse(arch)) for name in variant.targets)
        return "software" in made

    if wrong := [arch for arch in software if not is_meant(arch)]:
        yield f"{variant.name} does not convert in software for {listed(wrong)}"
    elif not software and not any(row.outcome is LoadOutcome.NATIVE for row in loading):
        yield f"a build of {variant.name} has FP4 code for {gpu}"
