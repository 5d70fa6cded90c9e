"""Checks of the requested architectures before hours of building: lost suffixes, and targets that nvcc refuses."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from fp4patch.core.arch import Arch
from fp4patch.core.errors import Refused, UsageError
from fp4patch.core.problem import Problem
from fp4patch.edits.kinds import DropOperand
from fp4patch.images.image import Architectures

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fp4patch.catalog.patch import Patch
    from fp4patch.catalog.variant import Variant

SM121 = Arch(12, 1)


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
    unreached = tuple(
        arch for arch in archs if _guard_is_for_sm121(variant, patches) and _compiles_as_1200_family(arch)
    )
    if not judged and not problems:
        problems.append(_nothing_judged(archs, variant, unreached))
    if problems:
        raise Refused("these architectures cannot be built", problems=problems)
    notes = [_unreached(arch, variant) for arch in unreached]
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
    """Return a problem for each target that comes with its family-specific form, since nvcc refuses the same code
    twice."""
    return [
        Problem(
            "one of them",
            f"{one.torch} together with {other.torch}: nvcc refuses the same GPU code for both",
            help="leave out the one without the suffix",
        )
        for one, other in itertools.combinations(sorted(archs), 2)
        if (one.major, one.minor) == (other.major, other.minor) and {one.suffix, other.suffix} == {"", "f"}
    ]


def _guard_is_for_sm121(variant: Variant, patches: Sequence[Patch]) -> bool:
    """Return whether the changes of the variant are compiled for SM121 alone, by the macros of the compiler or
    CUTLASS."""
    operands = [
        op for patch in patches for edit in patch.edits if isinstance(edit, DropOperand) for op in edit.operands
    ]
    guards = [
        options.get("guard", "")
        for chosen in variant.targets.values()
        for options in chosen.options.values()
        if options
    ]
    return bool(operands and all("SM121" in operand for operand in operands)) or any("== 1210" in g for g in guards)


def _compiles_as_1200_family(arch: Arch) -> bool:
    """Return whether code for the target runs on GB10 although its ``__CUDA_ARCH__`` is 1200."""
    return (arch.major, arch.minor, arch.suffix) == (12, 0, "f")


def _unreached(arch: Arch, variant: Variant) -> str:
    return (
        f"{arch.torch} is compiled with __CUDA_ARCH__ 1200 and runs on GB10 all the same: "
        f"the SM121 guard of {variant.name} cannot fire in it"
    )


def _nothing_judged(archs: Sequence[Arch], variant: Variant, unreached: Sequence[Arch]) -> Problem:
    why = "; ".join(_unreached(arch, variant) for arch in unreached)
    named = ", ".join(arch.torch for arch in archs)
    has = ", ".join(Arch.parse(text).torch for text in variant.arch)
    return Problem(
        f"an architecture that {variant.name} has rules for: {has}",
        f"{named}, so nothing could be proven" + (f"; {why}" if why else ""),
        help="--arch 12.1a, where the guard fires" if unreached else "name one of these, alone or beside it",
    )


def _runs_on(arch: Arch) -> tuple[Arch, ...]:
    """Return the GPUs that code for a target must run on: its own, and for the family target of SM120 also GB10."""
    own = Arch(arch.major, arch.minor)
    return (own, SM121) if _compiles_as_1200_family(arch) else (own,)
