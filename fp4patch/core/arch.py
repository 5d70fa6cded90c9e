"""GPU targets of NVIDIA's compilers: their spellings, the GPUs that run their code, and the macros that they define.

The rules are those of the CUDA programming guide, "Compute capability and feature set compiler targets".
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Literal

from fp4patch.core.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from pydantic_core import CoreSchema


@dataclass(frozen=True, order=True)
class Arch:
    """A GPU target of NVIDIA's compilers: ``sm_121a`` is ``Arch(12, 1, "a")``.

    The suffix decides about FP4: a target without ``a`` or ``f`` does not have the FP4 instructions.
    """

    major: int
    minor: int
    suffix: Literal["", "a", "f"] = ""

    @classmethod
    def parse(cls, text: str) -> Arch:
        """Parse ``sm_121a``, ``compute_121a``, ``121a`` or PyTorch's ``12.1a``; raise ValueError for any other text."""
        found = re.fullmatch(r"(?:sm_|compute_)?(\d{1,2})(\.?)(\d)([af]?)", text.strip(), re.ASCII)
        if not found or not 5 <= int(found[1]) < 100:
            raise ValueError(f"{text!r} is not a GPU architecture; write for example sm_121a or 12.1a")
        return cls(int(found[1]), int(found[3]), found[4])  # type: ignore[arg-type]  # the pattern admits no other suffix

    @classmethod
    def __get_pydantic_core_schema__(cls, _source: type, _handler: object) -> CoreSchema:
        """Tell pydantic that a document has it as text; it calls this by name."""
        from pydantic_core import core_schema as core  # noqa: PLC0415 - only where a document is made

        text = core.no_info_after_validator_function(cls.parse, core.str_schema())
        either = core.union_schema([core.is_instance_schema(cls), text])
        return either | {"serialization": core.to_string_ser_schema()}

    @classmethod
    def parse_list(cls, text: str, *, ptx: bool = False) -> tuple[Arch, ...]:
        """Parse targets between commas, semicolons or blanks, each once; raise ValueError for any other text or none.

        With ``ptx`` a target can be followed by ``+PTX``, or by what PyTorch adds to a GPU that it detected:
        ``12.1(2.0)``, as in TORCH_CUDA_ARCH_LIST.
        """
        parts = elements(text)
        if not parts:
            raise ValueError("no architecture is named")
        return tuple(dict.fromkeys(cls.parse(_ADDED.sub("", part) if ptx else part) for part in parts))

    @property
    def gpu(self) -> Arch:
        """The GPU that the target is named after: ``sm_121`` of ``sm_121a``."""
        return Arch(self.major, self.minor)

    @property
    def number(self) -> str:
        """Digits and suffix: ``121a``."""
        return f"{self.major}{self.minor}{self.suffix}"

    @property
    def torch(self) -> str:
        """PyTorch's form, as in TORCH_CUDA_ARCH_LIST: ``12.1a``."""
        return f"{self.major}.{self.minor}{self.suffix}"

    @property
    def macros(self) -> dict[str, str]:
        """The macros that nvcc defines in the device pass for this target, and their values."""
        number = f"{self.gpu.number}0"
        macros = {"__CUDA_ARCH__": number}
        if self.suffix == "a":
            macros |= {f"__CUDA_ARCH_FEAT_SM{self.gpu.number}_ALL": "", "__CUDA_ARCH_SPECIFIC__": number}
        if self.suffix:
            macros |= {"__CUDA_ARCH_FAMILY_SPECIFIC__": number}
        return macros

    def runs_on(self, gpu: Arch) -> bool:
        """Return whether a cubin for this target loads on ``gpu``.

        Both must have the same major version. A plain or family (``f``) target runs on its own and later minor
        versions, an ``a`` target on its own alone.
        """
        if self.major != gpu.major:
            return False
        return self.minor == gpu.minor if self.suffix == "a" else self.minor <= gpu.minor

    def compiles_on(self, gpu: Arch) -> bool:
        """Return whether a driver compiles PTX for this target on ``gpu``.

        Plain PTX is compiled on every later GPU, ``f`` within its family, ``a`` on its own GPU alone.
        """
        return self.runs_on(gpu) if self.suffix else (self.major, self.minor) <= (gpu.major, gpu.minor)

    def __str__(self) -> str:
        return f"sm_{self.number}"


