"""What ``fp4patch doctor`` finds in compiled code, as values."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from fp4patch.model.doctor import Level, worst


class Fp4State(StrEnum):
    """What a binary is worth to one GPU. Closed."""

    NATIVE = "NVFP4 native"
    """What loads converts and multiplies by hardware."""
    SOFTWARE = "software conversion"
    """What loads converts to E2M1 by a software encoder."""
    MISSING = "emulated or missing"
    """The FP4 code is there for other targets: on this GPU nothing loads, or something without it."""
    NONE = "no FP4 code"
    """No FP4 code was found for any target."""
    NOTHING = "nothing loads"
    """There is device code, and none of it loads on this GPU."""
    UNKNOWN = "not known"
    """No device code was read."""


class Outcome(StrEnum):
    """What one GPU gets of one unit: a fatbin, that is one translation unit, or a cubin of its own."""

    NATIVE = "native"
    SOFTWARE = "software"
    LOST = "lost"
    """A target of this GPU's family has the FP4 code; what this GPU loads, if anything, has not."""
    UNWRITTEN = "unwritten"
    """Kernels that are named for FP4 load and hold neither the instructions nor a known encoder."""
    OTHER = "other GPUs"
    """The FP4 code is for another generation alone (SM100's tensor memory, say)."""
    PLAIN = "no FP4"


class Idle(StrEnum):
    """In which way a kernel does nothing of use. Closed."""

    TRAPS = "only trap"
    """Every path ends in a trap, or in an assertion that fails, before anything is written."""
    PRINTS = "only print"
    """No path writes anything, and one prints."""
    EMPTY = "do nothing"
    UNREAD = "store constants"
    """It writes, and reads no memory: what it stores depends on its arguments alone."""


@dataclass(frozen=True)
class Fp4Code:
    """What was counted in machine code, or in PTX. Numbers are of instructions where they stand, not as they run."""

    encodes: Mapping[str, int] = field(default_factory=dict)
    """Conversions to E2M1 by the instruction, by the type converted from: ``F32``, ``F16``, ``BF16``; those that round
    stochastically, which SM12x does not have, are counted apart: ``F32.RS``."""
    encoders: Mapping[str, int] = field(default_factory=dict)
    """Values converted by each software encoder that was recognised."""
    roundings: int = 0
    """Values that software rounds to what E2M1 can hold, and keeps as floats: a search for scales, not an encoder."""
    decodes: int = 0
    """Conversions from E2M1 by the instruction, two values each."""
    mma: Mapping[str, int] = field(default_factory=dict)
    """Matrix instructions by kind: ``OMMA.SF E2M1.E2M1 UE4M3.4X``; those on narrow floats only."""
    f64: int = 0
    """Double-precision instructions in the functions that convert."""
    traps: tuple[str, ...] = ()
    """Kernels that do nothing but trap."""
    prints: tuple[str, ...] = ()
    """Kernels that do nothing but print."""
    empty: tuple[str, ...] = ()
    """Kernels that do nothing at all."""
    named: tuple[str, ...] = ()
    """Kernels whose names speak of FP4."""

    @property
    def hardware(self) -> int:
        """Conversions to E2M1 by the instruction."""
        return sum(self.encodes.values())

    @property
    def software(self) -> int:
        """Values that software converts."""
        return sum(self.encoders.values())

    @property
    def fp4_mma(self) -> int:
        """Matrix instructions with an E2M1 operand."""
        return sum(number for kind, number in self.mma.items() if "E2M1" in kind or kind.startswith("UTCOMMA"))

    @property
    def native(self) -> bool:
        """Whether any FP4 instruction is there."""
        return bool(self.hardware or self.decodes or self.fp4_mma)


def total(codes: Iterable[Fp4Code]) -> Fp4Code:
    """The sum of several."""
    encodes, encoders, mma = Counter[str](), Counter[str](), Counter[str]()
    roundings = decodes = f64 = 0
    traps, prints, empty, named = (dict[str, None]() for _ in range(4))
    for code in codes:
        encodes.update(code.encodes)
        encoders.update(code.encoders)
        mma.update(code.mma)
        roundings += code.roundings
        decodes += code.decodes
        f64 += code.f64
        traps.update(dict.fromkeys(code.traps))
        prints.update(dict.fromkeys(code.prints))
        empty.update(dict.fromkeys(code.empty))
        named.update(dict.fromkeys(code.named))
    return Fp4Code(
        dict(sorted(encodes.items())),
        dict(sorted(encoders.items())),
        roundings,
        decodes,
        dict(sorted(mma.items())),
        f64,
        tuple(traps),
        tuple(prints),
        tuple(empty),
        tuple(named),
    )


@dataclass(frozen=True)
class ImageGroup:
    """The cubins, or the PTX, of one architecture, one compiler and one compression in one file."""

    kind: str
    """``cubin``, ``ptx``, or ``lto`` (an intermediate form that is compiled when the program is linked)."""
    arch: str
    """With its suffix: ``sm_120f``, ``compute_90``."""
    compiler: str
    """``13.0.88``; empty where nothing says it."""
    compression: str
    """``none``, ``lz4`` or ``zstd``."""
    count: int
    size: int
    """Bytes, uncompressed."""
    code: Fp4Code


