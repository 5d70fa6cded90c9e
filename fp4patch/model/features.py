"""The nouns of ``fp4patch probe``: an instruction of PTX, and what an assembler makes of it for a target."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING

from fp4patch.model.manifest import Manifest

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fp4patch.model.arch import Arch


@dataclass(frozen=True, kw_only=True)
class Feature(Manifest):
    """An instruction of PTX to try, with operands that come from memory and results that go there.

    The tables of ``patches/features/*.toml``.
    """

    instruction: str
    """In full, with its modifiers; also the feature's name."""
    title: str
    """What it does, for people."""
    reads: tuple[str, ...]
    """Registers to load, each with a type and names: ``.f32 a, b``."""
    writes: str = ""
    """Registers to store, written the same way; empty where the instruction itself writes elsewhere."""
    setup: str = ""
    """PTX that must stand before the instruction, for example a predicate."""
    operands: str
    """As in PTX, the destination first: ``d, a, b``."""
    sass: str
    """A regular expression. Where an opcode of the machine code matches it in full, the target has it in hardware."""
    note: str = ""
    """What a reader should know of it: who uses it, or that a document claims it."""


@dataclass(frozen=True, kw_only=True)
class FeatureGroup(Manifest):
    """One file of features, in its order."""

    title: str
    features: tuple[Feature, ...]


@dataclass(frozen=True, kw_only=True)
class ToolkitWheel(Manifest):
    """A pinned wheel of the package index that holds one toolkit's ptxas; ``patches/toolkits.toml``."""

    release: str
    """``13.0.88``."""
    machine: str
    """What the program runs on, as ``uname -m`` says it: ``x86_64`` or ``aarch64``."""
    project: str
    filename: str
    sha256: str


@dataclass(frozen=True, kw_only=True)
class ToolkitWheels(Manifest):
    """``patches/toolkits.toml``."""

    wheels: tuple[ToolkitWheel, ...]


class Outcome(StrEnum):
    """What became of an instruction on a target. Closed."""

    HARDWARE = "hardware"
    """The machine code has an instruction of its own for it."""
    EMULATED = "emulated"
    """The assembler takes it and writes other instructions."""
    ACCEPTED = "accepted"
    """The assembler takes it; without a disassembler nothing more can be said."""
    REJECTED = "rejected"
    """The assembler refuses it."""


class Refusal(StrEnum):
    """Why an assembler refuses, by its own words. Closed: what fits no other class is ``OTHER``, with the words."""

    TARGET = "not supported on target"
    MODIFIER = "unknown modifier"
    TYPES = "unknown types"
    INSTRUCTION = "unknown instruction"
    PTX_VERSION = "PTX version too low"
    UNKNOWN_TARGET = "unknown target"
    OTHER = "refused"


@dataclass(frozen=True)
class Cell:
    """One instruction on one target."""

    instruction: str
    target: Arch
    outcome: Outcome
    sass: tuple[tuple[str, int], ...] = ()
    """Opcodes with modifiers, and how often: those that matched, or what it is emulated by."""
    refusal: Refusal | None = None
    words: str = ""
    """The assembler's first error, without file and line."""

    @property
    def code(self) -> str:
        """``F2FP.SATFINITE.E2M1.F32.PACK_AB_MERGE_C``, or ``2 FFMA``; empty where nothing was disassembled."""
        return ", ".join(opcode if count == 1 else f"{count} {opcode}" for opcode, count in self.sass)


@dataclass(frozen=True)
class ToolkitMatrix:
    """All features on all targets asked about, by one ptxas."""

    ptxas: str
    """Its release: ``13.0.88``."""
    path: str
    sha256: str
    isa: str
    """The PTX version that the probes are written in: ``9.0``."""
    nvdisasm: str
    """The disassembler's release; empty where there was none."""
    targets: tuple[Arch, ...]
    cells: tuple[Cell, ...]
    """Feature by feature, in the order of the data, each on every target."""
    seconds: float

    @cached_property
    def index(self) -> Mapping[tuple[str, Arch], Cell]:
        """Cells by instruction and target."""
        return {(cell.instruction, cell.target): cell for cell in self.cells}


@dataclass(frozen=True)
class FeatureReport:
    """What ``fp4patch probe`` found: the features asked about, and one matrix for each toolkit."""

    groups: tuple[FeatureGroup, ...]
    toolkits: tuple[ToolkitMatrix, ...]
    fp4patch: str