PTX = "+PTX"
"""Suffix of an element of TORCH_CUDA_ARCH_LIST for which PTX is added to the machine code."""
_ADDED = re.compile(r"(\(\d\.\d\))?(\+PTX)?$")


def elements(text: str) -> list[str]:
    """Return the elements of a list of targets. Commas, semicolons or blanks separate them."""
    return [part for part in re.split(r"[,;\s]+", text) if part]


def requested(text: str, help: str, *, ptx: bool = False) -> tuple[Arch, ...]:  # noqa: A002 - as UsageError's
    """Parse the architectures that an option names; UsageError, with ``help``, for anything else."""
    try:
        return Arch.parse_list(text, ptx=ptx)
    except ValueError as error:
        raise UsageError(str(error), help=help) from None


def nearest(gpu: Arch, code: Collection[Arch], ptx: Collection[Arch]) -> Arch | None:
    """Return the target that a GPU's driver takes, given those of machine code and those of PTX; None if none fits.

    A cubin that the GPU can run comes before any PTX, the nearest architecture first, and of those the most specific.
    """
    cubins = [arch for arch in code if arch.runs_on(gpu)]
    fitting = cubins or [arch for arch in ptx if arch.compiles_on(gpu)]
    return max(fitting, key=lambda arch: (arch.major, arch.minor, ("", "f", "a").index(arch.suffix)), default=None)


def made_by(arch: str, code: str) -> Arch | None:
    """Return the target of what nvcc makes of ``-gencode arch=ARCH,code=CODE``: machine code for ``sm_121a``, or PTX.

    The suffix is that of ``arch``: ``compute_120f`` with ``sm_120`` is sm_120f, and ``compute_120`` with ``sm_120f``
    has no FP4 instruction. None: nvcc refuses the pair, or it makes no target (``compute_120`` with ``sm_120a``).
    """
    try:
        virtual, real = Arch.parse(arch), Arch.parse(code)
    except ValueError:
        return None
    made: Arch | None
    if code.startswith("compute_") or virtual == real:
        return real
    if virtual.suffix == "f":
        made = real if real.suffix else replace(real, suffix="f")
    elif real.suffix == "f":
        made = real.gpu
    else:
        made = real if not real.suffix or real.major < 10 else None
    alone = virtual.suffix or real.suffix == "f"
    fits = virtual.suffix != "a" and virtual.gpu <= real.gpu and (virtual.major == real.major or not alone)
    return made if fits else None


GB10 = Arch(12, 1)
GPUS = (Arch(12, 0), GB10)
"""GPUs that fp4patch targets: RTX PRO 6000 and RTX 50 (sm_120), and GB10 (sm_121)."""


class Reach(StrEnum):
    """FP4 support that a GPU gets from code compiled for a set of targets, the best first."""

    SUFFIXED = "native"
    """The GPU loads a cubin whose target has the FP4 instructions, or any cubin of kernels that need none."""
    BARE = "no FP4"
    """The GPU loads a cubin, but its target has no suffix and therefore no FP4 instructions."""
    PTX = "PTX"
    """The GPU loads no cubin, and its driver compiles PTX: only for kernels that need no FP4 instruction."""
    NOTHING = "nothing loads"
    PARTLY = "in part"
    """Some of several modules that are compiled separately have the FP4 instructions, and others do not."""


def reach(archs: Iterable[Arch], gpu: Arch) -> Reach:
    """Return the best support that ``gpu`` gets from code for these targets."""
    loaded = [arch for arch in archs if arch.runs_on(gpu)]
    if not loaded:
        return Reach.NOTHING
    return Reach.SUFFIXED if any(arch.suffix for arch in loaded) else Reach.BARE
