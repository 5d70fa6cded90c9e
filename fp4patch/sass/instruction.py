"""A machine instruction as a disassembler writes it, and its purpose."""

from dataclasses import dataclass
from enum import StrEnum


class InstructionClass(StrEnum):
    """Purpose of an instruction, as used by the metrics, the diff and the report's colours."""

    FP4 = "fp4"
    """Conversions to or from E2M1 (F2FP…E2M1…)."""
    CONVERT = "convert"
    """Every other conversion (F2F, F2I, I2F, other F2FP, HADD2.F32 as a widening move)."""
    MMA = "mma"
    FLOAT = "float"
    F64 = "f64"
    INTEGER = "integer"
    COMPARE = "compare"
    """Instructions that set a predicate or select by one."""
    MEMORY = "memory"
    """Global, shared and constant loads and stores."""
    LOCAL = "local"
    """Local memory: spills and stack (LDL, STL)."""
    BRANCH = "branch"
    """Conditional and unconditional control flow within the code, and calls; not EXIT, not the final self-branch."""
    CONTROL = "control"
    """EXIT, barriers, NOP, BSSY/BSYNC."""
    MOVE = "move"
    OTHER = "other"


@dataclass(frozen=True)
class Instruction:
    """One machine instruction: ``@!P0 FSEL R1, R2, RZ, P1``."""

    address: int
    predicate: str
    """Predicate: ``@!P0`` or empty."""
    opcode: str
    """Opcode with its modifiers: ``F2FP.SATFINITE.E2M1.F32.PACK_AB_MERGE_C``."""
    operands: str
    cls: InstructionClass

    @property
    def text(self) -> str:
        """The instruction as a disassembler prints it, without address and semicolon."""
        return " ".join(part for part in (self.predicate, self.operation) if part)

    @property
    def operation(self) -> str:
        """The instruction without its predicate; the patterns of rules are searched in this text."""
        return " ".join(part for part in (self.opcode, self.operands) if part)
