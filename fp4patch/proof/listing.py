"""Listings of kernels, and two of them side by side, as a report shows them."""

import re
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple

from fp4patch.core.arch import Arch
from fp4patch.core.document import HIDDEN, Document, shown
from fp4patch.sass.instruction import Instruction, InstructionClass


@dataclass(frozen=True)
class SassListing(Document):
    """Machine code of one kernel, without the padding after its end, and without the same 20 instructions before every
    kernel for sm_87. Every line was parsed completely."""

    arch: Arch = field(metadata=HIDDEN)
    instructions: tuple[Instruction, ...] = field(metadata=HIDDEN)
    labels: dict[int, str] = field(metadata=HIDDEN)
    """Label names of branch targets, by address."""
    registers: int
    """Registers per thread."""
    code_sha256: str
    """SHA-256 of the bytes of the code section. If two are equal, the code is identical."""

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


class DiffKind(StrEnum):
    """Difference in one row of a side-by-side comparison."""

    SAME = "same"
    """The same opcode and the same operands up to register numbering."""
    CHANGED = "changed"
    """The same opcode, other operands."""
    REMOVED = "removed"
    ADDED = "added"


class DiffRow(NamedTuple):
    """One row: an instruction before, after, or both."""

    kind: DiffKind
    before: Instruction | None
    after: Instruction | None


# R12, UR4, P0, UP1, B0, SB0; RZ, URZ, PT and UPT are constants and stay.
_NUMBERED = re.compile(r"\b(U?R|U?P|S?B)\d+\b")
_LABEL = re.compile(r"`\([.$\w]+\)")


@lru_cache(maxsize=1)
def aligned(before: tuple[Instruction, ...], after: tuple[Instruction, ...]) -> tuple[DiffRow, ...]:
    """Return the rows of a side-by-side comparison; of long listings it takes seconds.

    The registers of two compilations are numbered anew, so numbering alone is no difference; labels neither.
    """
    rows = list[DiffRow]()
    # No "junk": in machine code the frequent opcodes are as significant as the rare ones.
    matcher = SequenceMatcher(None, [i.opcode for i in before], [i.opcode for i in after], autojunk=False)
    for tag, i, i_end, j, j_end in matcher.get_opcodes():
        if tag == "equal":
            for left, right in zip(before[i:i_end], after[j:j_end], strict=True):
                same = _without_numbers(left) == _without_numbers(right)
                rows.append(DiffRow(DiffKind.SAME if same else DiffKind.CHANGED, left, right))
        else:
            rows += [DiffRow(DiffKind.REMOVED, left, None) for left in before[i:i_end]]
            rows += [DiffRow(DiffKind.ADDED, None, right) for right in after[j:j_end]]
    return tuple(rows)


def _without_numbers(instruction: Instruction) -> str:
    return _LABEL.sub("label", _NUMBERED.sub(r"\1", instruction.text))
