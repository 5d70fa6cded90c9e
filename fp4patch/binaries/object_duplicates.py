"""Object files whose device code is also in a library beside them, as in the caches of just-in-time compilers.

A linker copies the section with the fatbins unchanged, so its bytes are found again in the library.
"""

import mmap
from collections.abc import Iterable, Set
from contextlib import suppress
from pathlib import Path

from fp4patch.sass.elf import DAMAGES, Elf

_OF_FATBINS = (".nv_fatbin", "__nv_relfatbin")


def objects(files: Iterable[Path]) -> Set[Path]:
    """Return those of the files that are object files and whose fatbins a library in the same directory holds."""
    libraries: dict[Path, list[Path]] = {}
    found = []
    for file in files:
        if file.suffix == ".so":
            libraries.setdefault(file.parent, []).append(file)
        elif file.suffix in (".o", ".obj"):
            found.append(file)
    return {file for file in found if any(_holds(library, file) for library in libraries.get(file.parent, ()))}


def _holds(library: Path, file: Path) -> bool:
    with suppress(OSError, *DAMAGES), library.open("rb") as stream:
        elf = Elf(file.read_bytes())
        fatbins = [elf.content(one) for one in elf.sections if elf.name(one) in _OF_FATBINS]
        with mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as content:
            return bool(fatbins) and all(fatbin and content.find(fatbin) >= 0 for fatbin in fatbins)
    return False
