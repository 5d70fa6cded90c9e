"""Findings of ``fp4patch doctor`` about compiled code, as values."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from fp4patch.binaries.findings import Answer, Level
from fp4patch.core.arch import GB10, Arch
from fp4patch.core.document import Document, Report
from fp4patch.core.wording import listed


class LoadOutcome(StrEnum):
    """Result for one GPU and one fatbin (one translation unit) or one separate cubin."""

    NATIVE = "native"
    SOFTWARE = "software"
    LOST = "lost"
    """A target of this GPU's family has the FP4 code, but the code that this GPU loads, if any, does not."""
    UNWRITTEN = "unwritten"
    """Kernels with FP4 in their name load, but hold neither the instructions nor a known encoder."""
    OTHER = "other GPUs"
    """The FP4 code is for another generation only."""
    DESIGN = "by design"
    """This GPU has no such FP4 code, and each kernel that it lacks has a known reason (by_design.toml)."""
    ABSENT = "not built for it"
    """Nothing loads, there is no FP4 code, and the code is not for another family of Blackwell or Hopper alone."""
    PLAIN = "no FP4"


class Idle(StrEnum):
    """Sign that a kernel does nothing of use. Closed."""

    EMPTY = "do nothing, or print"
    UNREAD = "store constants"
    """It writes and reads no memory, so its stores depend on its arguments alone."""


FP4_CLASSES = ("nearest", "stochastic", "decodings", "matrix")
"""Classes of FP4 instructions, the first fields of :class:`Fp4Code`."""


@dataclass(frozen=True)
class Fp4Code(Document):
    """Static counts of FP4 instructions in machine code or in PTX."""

    nearest: int = 0
    """Conversions to E2M1 that round to the nearest value."""
    stochastic: int = 0
    """Conversions to E2M1 with stochastic rounding, which SM12x does not have."""
    decodings: int = 0
    """Conversions from E2M1, two values each."""
    matrix: int = 0
    """Matrix instructions with an E2M1 operand."""
    encoders: Mapping[str, int] = field(default_factory=dict)
    """Values converted by each software encoder that was recognised."""
    named: tuple[str, ...] = ()
    """Kernels with FP4 in their name."""

    @property
    def hardware(self) -> int:
        """Conversions to E2M1 by the instruction."""
        return self.nearest + self.stochastic

    @property
    def native(self) -> bool:
        """True if the code has any FP4 instruction."""
        return bool(self.hardware or self.decodings or self.matrix)


def total(codes: Iterable[Fp4Code]) -> Fp4Code:
    """Return the sum of several counts."""
    every = [code for code in codes if code != _NONE]
    encoders = Counter[str]()
    for code in every:
        encoders.update(code.encoders)
    return Fp4Code(
        **{name: sum(getattr(code, name) for code in every) for name in FP4_CLASSES},
        encoders=dict(sorted(encoders.items())),
        named=tuple(dict.fromkeys(kernel for code in every for kernel in code.named)),
    )


_NONE = Fp4Code()


@dataclass(frozen=True)
class ImageGroup(Document):
    """The cubins, or the PTX and the code for the linker, of one architecture in one file."""

    arch: str
    """Architecture with its suffix: ``sm_120f``, ``compute_90``."""
    count: int
    code: Fp4Code


def readable(mangled: str) -> str:
    """Return the qualified name of an Itanium-mangled one, without arguments. Other names are returned unchanged."""
    found = re.match(r"_ZN?K?", mangled)
    parts, at = [], found.end() if found else 0
    while found and (length := re.compile(r"\d+").match(mangled, at)):
        begin = length.end()
        at = begin + int(length[0])
        parts.append(mangled[begin:at])
    return "::".join(part for part in parts if not part.startswith("_GLOBAL__N")) or mangled


@dataclass(frozen=True)
class LostKernel(Document):
    """A kernel that has FP4 instructions for another architecture, and none in the copy that this GPU loads."""

    name: str
    held_by: str
    """Architecture whose copy has them: ``sm_100a``."""
    lost: Mapping[str, int]
    """Number of instructions of that copy in each class of which this one has none: ``nearest`` and ``stochastic``
    (conversions to E2M1, by their rounding), ``decodings``, ``matrix``."""
    idle: Idle | None = None
    """Sign that the copy that loads does nothing of use, if it has one."""
    reason: str = ""
    """Reason why the loss is intended; empty if none is known."""


@dataclass(frozen=True)
class Unread(Document):
    """An input that was not read, or not to its end, and that can contain code."""

    name: str
    because: str
    help: str = ""


