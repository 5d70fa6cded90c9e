"""What is common to the programs that run translated machine code on the host: the kernel, and the compiler's flags."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from fp4patch.core import process
from fp4patch.core.errors import ProofError
from fp4patch.sass.listing import Listing

KERNEL_NAME = "FP4PATCH_KERNEL"
"""Name that a translation must have: the program gives it a name of its own, twice."""

_LANGUAGE = ("-x", "c", "-std=gnu11", "-pthread", "-w", "-fno-strict-aliasing", "-ffp-contract=off", "-fno-fast-math")
STRAY = 3
"""The program's exit status where a kernel leaves its memory."""


@dataclass(frozen=True)
class Kernel:
    """A translation: C that defines ``static void FP4PATCH_KERNEL(const struct launch *launch)``."""

    c: str
    parameters: int
    """Byte offset of its parameters in constant bank 0."""
    block_size: int
    """Byte offset of blockDim.x in that bank."""
    listing: Callable[[], Listing] | None = field(default=None, compare=False, repr=False)
    """Function that reads its source, to prove that only its input decides its stores."""
    immediates: tuple[int, ...] = ()
    """Inputs of 32 bits that its immediates suggest."""


def compile_host(
    folder: Path, arguments: Sequence[str], *, compiler: Path | str, environ: Mapping[str, str] | None
) -> None:
    """Compile translated machine code in ``folder``; ProofError with the compiler's words where it does not."""
    command = [str(compiler), *_LANGUAGE, *arguments]
    try:
        done = process.run(command, limit=None, folder=folder, environ=environ)
    except FileNotFoundError as error:
        raise ProofError(f"there is no {compiler} to compile the translation with", help="install g++") from error
    if done.status:
        said = "\n".join(done.err.strip().splitlines()[:20])
        raise ProofError("the translated machine code does not compile for the host", help=said)
