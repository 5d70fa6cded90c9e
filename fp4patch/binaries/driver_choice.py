"""Selection of a fatbin's entry by a GPU's driver.

A cubin whose target the GPU can run comes before any PTX, the nearest architecture first, and of those the most
specific; else the newest PTX that may be compiled for the GPU is. (CUDA programming guide, "Compute capability and
feature set compiler targets".)
"""

from collections.abc import Collection

from fp4patch.core.arch import Arch


def nearest(gpu: Arch, code: Collection[Arch], ptx: Collection[Arch]) -> Arch | None:
    """Return the target that the driver takes, given those of machine code and those of PTX; None if none fits."""
    cubins = [arch for arch in code if arch.runs_on(gpu)]
    return max(cubins or [arch for arch in ptx if arch.compiles_on(gpu)], key=_rank, default=None)


def _rank(arch: Arch) -> tuple[int, int, int]:
    return arch.major, arch.minor, ("", "f", "a").index(arch.suffix)
