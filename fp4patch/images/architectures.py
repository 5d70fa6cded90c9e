"""Checks of the requested architectures before hours of building: a lost suffix, and nothing that could be proven."""

from collections.abc import Sequence

from fp4patch.catalog.variant import Variant
from fp4patch.core.arch import GPUS, Arch, requested
from fp4patch.core.errors import Refused, UsageError
from fp4patch.core.results import Problem
from fp4patch.images.image import Architectures


def check(asked: Sequence[str], variant: Variant) -> Architectures:
    """Return what the requested architectures mean for a variant; Refused carries every objection."""
    help_text = "for example --arch 12.1a (GB10), --arch 12.0a (RTX PRO)"
    if not asked:
        raise UsageError("no architecture is named", help=help_text)
    archs = tuple(dict.fromkeys(requested(",".join(asked), help_text)))
    covered = [Arch.parse(text) for text in variant.arch]
    judged = tuple(arch for arch in archs if arch in covered)
    problems = [_bare(arch) for arch in archs if arch.major >= 10 and not arch.suffix]
    if not judged and not problems:
        expected = f"an architecture that {variant.name} has rules for: {', '.join(arch.torch for arch in covered)}"
        found = f"{', '.join(arch.torch for arch in archs)}, so nothing could be proven"
        problems.append(Problem(expected, found, help="name one of these, alone or beside it"))
    if problems:
        raise Refused("these architectures cannot be built", problems=problems)
    notes = [
        f"{variant.name} has no rules for {arch.torch}: its code is built, and not proven"
        for arch in archs
        if arch not in covered
    ]
    gpus = [gpu for arch in archs for gpu in (arch.gpu, *(GPUS if arch.suffix == "f" else ())) if arch.runs_on(gpu)]
    return Architectures(archs, judged, tuple(dict.fromkeys(gpus)), tuple(notes))


def _bare(arch: Arch) -> Problem:
    return Problem(
        f"a suffix: {arch.torch}a or {arch.torch}f",
        f"{arch.torch}, and for {arch} ptxas refuses the FP4 conversion (cvt.rn.satfinite.e2m1x2) and the FP4 "
        "matrix instructions: conversions become software, FP4 GEMM kernels are left out",
        help=f"--arch {arch.torch}a",
    )
