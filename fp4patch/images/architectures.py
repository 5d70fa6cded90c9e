"""Checks of the requested architectures before hours of building: lost suffixes, and targets that nvcc refuses."""

import itertools
import re
from collections.abc import Mapping, Sequence

from fp4patch.catalog.patch import Patch
from fp4patch.catalog.variant import Variant
from fp4patch.core.arch import GPUS, Arch
from fp4patch.core.errors import Refused, UsageError
from fp4patch.core.problem import Problem
from fp4patch.edits import Replace
from fp4patch.edits.condition import evaluate
from fp4patch.edits.cxx import words
from fp4patch.images.image import Architectures


def check(asked: Sequence[str], variant: Variant, patches: Sequence[Patch], *, allow_bare: bool) -> Architectures:
    """Return what the requested architectures mean for a variant and its patches; Refused carries every objection.

    ``allow_bare`` accepts targets without the suffix, and therefore without the FP4 instructions.
    """
    archs = tuple(dict.fromkeys(_parse(text) for text in asked))
    if not archs:
        raise UsageError("no architecture is named", help="for example --arch 12.1a (GB10), --arch 12.0a (RTX PRO)")
    covered = {Arch.parse(text) for text in variant.arch}
    judged = tuple(arch for arch in archs if arch in covered)
    problems = [*_bare(archs, allow_bare), *_same_code(archs)]
    unreached = {arch: missed for arch in archs if (missed := _missed(arch, variant, patches))}
    if not judged and not problems:
        problems.append(_nothing_judged(archs, variant, unreached))
    if problems:
        raise Refused("these architectures cannot be built", problems=problems)
    notes = [_unreached(arch, missed, variant) for arch, missed in unreached.items()]
    notes += [
        f"{variant.name} has no rules for {arch.torch}: its code is built, and not proven"
        for arch in archs
        if arch not in covered
    ]
    gpus = tuple(dict.fromkeys(gpu for arch in archs for gpu in _runs_on(arch)))
    return Architectures(archs, judged, gpus, tuple(notes))


def _parse(text: str) -> Arch:
    try:
        return Arch.parse(text)
    except ValueError as error:
        raise UsageError(str(error), help="for example --arch 12.1a") from error


def _bare(archs: Sequence[Arch], allowed: bool) -> list[Problem]:
    return [
        Problem(
            f"a suffix: {arch.torch}a or {arch.torch}f",
            f"{arch.torch}, and for {arch} ptxas refuses the FP4 conversion (cvt.rn.satfinite.e2m1x2) and the FP4 "
            "matrix instructions: conversions become software, FP4 GEMM kernels are left out",
            help=f"--arch {arch.torch}a, or --allow-bare for a build without them",
        )
        for arch in archs
        if arch.major >= 10 and not arch.suffix and not allowed
    ]


def _same_code(archs: Sequence[Arch]) -> list[Problem]:
    """Return a problem for each target beside its family-specific form: nvcc refuses the same code twice."""
    return [
        Problem(
            "one of them",
            f"{one.torch} together with {other.torch}: nvcc refuses the same GPU code for both",
            help="leave out the one without the suffix",
        )
        for one, other in itertools.combinations(sorted(archs), 2)
        if one.gpu == other.gpu and {one.suffix, other.suffix} == {"", "f"}
    ]


def _missed(arch: Arch, variant: Variant, patches: Sequence[Patch]) -> list[Arch]:
    """Return the GPUs that load code for a target, but get the variant's changes only in code for their own.

    A guard decides by ``__CUDA_ARCH__``, and an operand by the architecture in the name of CUTLASS's macro.
    """
    guards = [
        options["guard"]
        for chosen in variant.targets.values()
        for options in chosen.options.values()
        if "guard" in options
    ]
    operands = {
        name
        for patch in patches
        for edit in patch.edits
        if isinstance(edit, Replace)
        for name in {*_OPERAND.findall(edit.find)} - {*_OPERAND.findall(edit.replace)}
    }
    missed = []
    for gpu in _runs_on(arch):
        own = Arch(gpu.major, gpu.minor, "a")
        named = operands and all(f"SM{gpu.number}" in name for name in operands)
        if gpu != arch.gpu and (named or any(_fires(text, own) and not _fires(text, arch) for text in guards)):
            missed.append(gpu)
    return missed


_OPERAND = re.compile(r"\bCUTLASS_ARCH_MMA_SM\d+[AF]_ENABLED\b")
"""Macro of CUTLASS for one architecture, or for its family: an operand of conditions."""


def _fires(guard: str, arch: Arch) -> bool:
    """Return whether the condition holds in the device pass for a target, as far as nvcc's own macros decide it."""
    macros = arch.macros
    return bool(evaluate(words(guard), lambda name: name in macros, lambda name: int(macros.get(name) or 0)))


def _unreached(arch: Arch, missed: Sequence[Arch], variant: Variant) -> str:
    gpus = " and ".join(map(str, missed))
    return (
        f"{arch.torch} is compiled with __CUDA_ARCH__ {arch.macros['__CUDA_ARCH__']} and runs on {gpus} all the same: "
        f"the guard of {variant.name} for {gpus} cannot fire in it"
    )


def _nothing_judged(archs: Sequence[Arch], variant: Variant, unreached: Mapping[Arch, Sequence[Arch]]) -> Problem:
    why = "; ".join(_unreached(arch, missed, variant) for arch, missed in unreached.items())
    named = ", ".join(arch.torch for arch in archs)
    has = ", ".join(Arch.parse(text).torch for text in variant.arch)
    return Problem(
        f"an architecture that {variant.name} has rules for: {has}",
        f"{named}, so nothing could be proven" + (f"; {why}" if why else ""),
        help="--arch 12.1a, where the guard fires" if unreached else "name one of these, alone or beside it",
    )


def _runs_on(arch: Arch) -> tuple[Arch, ...]:
    """Return the GPUs that code for a target must run on: its own, and for a family target also later ones of ours."""
    later = (gpu for gpu in GPUS if arch.suffix == "f" and arch.runs_on(gpu))
    return tuple(dict.fromkeys((arch.gpu, *later)))
