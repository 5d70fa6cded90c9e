"""Selection of a fatbin's entry by a GPU's driver.

A cubin whose target the GPU can run comes before any PTX, the nearest architecture first, and of those the most
specific; else the newest PTX that may be compiled for the GPU is. (CUDA programming guide, "Compute capability and
feature set compiler targets".)
"""

from collections.abc import Sequence

from fp4patch.binaries.fatbin import FatbinEntry
from fp4patch.core.arch import Arch

_SPECIFIC = {"": 0, "f": 1, "a": 2}


def _rank(arch: Arch) -> tuple[int, int, int]:
    return arch.major, arch.minor, _SPECIFIC[arch.suffix]


def loaded(entries: Sequence[tuple[FatbinEntry, Arch]], gpu: Arch) -> int | None:
    """Return the index of the entry that the GPU's driver takes, given each with its target; None if none fits."""
    cubins = [i for i, (entry, arch) in enumerate(entries) if entry.kind == "cubin" and arch.runs_on(gpu)]
    texts = [i for i, (entry, arch) in enumerate(entries) if entry.kind == "ptx" and arch.compiles_on(gpu)]
    return max(cubins or texts, key=lambda index: _rank(entries[index][1]), default=None)


def nearest(gpu: Arch, code: Sequence[Arch], ptx: Sequence[Arch]) -> Arch | None:
    """Return the same of the targets of a build: those of its machine code, and those of its PTX."""
    cubins = [arch for arch in code if arch.runs_on(gpu)]
    return max(cubins or [arch for arch in ptx if arch.compiles_on(gpu)], key=_rank, default=None)