@dataclass(frozen=True)
class Loading(Document):
    """Code that one GPU loads from a file, for all fatbins and cubins with the same code and outcome."""

    gpu: Arch
    loads: str
    """Target of the loaded code: ``sm_120f``; ``compute_90 (JIT)``; ``nothing``."""
    outcome: LoadOutcome
    fatbins: int
    code: Fp4Code
    """Counts of the loaded code."""
    held_by: tuple[str, ...] = ()
    """Architectures that have the FP4 code, where this GPU lost it."""
    lost: tuple[LostKernel, ...] = ()
    """Kernels that lost their FP4 instructions, independent of the outcome as a whole."""
    native: tuple[str, ...] = ()
    """Kernels that load and have FP4 instructions."""
    isa: str = ""
    """Version of the PTX that the driver compiles when it is first used: ``8.7``. Empty if machine code loads."""
    tensor_memory: bool = False
    """True if the code for another family multiplies in tensor memory (tcgen05), so that SM12x cannot have it."""


@dataclass(frozen=True)
class BinaryFile(Document):
    """One file with device code."""

    name: str
    """Path of the file, relative to the input."""
    size: int
    fatbins: int
    """Number of fatbins, and of cubins outside of any fatbin."""
    images: tuple[ImageGroup, ...]
    loading: tuple[Loading, ...]
    processor: str = ""
    """Processor of a library or program, by its ELF header: ``x86-64``, ``arm64``; empty of another file."""

    def loads(self, gpu: Arch) -> bool:
        """Return whether it is judged for a GPU."""
        return any(row.gpu == gpu for row in self.loading)


@dataclass(frozen=True)
class RunTimeCompiler(Document):
    """A compiler that runs when a program does."""

    name: str
    """Path of the compiler, relative to the input."""
    role: str
    """Purpose of the compiler."""
    used_by: str
    """Caller of the compiler."""
    release: str
    """CUDA release: ``13.0.88``. Empty if it states none."""
    unsupported: tuple[Arch, ...]
    """Requested GPUs that it does not support."""
    level: Level = Level.GREEN
    remedy: str = ""
    """Recommended action; empty if none is needed."""


@dataclass(frozen=True)
class RequirementRow(Document):
    """A requirement, and every reason why it is not met."""

    requirement: str
    """The requirement as the user wrote it: ``sm_121:native``."""
    met: bool
    because: tuple[str, ...]
    """Every reason why it is not met."""


@dataclass(frozen=True)
class BinaryReport(Report):
    """Report on one wheel, library, directory or image."""

    source: str
    """The scanned input."""
    size: int
    """Number of bytes read."""
    searched: int
    """Number of files that were searched."""
    files: tuple[BinaryFile, ...]
    """Files with device code, in the order in which they were found."""
    answers: tuple[Answer, ...] = ()
    unread: tuple[Unread, ...] = ()
    """Inputs that were not read. A report with any is red, since nothing is known about them."""

    requirements: tuple[RequirementRow, ...] = ()
    compilers: tuple[RunTimeCompiler, ...] = ()
    sources: int = 0
    """Number of CUDA sources beside the compiled code."""
    variant: str = ""
    """Variant of fp4patch that it was built with, by its local version: ``next3`` of ``0.33.0+fp4patch.next3``."""

    def wrong_processor(self, gpu: Arch) -> str:
        """Return why no machine with a GPU runs it, by the wheel's name, else by its libraries; empty if one does."""
        own = "arm64" if gpu == GB10 else ""
        stated = re.search(r"(x86_64|amd64|i686|win32)\.whl$", self.source)
        # Examples: tag-any.whl, tag-aarch64.whl
        if not own or (self.source.endswith(".whl") and not stated and not self.source.endswith("any.whl")):
            return ""
        if stated:
            return f"the wheel is for x86-64, and machines with GB10 are {own}: check the aarch64 wheel"
        others = {file.processor for file in self.files if file.processor and file.loads(gpu)} - {own}
        alone = others and not any(file.processor == own for file in self.files)
        return f"its libraries are for {listed(sorted(others))}, and machines with GB10 are {own}" if alone else ""

    @property
    def levels(self) -> tuple[Level, ...]:
        """Levels: one for each requirement, else each GPU and compiler; RED for each input that was not read."""
        judged = [Level.GREEN if row.met else Level.RED for row in self.requirements]
        judged = judged or [*(one.level for one in self.answers), *(one.level for one in self.compilers)]
        return (*judged, *(Level.RED for _ in self.unread))