def readable(mangled: str) -> str:
    """Return the qualified name in an Itanium-mangled one, without arguments; what is not one stays as it is."""
    found = re.match(r"_ZN?K?", mangled)
    parts, at = [], found.end() if found else 0
    while found and (length := re.compile(r"\d+").match(mangled, at)):
        begin = length.end()
        at = begin + int(length[0])
        parts.append(mangled[begin:at])
    return "::".join(part for part in parts if not part.startswith("_GLOBAL__N")) or mangled


@dataclass(frozen=True)
class LostKernel:
    """A kernel that has FP4 instructions for another architecture, and none in the copy that this GPU loads."""

    name: str
    held_by: str
    """The architecture whose copy has them: ``sm_100a``."""
    lost: Mapping[str, int]
    """How many instructions that copy has of each class of which this one has none: ``nearest`` and ``stochastic``
    (conversions to E2M1, by their rounding), ``decodings``, ``matrix``."""
    idle: Idle | None = None
    """In which way the copy that loads does nothing of use, if it does not."""
    says: tuple[str, ...] = ()
    """Messages about a wrong architecture that the copy that loads can print, and the other cannot."""
    reason: str = ""
    """Why this is as it should be; empty where no reason is known."""

    @property
    def level(self) -> Level:
        """RED where the copy that loads computes nothing at all; GREEN where that is as it should be."""
        useless = self.idle not in (None, Idle.UNREAD)
        return Level.GREEN if self.reason else Level.RED if useless else Level.YELLOW


@dataclass(frozen=True)
class Unread:
    """Something that was not read, or not to its end, and may hold code."""

    name: str
    because: str
    help: str = ""


@dataclass(frozen=True)
class Loading:
    """What one GPU loads of a file's units, of those that load the same and come to the same."""

    gpu: str
    loads: str
    """``sm_120f``; ``compute_90 (JIT)``; ``nothing``."""
    outcome: Outcome
    units: int
    code: Fp4Code
    """Of what loads."""
    held_by: tuple[str, ...] = ()
    """Where it is lost: the architectures that have the FP4 code."""
    lost: tuple[LostKernel, ...] = ()
    """Kernels that lost their FP4 instructions, whatever the units come to as a whole."""


@dataclass(frozen=True)
class JustInTime:
    """Units of which one GPU loads PTX: its driver compiles them when they are first used."""

    gpu: str
    arch: str
    """``compute_80``."""
    isa: str
    """The PTX version: ``8.7``."""
    units: int
    size: int
    """Bytes of PTX."""
    kernels: tuple[str, ...]
    seconds: float | None = None
    """What the ptxas at hand took for it, one unit after the other; None where that was not measured."""


@dataclass(frozen=True)
class BinaryFile:
    """One file with device code."""

    name: str
    """Its path, inside what was looked at."""
    size: int
    units: int
    """Fatbins, and cubins outside of any."""
    images: tuple[ImageGroup, ...]
    loading: tuple[Loading, ...]
    jit: tuple[JustInTime, ...] = ()


@dataclass(frozen=True)
class GpuVerdict:
    """What all files together are worth to one GPU."""

    gpu: str
    state: Fp4State
    because: str
    todo: str
    """What to do; empty where there is nothing to do."""
    level: Level


@dataclass(frozen=True)
class RunTimeCompiler:
    """A compiler that runs when a program does."""

    name: str
    """Its path, inside what was looked at."""
    role: str
    used_by: str
    """What calls it."""
    release: str
    """``13.0.88``; empty where it states none."""
    lacks: tuple[str, ...]
    """GPUs that were asked about and that it does not know."""
    level: Level = Level.GREEN
    remedy: str = ""


@dataclass(frozen=True)
class RequirementRow:
    """A requirement, and every reason why it is not met."""

    requirement: str
    """As it was written: ``sm_121:native``."""
    met: bool
    because: tuple[str, ...]


@dataclass(frozen=True)
class BinaryReport:
    """One wheel, library, folder or image."""

    source: str
    size: int
    """Bytes of what was read."""
    searched: int
    """Files that were looked into."""
    files: tuple[BinaryFile, ...]
    """Those with device code, in the order they were found."""
    verdicts: tuple[GpuVerdict, ...]
    seconds: float
    cached: bool = False
    unread: tuple[Unread, ...] = ()
    """What was not read. A report with any is red: nothing is known of it."""

    requirements: tuple[RequirementRow, ...] = ()
    compilers: tuple[RunTimeCompiler, ...] = ()

    @property
    def levels(self) -> tuple[Level, ...]:
        """One for each requirement, else each GPU and compiler; and one for each thing that was not read."""
        judged = [Level.GREEN if row.met else Level.RED for row in self.requirements]
        judged = judged or [*(verdict.level for verdict in self.verdicts), *(one.level for one in self.compilers)]
        return (*judged, *(Level.RED for _ in self.unread))

    @property
    def red(self) -> bool:
        """Whether a GPU that was asked for misses code, or something was not read."""
        return worst(self.levels) is Level.RED
