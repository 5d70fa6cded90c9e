"""Values of ``fp4patch features``: PTX instructions, and the machine code of each for a target."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property

from fp4patch.core.arch import Arch
from fp4patch.core.document import HIDDEN, Document, Report, shown
from fp4patch.core.table import Manifest


@dataclass(frozen=True, kw_only=True)
class Feature(Manifest):
    """A PTX instruction to test, with operands that come from memory and results that are stored there.

    The tables of ``records/features/*.toml`` have this form.
    """

    instruction: str
    """Full name with modifiers; also the feature's name."""
    title: str
    """Short description of the instruction."""
    reads: tuple[str, ...]
    """Registers to load, each with a type and names: ``.f32 a, b``."""
    writes: str = ""
    """Registers to store, written the same way; empty where the instruction itself writes elsewhere."""
    setup: str = ""
    """PTX to insert before the instruction, for example to set a predicate."""
    operands: str
    """Operands as in PTX, the destination first: ``d, a, b``."""
    sass: str
    """Regular expression. If it matches an opcode of the machine code in full, the target has the instruction in
    hardware."""
    note: str = ""
    """Note for the reader, for example who uses the instruction or which document claims it."""


@dataclass(frozen=True, kw_only=True)
class FeatureGroup(Manifest):
    """One file of features, in its order."""

    title: str
    features: tuple[Feature, ...]


@dataclass(frozen=True, kw_only=True)
class ToolkitWheel(Manifest):
    """A pinned wheel of the package index that holds one toolkit's ptxas; ``records/toolkits.toml``."""

    release: str
    """Release of ptxas: ``13.0.88``."""
    machine: str
    """Machine that the program runs on, as ``uname -m`` prints it: ``x86_64`` or ``aarch64``."""
    project: str
    filename: str
    sha256: str


@dataclass(frozen=True, kw_only=True)
class ToolkitWheels(Manifest):
    """Pinned wheels of all toolkits: the table of ``records/toolkits.toml``."""

    wheels: tuple[ToolkitWheel, ...]


class Outcome(StrEnum):
    """Result of assembling an instruction for a target. Closed."""

    HARDWARE = "hardware"
    """The machine code has an instruction for it."""
    EMULATED = "emulated"
    """The assembler accepts it and emits other instructions."""
    ACCEPTED = "accepted"
    """The assembler accepts it. Without a disassembler, no more is known."""
    REJECTED = "rejected"
    """The assembler refuses it."""


class Refusal(StrEnum):
    """Reason why an assembler refuses, from its error message. Closed: ``OTHER`` is every other message."""

    TARGET = "not supported on target"
    MODIFIER = "unknown modifier"
    TYPES = "unknown types"
    INSTRUCTION = "unknown instruction"
    PTX_VERSION = "PTX version too low"
    UNKNOWN_TARGET = "unknown target"
    OTHER = "refused"


@dataclass(frozen=True)
class Opcode(Document):
    """An opcode with its modifiers, and the number of its instructions."""

    opcode: str
    count: int


@dataclass(frozen=True)
class FeatureRow(Document):
    """A feature without the way in which it is tested."""

    instruction: str
    """PTX, in full."""
    title: str
    group: str
    note: str


@dataclass(frozen=True)
class Cell(Document):
    """Result of one instruction on one target."""

    instruction: str
    target: Arch
    outcome: Outcome
    sass: tuple[tuple[str, int], ...] = field(default=(), metadata=HIDDEN)
    """Opcodes with modifiers and their counts: those that matched, or those that emulate the instruction."""
    refusal: Refusal | None = None
    words: str = ""
    """The assembler's first error, without file and line; empty if it accepted the instruction."""

    @property
    def code(self) -> str:
        """Summary of ``sass``: ``F2FP.SATFINITE.E2M1.F32.PACK_AB_MERGE_C``, or ``2 FFMA``. Empty if nothing was
        disassembled."""
        return ", ".join(opcode if count == 1 else f"{count} {opcode}" for opcode, count in self.sass)

    @property
    @shown("sass")
    def opcodes(self) -> tuple[Opcode, ...]:
        """Opcodes that matched, or those that emulate the instruction."""
        return tuple(Opcode(opcode, count) for opcode, count in self.sass)


@dataclass(frozen=True)
class ToolkitMatrix(Document):
    """Results of all features on all requested targets, by one ptxas."""

    ptxas: str
    """Release of ptxas: ``13.0.88``."""
    path: str
    sha256: str
    isa: str
    """PTX version of the probes: ``9.0``."""
    nvdisasm: str
    """Release of the disassembler; empty if there was none."""
    targets: tuple[Arch, ...]
    cells: tuple[Cell, ...]
    """Results feature by feature, in the order of the data, each on every target."""
    seconds: float

    @cached_property
    def index(self) -> Mapping[tuple[str, Arch], Cell]:
        """Cells by instruction and target."""
        return {(cell.instruction, cell.target): cell for cell in self.cells}


@dataclass(frozen=True)
class FeatureReport(Report):
    """Report of ``fp4patch features``: the requested features, and one matrix for each toolkit."""

    groups: tuple[FeatureGroup, ...] = field(metadata=HIDDEN)
    toolkits: tuple[ToolkitMatrix, ...]
    fp4patch: str
    """Version of fp4patch."""

    @property
    @shown()
    def features(self) -> tuple[FeatureRow, ...]:
        """Requested features."""
        return tuple(
            FeatureRow(one.instruction, one.title, group.title, one.note)
            for group in self.groups
            for one in group.features
        )
