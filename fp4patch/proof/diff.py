"""Align two listings, and count their differences by instruction class.

The registers of two compilations are numbered anew, so numbering alone is no difference; labels neither.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from functools import cached_property
from typing import overload

from fp4patch.proof.listing import DiffKind, DiffRow, SassDiff, SassListing
from fp4patch.sass.instruction import Instruction

# R12, UR4, P0, UP1, B0, SB0; RZ, URZ, PT and UPT are constants and stay.
_NUMBERED = re.compile(r"\b(U?R|U?P|S?B)\d+\b")
_LABEL = re.compile(r"`\([.$\w]+\)")


def compare(before: SassListing, after: SassListing) -> SassDiff:
    """Return the rows of a side-by-side comparison, and the instructions after minus before for each class."""
    counts = Counter(instruction.cls for instruction in after.instructions)
    counts.subtract(instruction.cls for instruction in before.instructions)
    return SassDiff(
        rows=_Rows(before.instructions, after.instructions),
        delta={cls: difference for cls, difference in sorted(counts.items()) if difference},
        identical=before.code_sha256 == after.code_sha256,
    )


class _Rows(Sequence[DiffRow]):
    """Rows of a comparison, aligned when the first of them is read: the alignment of long listings takes seconds."""

    def __init__(self, before: tuple[Instruction, ...], after: tuple[Instruction, ...]) -> None:
        self._sides = before, after

    @cached_property
    def _aligned(self) -> tuple[DiffRow, ...]:
        return tuple(_rows(*self._sides))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Rows) and self._sides == other._sides

    __hash__ = None  # type: ignore[assignment]  # as of any sequence that compares by its contents

    def __len__(self) -> int:
        return len(self._aligned)

    @overload
    def __getitem__(self, index: int) -> DiffRow: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[DiffRow, ...]: ...
    def __getitem__(self, index: int | slice) -> DiffRow | tuple[DiffRow, ...]:
        return self._aligned[index]


def _rows(before: tuple[Instruction, ...], after: tuple[Instruction, ...]) -> Iterator[DiffRow]:
    # No "junk": in machine code the frequent opcodes are as significant as the rare ones.
    matcher = SequenceMatcher(None, [i.opcode for i in before], [i.opcode for i in after], autojunk=False)
    for tag, i, i_end, j, j_end in matcher.get_opcodes():
        if tag == "equal":
            for left, right in zip(before[i:i_end], after[j:j_end], strict=True):
                same = _without_numbers(left) == _without_numbers(right)
                yield DiffRow(DiffKind.SAME if same else DiffKind.CHANGED, left, right)
        else:
            for left in before[i:i_end]:
                yield DiffRow(DiffKind.REMOVED, left, None)
            for right in after[j:j_end]:
                yield DiffRow(DiffKind.ADDED, None, right)


def _without_numbers(instruction: Instruction) -> str:
    return _LABEL.sub("label", _NUMBERED.sub(r"\1", instruction.text))
