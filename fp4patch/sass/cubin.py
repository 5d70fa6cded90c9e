"""A cubin: its kernels, which of them can be executed, and their execution on this machine's processor."""

import shutil
import tempfile
import weakref
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from fp4patch.sass import grid
from fp4patch.sass.error import SassError
from fp4patch.sass.grid import Launch
from fp4patch.sass.program import Kernel, run_program
from fp4patch.sass.text import functions, opened, own_constants, own_shared, parameters
from fp4patch.sass.translate import translate


@dataclass(frozen=True)
class Cubin:
    """An object file of one architecture, and what ``nvdisasm -c`` writes of it."""

    content: bytes
    listing: str
    arch: tuple[int, int]
    """Compute capability: (12, 1)."""

    @property
    def kernels(self) -> tuple[str, ...]:
        """Names of its kernels; subroutines that the compiler linked to one are a part of it."""
        return tuple(sorted(name for name in functions(self.content) if f".text.{name}:" in self.listing))

    def reason(self, kernel: str) -> str:
        """Return why a kernel cannot be executed, such as an instruction that is not known; empty if it can."""
        try:
            _translated(self, kernel)
        except SassError as error:
            return "; ".join(part for part in (error.message, error.help) if part)
        return ""

    def parameters(self, kernel: str) -> tuple[tuple[int, int], ...]:
        """Return the offset and the size in bytes of each parameter of a kernel."""
        return parameters(kernel, self.content)

    def execute(self, kernel: str, launch: Launch, *, compiler: Path | str = "gcc") -> list[bytes]:
        """Return the writable arrays as a launch of a kernel leaves them.

        The program is compiled once for all launches. SassError if the kernel cannot be executed, or reads or writes
        outside of the arrays of the launch.
        """
        built = _built(self, kernel, str(compiler))
        return grid.run(built.folder / "grid", built.kernel, launch)[0]


def read_cubin(file: Path, *, nvdisasm: Path | str = "nvdisasm") -> Cubin:
    """Read a cubin with CUDA's disassembler; SassError if it is none, or does not have machine code that is known."""
    content = file.read_bytes()
    arch = _arch(content)
    status, listing, messages = run_program([nvdisasm, "-c", file])
    if status:
        raise SassError(f"nvdisasm -c ended with status {status}: {messages.strip()}", help="take a newer one")
    return Cubin(content, listing, arch)


def _arch(content: bytes) -> tuple[int, int]:
    """Return the compute capability: in the flags of the header, whose place changed with version 8 of the ABI."""
    with opened(content) as file:
        head = file.header
        number = head.flags >> 8 & 0xFF if head.ident[8] >= 8 else head.flags & 0xFF
    return divmod(number, 10)


@lru_cache(maxsize=64)
def _translated(cubin: Cubin, kernel: str) -> Kernel:
    words = own_constants(kernel, cubin.content)
    shared = own_shared(kernel, cubin.content)
    return translate(cubin.listing, arch=cubin.arch, kernel=kernel, words=words, grid=True, shared=shared)


@dataclass(frozen=True)
class _Built:
    """A kernel's program; its folder goes when nobody has it any longer."""

    kernel: Kernel
    folder: Path


@lru_cache(maxsize=16)
def _built(cubin: Cubin, kernel: str, compiler: str) -> _Built:
    built = _Built(_translated(cubin, kernel), Path(tempfile.mkdtemp(prefix="sass-")))
    weakref.finalize(built, shutil.rmtree, built.folder, ignore_errors=True)
    grid.build(built.folder, built.kernel, compiler=compiler, quick=True)
    return built
