"""Listing of a kernel, as a report shows it."""

from dataclasses import dataclass, field
from functools import cached_property

from fp4patch.core.document import HIDDEN, Document, shown
from fp4patch.sass.instruction import Instruction, InstructionClass


@dataclass(frozen=True)
class SassListing(Document):
    """Machine code of one kernel, without the padding after its end, and without the same 20 instructions before every
    kernel for sm_87. Every line was parsed completely."""

    instructions: tuple[Instruction, ...] = field(metadata=HIDDEN)
    labels: dict[int, str] = field(metadata=HIDDEN)
    """Label names of branch targets, by address."""
    code_sha256: str
    """SHA-256 of the bytes of the code section. If two are equal, the code is identical."""

    @cached_property
    def opcodes(self) -> frozenset[str]:
        """Its opcodes with their modifiers, each once."""
        return frozenset(instruction.opcode for instruction in self.instructions)

    def count(self, cls: InstructionClass) -> int:
        """Return the number of instructions of a class."""
        return sum(instruction.cls is cls for instruction in self.instructions)

    @property
    @shown("instructions")
    def size(self) -> int:
        """Number of instructions."""
        return len(self.instructions)

    @property
    @shown()
    def branches(self) -> int:
        """Number of branches and calls."""
        return self.count(InstructionClass.BRANCH)

    @property
    @shown()
    def fp4(self) -> int:
        """Number of conversions to or from E2M1."""
        return self.count(InstructionClass.FP4)

    @property
    @shown()
    def local(self) -> int:
        """Number of accesses to local memory: spills and stack."""
        return self.count(InstructionClass.LOCAL)

    @property
    @shown()
    def f64(self) -> int:
        """Number of double-precision instructions."""
        return self.count(InstructionClass.F64)

    @property
    @shown()
    def listing(self) -> list[str]:
        """Lines ``00a0  @!P0 FSEL R1, R2, RZ, P1``, and ``.L_x_1:`` before the target of a label."""
        lines = []
        for instruction in self.instructions:
            if (label := self.labels.get(instruction.address)) is not None:
                lines.append(f"{label}:")
            lines.append(f"{instruction.address:04x}  {instruction.text}")
        return lines
