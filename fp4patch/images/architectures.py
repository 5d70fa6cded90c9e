"""Checks of the requested architectures before hours of building: a lost suffix, and nothing that could be proven."""

from collections.abc import Sequence

from fp4patch.catalog.variant import Variant
from fp4patch.core.arch import GPUS, Arch
from fp4patch.core.errors import Refused, UsageError
from fp4patch.core.results import Problem
from fp4patch.images.image import Architectures


def check(asked: Sequence[str], variant: Variant) -> Architectures:
    """Return what the requested architectures mean for a variant; Refused carries every objection."""
    archs = tuple(dict.fromkeys(_parse(text) for text in asked))
    if not archs:
        raise UsageError("no architecture is named", help="for example --arch 12.1a (GB10), --arch 12.0a (RTX PRO)")
    covered = {Arch.parse(text) for text in variant.arch}
    judged = tuple(arch for arch in archs if arch in covered)
    problems = [_bare(arch) for arch in archs if arch.major >= 10 and not arch.suffix]
    if not judged and not problems:
        problems.append(_nothing_judged(archs, variant))
    if problems:
        raise Refused("these architectures cannot be built", problems=problems)
    notes = [
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


def _bare(arch: Arch) -> Problem:
    return Problem(
        f"a suffix: {arch.torch}a or {arch.torch}f",
        f"{arch.torch}, and for {arch} ptxas refuses the FP4 conversion (cvt.rn.satfinite.e2m1x2) and the FP4 "
        "matrix instructions: conversions become software, FP4 GEMM kernels are left out",
        help=f"--arch {arch.torch}a",
    )


def _nothing_judged(archs: Sequence[Arch], variant: Variant) -> Problem:
    has = ", ".join(Arch.parse(text).torch for text in variant.arch)
    return Problem(
        f"an architecture that {variant.name} has rules for: {has}",
        f"{', '.join(arch.torch for arch in archs)}, so nothing could be proven",
        help="name one of these, alone or beside it",
    )


def _runs_on(arch: Arch) -> tuple[Arch, ...]:
    """Return the GPUs that code for a target must run on: its own, and for a family target also later ones of ours."""
    later = (gpu for gpu in GPUS if arch.suffix == "f" and arch.runs_on(gpu))
    return tuple(dict.fromkeys((arch.gpu, *later)))
