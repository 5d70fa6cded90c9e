"""Machine code as parsed, and what two listings differ in."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fp4patch.model.arch import Arch


class InstructionClass(StrEnum):
    """What an instruction is for, as the metrics, the diff and the report's colours see it."""

    FP4 = "fp4"
    """Conversions to or from E2M1 (F2FP…E2M1…)."""
    CONVERT = "convert"
    """Every other conversion (F2F, F2I, I2F, other F2FP, HADD2.F32 as a widening move)."""
    MMA = "mma"
    FLOAT = "float"
    F64 = "f64"
    INTEGER = "integer"
    COMPARE = "compare"
    """Sets a predicate or selects by one."""
    MEMORY = "memory"
    """Global, shared and constant loads and stores."""
    LOCAL = "local"
    """Local memory: spills and stack (LDL, STL)."""
    BRANCH = "branch"
    """Conditional and unconditional control flow within the code, calls; not EXIT, not the final self-branch."""
    CONTROL = "control"
    """EXIT, barriers, NOP, BSSY/BSYNC."""
    MOVE = "move"
    OTHER = "other"


@dataclass(frozen=True)
class Instruction:
    """One machine instruction: ``@!P0 FSEL R1, R2, RZ, P1``."""

    address: int
    predicate: str
    """``@!P0`` or empty."""
    opcode: str
    """With its modifiers: ``F2FP.SATFINITE.E2M1.F32.PACK_AB_MERGE_C``."""
    operands: str
    cls: InstructionClass

    @property
    def text(self) -> str:
        """The instruction as a disassembler prints it, without address and semicolon."""
        return " ".join(part for part in (self.predicate, self.operation) if part)

    @property
    def operation(self) -> str:
        """The instruction without its predicate: what a rule's patterns are searched in."""
        return " ".join(part for part in (self.opcode, self.operands) if part)


@dataclass(frozen=True)
class SassListing:
    """The machine code of one kernel, without the padding after its end. Every line of it was understood."""

    function: str
    arch: Arch
    instructions: tuple[Instruction, ...]
    labels: dict[int, str]
    """Address to label name, for branch targets."""
    registers: int
    code_sha256: str
    """Of the bytes of the code section: equal means not one byte differs."""

    def count(self, *classes: InstructionClass) -> int:
        """How many instructions are of these classes (of all, if none is named)."""
        return sum(not classes or i.cls in classes for i in self.instructions)


class DiffKind(StrEnum):
    """How one row of a side-by-side comparison differs."""

    SAME = "same"
    """The same opcode and the same operands up to register numbering."""
    CHANGED = "changed"
    """The same opcode, other operands."""
    REMOVED = "removed"
    ADDED = "added"


@dataclass(frozen=True)
class DiffRow:
    """One row: an instruction before, after, or both."""

    kind: DiffKind
    before: Instruction | None
    after: Instruction | None


@dataclass(frozen=True)
class SassDiff:
    """Two listings aligned, and what they differ in by instruction class."""

    rows: tuple[DiffRow, ...]
    delta: dict[InstructionClass, int]
    """Instructions after minus before, for each class that differs."""
    identical: bool
    """Not one byte of code differs."""
