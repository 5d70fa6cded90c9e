"""Selection of a fatbin's entry by a GPU's driver.

A cubin whose target the GPU can run comes before any PTX, the nearest architecture first, and of those the most
specific; else the newest PTX that may be compiled for the GPU is. (CUDA programming guide, "Compute capability and
feature set compiler targets".)
"""

from collections.abc import Sequence

from fp4patch.binaries.fatbin import FatbinEntry
from fp4patch.core.arch import Arch

_SPECIFIC = {"": 0, "f": 1, "a": 2}


def loaded(entries: Sequence[tuple[FatbinEntry, Arch]], gpu: Arch) -> int | None:
    """Return the index of the entry that the GPU's driver takes, given each with its target; None if none fits."""
    cubins = [i for i, (entry, arch) in enumerate(entries) if entry.kind == "cubin" and arch.runs_on(gpu)]
    texts = [i for i, (entry, arch) in enumerate(entries) if entry.kind == "ptx" and arch.compiles_on(gpu)]

    def rank(index: int) -> tuple[int, int, int]:
        arch = entries[index][1]
        return arch.major, arch.minor, _SPECIFIC[arch.suffix]

    return max(cubins or texts, key=rank, default=None)
