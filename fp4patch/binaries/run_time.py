"""Compilers that run when a program does: which files they are, their release, and which GPUs they know.

They are read and not run: an image's may be for another machine. A compiler names each target that it knows
(``sm_121a``), and NVIDIA's state their release.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from packaging.version import Version

from fp4patch.binaries.findings import Level
from fp4patch.binaries.known_programs import CompilerProgram, known
from fp4patch.binaries.report import RunTimeCompiler
from fp4patch.binaries.stream_reader import Readable
from fp4patch.core.arch import Arch
from fp4patch.core.cuda import FOR_GB10, RELEASE, has

_TARGET = re.compile(rb"sm_\d{2,3}[af]?(?![\daf])")
_OVERLAP = 80
"""Bytes of one part that are searched with the next: no text that is sought is longer."""


@dataclass
class Listening:
    """A stream that passes a compiler on to another reader, and notes what it states of itself."""

    stream: Readable
    name: str
    release: str = ""
    targets: set[bytes] = field(default_factory=set)
    _tail: bytes = b""

    def read(self, size: int = -1, /) -> bytes:
        """As a file's."""
        piece = self.stream.read(size)
        searched = self._tail + piece
        self.targets.update(_TARGET.findall(searched))
        if not self.release and (found := RELEASE.search(searched)):
            self.release = found[1].decode()
        self._tail = searched[-_OVERLAP:]
        return piece

    def compiler(self, gpus: Iterable[Arch]) -> RunTimeCompiler:
        """Return what was found out, after all was read."""
        one = program(self.name)
        assert one, self.name
        unsupported = tuple(gpu for gpu in gpus if not self._knows(gpu))
        # One that compiles for the GPU's own target alone fails; others may be configured for an older target.
        level = Level.GREEN if not unsupported else Level.RED if one.alone else Level.YELLOW
        remedy = one.remedy.format(cuda=FOR_GB10) if unsupported else ""
        return RunTimeCompiler(self.name, one.role, one.used_by, self.release, unsupported, level, remedy)

    def _knows(self, gpu: Arch) -> bool:
        if self.targets:
            return f"{gpu}a".encode() in self.targets or f"{gpu}".encode() in self.targets
        return not self.release or has(Version(self.release), gpu)


def program(name: str) -> CompilerProgram | None:
    """Return which compiler a file is by its name, with its directories; None if it is none."""
    return next((one for one in known().compiler if re.fullmatch(one.file, name)), None)


def read(path: Path, name: str, gpus: Iterable[Arch]) -> RunTimeCompiler:
    """Read one from the disk; OSError where that fails."""
    with path.open("rb") as file:
        listening = Listening(file, name)
        while listening.read(1 << 20):
            pass
        return listening.compiler(gpus)


def used(found: Sequence[RunTimeCompiler]) -> tuple[RunTimeCompiler, ...]:
    """Leave out Triton's ptxas where a ptxas-blackwell is beside it, which Triton takes for SM100 and later."""
    names = {one.name for one in found}
    return tuple(one for one in found if f"{one.name}-blackwell" not in names)
